"""
Whether a run's ops follow each other as a history's must: indexes rise by one from 0, and time does not fall.

A gap is an op that was lost, a repeat one that was written twice. Both executors ask the same function, of all ops
of a run at once: the ops of one partition alone have gaps wherever another partition's lie between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Final

from checkers.facts.view import NO_KEY
from harness.model import Anomaly, Kind, Op

# The first breaks say what is wrong; a history with thousands of them needs no more.
_NAMED_MAX: Final = 3

# The checker that has these findings.
CHECKER: Final = "whole"


def breaks_in(indexes: Sequence[int], times_ns: Sequence[int]) -> list[Anomaly]:
    """
    Return one UNCHECKED anomaly for each of the first breaks in a run's ops, [] if they follow each other.

    Args:
        indexes: the ops' indexes, in the order in which they were written.
        times_ns: their times.
    """
    found: list[Anomaly] = []
    if list(indexes) != list(range(len(indexes))):
        broken = ((last, index) for last, index in pairwise((-1, *indexes)) if index != last + 1)
        found += [_anomaly(_index_text(last, index), index) for last, index in islice(broken, _NAMED_MAX)]
    fallen = ((n, last, now) for n, (last, now) in enumerate(pairwise(times_ns), start=1) if now < last)
    for n, last, now in islice(fallen, _NAMED_MAX):
        text = f"time falls from {last} to {now} ns at op {indexes[n]}; expected time to rise"
        found.append(_anomaly(text, indexes[n]))
    return found


def in_order(ops: Iterable[Op]) -> list[Op]:
    """Return ops by index; ops of one index, which is a break, have the same order wherever they are judged."""
    return sorted(ops, key=lambda op: (op.index, op.time_ns, op.source, op.process, op.type, op.f))


def _index_text(last: int, index: int) -> str:
    what = "falls" if index < last else "repeats" if index == last else "skips"
    before = "the history begins with" if last < 0 else f"the index {what} from {last} to"
    return f"{before} {index}; expected {last + 1}, so an op is missing, or stands twice or elsewhere"


def _anomaly(text: str, index: int) -> Anomaly:
    topic, partition = NO_KEY
    return Anomaly(
        kind=Kind.UNCHECKED,
        topic=topic,
        partition=partition,
        sentence=f"The history is not whole: {text}.",
        proof=(index,),
        checker=CHECKER,
    )
