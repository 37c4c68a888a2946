"""An acknowledgement is true: its offset is the record's; with acks=all, the whole ISR, large enough, had it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.acked import Acked, acked_records, acknowledged_at, broken_promises, promise_of, written_by
from checkers.facts.copies import copies_of
from checkers.facts.places import places_of
from checkers.facts.polls import first_polls, polled_places
from checkers.facts.quorum import is_quorum
from checkers.facts.sent import sent_values
from checkers.facts.view import final_logs, key_of, offsets_text, setup_of
from checkers.rules.acked_twice import acked_twice
from harness.model import Anomaly, Kind, Op, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.FALSE_ACK,
        formula="ok(produce r, acks=all, offset o) at k, append(leader w, r): some n in ISR(w, k) with no "
        "append of r before k and no fetch above o from w before k; or |ISR(w, k)| < min_isr; or w's high "
        "watermark never passed o; or no leader appended at o; or ok(produce r, any acks, o), r sent once, and "
        "a final log holds r, but not at o; or no final log holds r, and polls showed it, but not at o; or, "
        "where a quorum commits, ok(produce r, o) and ok(produce q, o), r != q, and no faults between them "
        "that permit the loss of either",
        words="A record was acknowledged with acks=all, though a member of the ISR had not copied it, the ISR was "
        "below min ISR, or the leader had not committed it; or it was acknowledged, whatever its acks, at an "
        "offset that is not its own. Where a quorum commits, two records were acknowledged at one offset.",
        evidence="client: produce; broker: append, leader, isr, high-watermark; fabric: fetch; log: batch; "
        "client: poll",
        unchecked="Brokers that emit no events: then only offsets are judged. Where a quorum commits there is "
        "no ISR and no min ISR: its acknowledgements are judged by what is lost.",
        source="KIP-101, Motivation; Kafka's acks and min.insync.replicas",
    ),
)


def acknowledged(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find acknowledgements with acks=all that promise what was not so, or that tell another offset.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for all records of one name with the same reason, by first acknowledgement; then one for each
        two records that a quorum acknowledged at one offset.

    Source:  Kafka's documentation of acks and min.insync.replicas.
    """
    groups: dict[tuple[str, str], list[tuple[Acked, tuple[int, ...]]]] = {}
    reported = copies_of(ops).reported and not is_quorum(ops)
    for acked in acked_records(ops):
        for text, proof in (*_elsewhere(ops, acked), *(_reasons(ops, acked) if reported else ())):
            groups.setdefault((acked.name, text), []).append((acked, proof))
    return [*(_anomaly(ops, text, group) for (_, text), group in groups.items()), *acked_twice(ops)]


def _elsewhere(ops: Sequence[Op], acked: Acked) -> Iterator[tuple[str, tuple[int, ...]]]:
    """
    Yield it if final logs hold the record at another offset, and none at the offset that its client was told.

    Of a record that no final log holds any more, what consumers were shown counts.

    A leader appends what was sent once at one offset, which it tells the client, and followers copy it there.
    """
    setup, sent = setup_of(ops), sent_values(ops)[acked.value]
    if acked.offset < 0 or setup is None or not setup.sends_once or sent.appends_max != 1:
        return
    held = places_of(ops).get(acked.value, ())
    if held and all(place.offset != acked.offset for place in held):
        where = offsets_text(ranges_of(place.offset for place in held))
        text = f"{', '.join(dict.fromkeys(place.node for place in held))} had it at {where} in the end, not there"
        yield text, (acked.index, *(place.batch for place in held))
    elif not held and (seen := polled_places(ops).get(acked.value)) and acked.offset not in seen:
        polled = first_polls(ops)[min(seen), acked.value]
        text = f"{polled.said} showed it at {offsets_text(ranges_of(seen))}, not there"
        yield text, (acked.index, polled.ok.index)


def _reasons(ops: Sequence[Op], acked: Acked) -> list[tuple[str, tuple[int, ...]]]:
    if not acked.by_all or acked.offset < 0:
        return []
    written = written_by(ops, acked)
    if written is None:
        if any(log.records.get(acked.offset) for log in final_logs(ops).values()):
            return []  # an append that no broker reported: the log shows that there was one
        return [("no leader appended anything there", (acked.index,))]
    promise = promise_of(ops, acked.offset, written, acked.index, acknowledged=True)
    return [
        (text, (acked.index, written.index, *([op.index] if op else [])))
        for text, op in broken_promises(ops, acked, written, promise)
    ]


def _anomaly(ops: Sequence[Op], text: str, group: Sequence[tuple[Acked, tuple[int, ...]]]) -> Anomaly:
    topic, partition = key_of(ops)
    first = group[0][0]
    ranges = ranges_of(acked.offset for acked, _ in group)
    return Anomaly(
        kind=Kind.FALSE_ACK,
        topic=topic,
        partition=partition,
        ranges=ranges,
        sentence=f"{first.name} ({offsets_text(ranges)}), {acknowledged_at(first)}, was not safe then: {text}.",
        proof=tuple(sorted({index for _, proof in group for index in proof})),
    )
