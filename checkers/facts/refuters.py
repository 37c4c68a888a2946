"""
Which acknowledgements refute a promised record: another one at its offset, or below it and sent after its promise.

A run that loses thousands of records has thousands of both, so they are compared as columns of numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from checkers.facts.assured import Assured, assured_records
from checkers.facts.fact import fact
from checkers.facts.seen import order, timeline
from harness.model import Op

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuters:
    """
    All acknowledgements with acks=all, in the order of their times.

    Attributes:
        assured: the acknowledgements; the columns have a number for each.
        places: how much of the timeline comes before it.
        groups: equal for those with the same members.
    """

    assured: Sequence[Assured]
    places: Ints
    groups: Ints
    offsets: Ints
    invoked: Ints
    indexes: Ints

    def of(self, mine: Assured) -> Ints:
        """Return the places of those whose members cannot have this record as well."""
        acked = mine.acked
        below = (self.offsets < acked.offset) & (self.invoked > acked.index)
        same = (self.offsets == acked.offset) & (self.indexes > acked.index)
        found: Ints = np.flatnonzero(below | same)
        own = [place for place in found[same[found]] if self.assured[place].acked.value == acked.value]
        return found[~np.isin(found, own)] if own else found


@fact
def refuters(ops: Sequence[Op]) -> Refuters:
    """Return the acknowledgements of a partition as columns."""
    assured = sorted(assured_records(ops), key=lambda each: (each.acked.ok.time_ns, each.acked.index))
    before = [order(seen) for seen in timeline(ops)]
    groups: dict[frozenset[str], int] = {}

    def column(numbers: list[int]) -> Ints:
        return np.array(numbers, dtype=np.int64)

    return Refuters(
        assured=assured,
        places=column([bisect_left(before, (each.acked.ok.time_ns, each.acked.index)) for each in assured]),
        groups=column([groups.setdefault(each.members, len(groups)) for each in assured]),
        offsets=column([each.acked.offset for each in assured]),
        invoked=column([each.acked.invoked for each in assured]),
        indexes=column([each.acked.index for each in assured]),
    )
