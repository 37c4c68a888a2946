"""
Whether a run's ops follow each other as a history's must: indexes rise by one from 0, and time does not fall.

A gap is an op that was lost, a repeat one that was written twice. Both executors ask the same function, of all ops
of a run at once: the ops of one partition alone have gaps wherever another partition's lie between.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from checkers.facts.view import NO_KEY, unchecked
from harness.history.sequence import Breaks
from harness.model import Anomaly, Op

# The checker that has these findings.
CHECKER: Final = "whole"


def breaks_in(ops: Iterable[Op]) -> list[Anomaly]:
    """Return one UNCHECKED anomaly for each of the first breaks in a run's ops, [] if they follow each other."""
    found = Breaks()
    for op in ops:
        found.add(op.index, op.time_ns)
    return breaks_of(found.skips, found.falls)


def breaks_of(skips: Iterable[tuple[int, int]], falls: Iterable[tuple[int, int, int]]) -> list[Anomaly]:
    """Return the anomalies of breaks that were found when the ops were read (harness/history/sequence.py)."""
    return [
        *(_anomaly(_index_text(last, index), index) for last, index in skips),
        *(
            _anomaly(f"time falls from {last} to {now} ns at op {index}; expected time to rise", index)
            for index, last, now in falls
        ),
    ]


def in_order(ops: Iterable[Op]) -> list[Op]:
    """Return ops by index; ops of one index, which is a break, have the same order wherever they are judged."""
    return sorted(ops, key=lambda op: (op.index, op.time_ns, op.source, op.process, op.type, op.f))


def _index_text(last: int, index: int) -> str:
    what = "falls" if index < last else "repeats" if index == last else "skips"
    before = "the history begins with" if last < 0 else f"the index {what} from {last} to"
    return f"{before} {index}; expected {last + 1}, so an op is missing, or stands twice or elsewhere"


def _anomaly(text: str, index: int) -> Anomaly:
    return unchecked(NO_KEY, f"The history is not whole: {text}.", CHECKER, (index,))
