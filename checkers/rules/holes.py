"""
No offset is missing between the batches of a log; where offsets need not follow each other, none that others hold.

There a system may skip an offset lawfully, on all replicas. So a gap alone proves nothing: a replica lacks a
record that another holds, once the cluster is whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.compacted import kept_of
from checkers.facts.moments import anomaly
from checkers.facts.outages import outages
from checkers.facts.rot import flipped
from checkers.facts.view import FinalLog, final_logs, key_of, offsets_text, traits
from checkers.facts.window import is_forked
from checkers.rules.exited import gone
from harness.events import Healed
from harness.model import Anomaly, Kind, Op, OpType, events_of, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.HOLE,
        formula="where offsets are dense: batches a, b next to each other in one log: b.base > a.last + 1; or "
        "the first base > the log's start; and compaction may not have removed what is missing, nor a cut "
        "inside a batch that an upgrade from a version without epochs had left there and not on the leader; "
        "where they are not: after healed, log(n)[o] is there and log(m)[o] is not, at or above both logs' "
        "starts and below m's end, and no fault flipped a byte of m's log there",
        words="A log skips offsets; where offsets need not follow each other, it skips what another log holds.",
        evidence="log: snapshot, batch; runner: healed; nemesis: faults",
        unchecked="Where offsets need not follow each other: a log that is not final, as its node is down or the "
        "cluster did not heal, and what could not be read.",
        source="KAFKA-6361, n > 20",
    ),
)


def holes(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find offsets that a final log skips, from its log start on. A log that only ends early has no hole.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each gap of each node; where offsets need not follow each other, one for each node that
        lacks what another holds.

    Source:  KAFKA-6361, n > 20: a truncation inside a batch removes all of it; the next append leaves the gap.
    """
    if not traits(ops).dense:
        return [*_lacking(ops)]
    topic, partition = key_of(ops)
    found: list[Anomaly] = []
    for log in final_logs(ops).values():
        expected, before = log.start, log.index
        unread = sorted(log.snapshot.unread or ())
        for index, batch in log.batches:
            # What could not be read is there, whatever it is.
            for first, end in unread:
                expected = max(expected, end) if first <= expected else expected
            for gap in kept_of(ops, expected, batch.base) if batch.base > expected else ():
                if is_forked(ops, log.node, gap[0]):
                    continue  # its leader's log ended inside a batch that the leader had lost
                found.append(
                    Anomaly(
                        kind=Kind.HOLE,
                        topic=topic,
                        partition=partition,
                        ranges=(gap,),
                        nodes=(log.node,),
                        sentence=f"{log.node}'s log jumps from {gap[0]} to {gap[1]}: "
                        f"{offsets_text([gap])} missing.",
                        proof=(before, index),
                    )
                )
            if batch.last + 1 >= expected:
                expected, before = batch.last + 1, index
    return found


def _lacking(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield each node whose log lacks, between its start and its end, what another log holds."""
    healed = [op for op, _ in events_of(ops, Healed)]
    if not healed or any(op.type is not OpType.OK for op in healed):
        return
    away = {outage.node for outage in outages(ops) if outage.back is None} | gone(ops)
    logs = [log for node, log in final_logs(ops).items() if node not in away]
    for log in logs:
        holders: dict[int, FinalLog] = {}
        for other in logs:
            for offset in other.records.keys() - log.records.keys():
                if max(log.start, other.start) <= offset < log.end and not _may_be_there(ops, log, offset):
                    holders.setdefault(offset, other)
        if holders:
            yield _lack(ops, log, holders)


def _may_be_there(ops: Sequence[Op], log: FinalLog, offset: int) -> bool:
    """Return True if the log may hold something at an offset that could not be read."""
    unread = any(first <= offset < end for first, end in log.snapshot.unread or ())
    return unread or bool(log.snapshot.problems) or flipped(ops, log.node, offset)


def _lack(ops: Sequence[Op], log: FinalLog, holders: Mapping[int, FinalLog]) -> Anomaly:
    ranges, first = ranges_of(holders), min(holders)
    other = holders[first]
    text = f"{log.node}'s log has nothing at {offsets_text(ranges)}, where {other.node} holds "
    text += f"{other.records[first].value!r}" + (f" (at offset {first})" if len(holders) > 1 else "")
    proof = {log.index, *(each.records[offset].index for offset, each in holders.items())}
    return anomaly(ops, Kind.HOLE, text, proof, [log.node], None, ranges)
