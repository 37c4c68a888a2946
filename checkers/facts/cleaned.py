"""
How far brokers may have compacted a partition: below that, a record or a whole batch may be missing from a log.

Source:  Kafka, LogCleaner.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.fact import fact
from harness.events import HighWatermark, LogCleaned, Recovered
from harness.model import Op, events_of


@fact
def compacted_before(ops: Sequence[Op]) -> int:
    """Return the highest offset up to which a broker may have compacted, 0 if none said that it did."""
    return compacted_by(ops, ops[-1].index) if ops else 0


def compacted_by(ops: Sequence[Op], index: int) -> int:
    """
    Return the highest offset up to which a broker may have compacted by that op, 0 if none ever said that it did.

    A broker that dies once the cleaned files have their names says nothing of them: its next process finds them. A
    cleaner goes no further than to its broker's high watermark.
    """
    cleaned = [(op.index, event.upto) for op, event in events_of(ops, LogCleaned)]
    said = max((upto for at, upto in cleaned if at <= index), default=0)
    return max(said, _known_at_crashes(ops, index)) if cleaned else 0


def _known_at_crashes(ops: Sequence[Op], index: int) -> int:
    """Return the highest high watermark that a broker had when it died, by that op's start; 0 if none did."""
    highest, high_watermarks = 0, dict[str, int]()
    for op in ops:
        if op.index > index:
            break
        if isinstance(op.event, HighWatermark):
            high_watermarks[op.process] = op.event.to
        elif isinstance(op.event, Recovered) and not op.event.clean:
            highest = max(highest, high_watermarks.get(op.process, 0))
    return highest
