"""One producer's records stand in the log in the order in which they were acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.acked import Acked, acked_records
from checkers.facts.view import at, final_leader, final_logs, key_of, setup_of
from harness.model import Anomaly, Kind, Op

KINDS: Final = (
    Definition(
        kind=Kind.REORDERED,
        formula="invoke(produce a) before invoke(produce b) of one process, both ok and in the final log at o "
        "and p: p < o; if clients may send again, only with ok(produce a) before invoke(produce b)",
        words="A record that a producer sent after another has a lower offset.",
        evidence="client: produce; log: batch",
        unchecked="A record that is not at its offset at the end: `lost` judges it.",
        source="Apache Kafka's documentation: messages of one producer are appended in the order in which they "
        "are sent",
    ),
)


def producer_order(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find records of one producer that stand below a record that it sent before.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each such record, with the highest record that it should follow.

    Source:  Apache Kafka's documentation, guarantees.
    """
    setup = setup_of(ops)
    # A client that sends again may have two batches under way, of which the first is written last.
    in_turn = setup is not None and bool(setup.sends_once)
    leader = final_leader(ops)
    log = final_logs(ops).get(leader.node or "") if leader else None
    by_process: dict[str, list[Acked]] = {}
    for acked in acked_records(ops):
        held = log.records.get(acked.offset) if log else None
        if held is not None and held.value == acked.value and acked.invoked < acked.index:
            by_process.setdefault(acked.ok.process, []).append(acked)
    return [
        _anomaly(ops, before, after)
        for theirs in by_process.values()
        for before, after in _pairs(theirs, in_turn=in_turn)
    ]


def _pairs(theirs: Sequence[Acked], *, in_turn: bool) -> list[tuple[Acked, Acked]]:
    """Return each record that stands below one that was sent before it; acknowledged before it, if not in turn."""
    found: list[tuple[Acked, Acked]] = []
    by_ok = sorted(theirs, key=lambda acked: acked.invoked if in_turn else acked.index)
    place, highest = 0, None
    for acked in sorted(theirs, key=lambda each: each.invoked):
        while place < len(by_ok) and (by_ok[place].invoked if in_turn else by_ok[place].index) < acked.invoked:
            if highest is None or by_ok[place].offset > highest.offset:
                highest = by_ok[place]
            place += 1
        if highest is not None and acked.offset < highest.offset:
            found.append((highest, acked))
    return found


def _anomaly(ops: Sequence[Op], before: Acked, after: Acked) -> Anomaly:
    topic, partition = key_of(ops)
    return Anomaly(
        kind=Kind.REORDERED,
        topic=topic,
        partition=partition,
        ranges=((after.offset, after.offset + 1),),
        sentence=f"{after.ok.process} sent {after.value!r} after {before.value!r}, which was acknowledged at "
        f"offset {before.offset} at {at(before.ok)}; it stands below it, at offset {after.offset}.",
        proof=(before.index, after.invoked, after.index),
    )
