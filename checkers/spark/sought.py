"""Numbers that are looked for among very many. This module imports nothing of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from checkers.spark.rows import Bools, Ints

# Bits of a filter beyond those that a place for each number would take: one of 16 others passes it.
_SPARE_BITS: Final = 4
_BITS_MIN: Final = 16


@dataclass(frozen=True)  # no slots: cached_property stores its value in the instance's dictionary
class Sought:
    """
    Numbers that are looked for, each once and rising.

    They are hashes, so that their lowest bits alone rule out most others: that is one look at a small array.
    """

    numbers: Ints

    def within(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the places of those numbers that are looked for, and of each its place among them."""
        there = np.flatnonzero(self._filter[numbers & (len(self._filter) - 1)])
        if not len(self.numbers):
            return there, there
        place = np.minimum(np.searchsorted(self.numbers, numbers[there]), len(self.numbers) - 1)
        same = self.numbers[place] == numbers[there]
        return there[same], place[same]

    @cached_property
    def _filter(self) -> Bools:
        found = np.zeros(1 << max(_BITS_MIN, len(self.numbers).bit_length() + _SPARE_BITS), dtype=bool)
        found[self.numbers & (len(found) - 1)] = True
        return found

    def __getstate__(self) -> dict[str, Ints]:
        """Leave the filter out: it is as quick to make as to send."""
        return {"numbers": self.numbers}
