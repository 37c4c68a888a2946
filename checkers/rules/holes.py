"""No offset is missing between the batches of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.compacted import kept_of
from checkers.facts.view import final_logs, key_of, offsets_text
from checkers.facts.window import is_forked
from harness.model import Anomaly, Kind, Op

KINDS: Final = (
    Definition(
        kind=Kind.HOLE,
        formula="batches a, b next to each other in one log: b.base > a.last + 1; or the first base > the "
        "log's start; and compaction may not have removed what is missing, nor a cut inside a batch that an "
        "upgrade from a version without epochs had left there and not on the leader",
        words="A log skips offsets.",
        evidence="log: snapshot, batch",
        unchecked="",
        source="KAFKA-6361, n > 20",
    ),
)


def holes(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find offsets that a final log skips, from its log start on. A log that only ends early has no hole.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each gap of each node.

    Source:  KAFKA-6361, n > 20: a truncation inside a batch removes all of it; the next append leaves the gap.
    """
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
