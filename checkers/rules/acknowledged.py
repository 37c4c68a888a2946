"""An acknowledgement with acks=all is true: the whole ISR had the record, and the ISR was large enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.acked import Acked, acked_records, acknowledged_at, broken_promises, promise_of, written_by
from checkers.facts.copies import copies_of
from checkers.facts.view import final_logs, key_of, offsets_text
from harness.model import Anomaly, Kind, Op, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.FALSE_ACK,
        formula="ok(produce r, acks=all, offset o) at k, append(leader w, r): some n in ISR(w, k) with no append "
        "of r before k and no fetch above o from w before k; or |ISR(w, k)| < min_isr; or w's high watermark "
        "never passed o; or no leader appended at o",
        words="A record was acknowledged with acks=all, though a member of the ISR had not copied it, the ISR was "
        "below min ISR, or the leader had not committed it.",
        evidence="client: produce; broker: append, leader, isr, high-watermark; fabric: fetch",
        unchecked="Brokers that emit no events: then nothing is found.",
        source="KIP-101, Motivation; Kafka's acks and min.insync.replicas",
    ),
)


def acknowledged(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find acknowledgements with acks=all that promise what was not so when they were given.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for all records of one name with the same reason, by first acknowledgement.

    Source:  Kafka's documentation of acks and min.insync.replicas.
    """
    if not copies_of(ops).reported:
        return []
    groups: dict[tuple[str, str], list[tuple[Acked, tuple[int, ...]]]] = {}
    for acked in acked_records(ops):
        if not acked.by_all or acked.offset < 0:
            continue
        for text, proof in _reasons(ops, acked):
            groups.setdefault((acked.name, text), []).append((acked, proof))
    return [_anomaly(ops, text, group) for (_, text), group in groups.items()]


def _reasons(ops: Sequence[Op], acked: Acked) -> list[tuple[str, tuple[int, ...]]]:
    written = written_by(ops, acked)
    if written is None:
        if any(log.records.get(acked.offset) for log in final_logs(ops).values()):
            return []  # an append that no broker reported: the log shows that there was one
        return [("no leader appended anything there", (acked.index,))]
    promise = promise_of(ops, acked.offset, written, acked.index)
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
