"""An axis of offsets with room for every interesting offset; long stretches without one are shortened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from harness.report.limits import AXIS_KNOTS_MAX, CELLS_IN_A_ROW_MAX

CELL_PX: Final = 64.0
SHORTENED_PX: Final = 132.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A map from offsets to pixels by (offset, x) knots, which rise in both; linear between two knots."""

    knots: tuple[tuple[int, float], ...]

    def x(self, offset: int) -> float:
        """Return the x of the offset's left edge, limited to the ends of the axis."""
        place = bisect_right(self.knots, offset, key=lambda knot: knot[0])
        if place == 0:
            return self.knots[0][1]
        if place == len(self.knots):
            return self.knots[-1][1]
        (o1, x1), (o2, x2) = self.knots[place - 1], self.knots[place]
        return x1 + (x2 - x1) * (offset - o1) / (o2 - o1)

    @property
    def width(self) -> float:
        """The width of the axis in pixels."""
        return self.knots[-1][1]

    def stretches(self) -> tuple[tuple[int, int, bool], ...]:
        """Return (first, end, shortened) for each stretch between two knots."""
        return tuple(
            (o1, o2, (x2 - x1) < (o2 - o1) * CELL_PX - 0.5) for (o1, x1), (o2, x2) in pairwise(self.knots)
        )


def axis_of(offsets: Iterable[int]) -> Axis:
    """
    Return an axis with knots at the given offsets.

    It has at most AXIS_KNOTS_MAX knots: the outermost offsets, then the first of the given. A stretch of more than
    CELLS_IN_A_ROW_MAX offsets is shortened to SHORTENED_PX.

    Args:
        offsets: the interesting offsets, the most important first.
    """
    wanted = list(dict.fromkeys(offsets)) or [0]
    outermost = [min(wanted), max([*wanted, min(wanted) + 1])]
    kept = sorted(set([*outermost, *wanted][:AXIS_KNOTS_MAX]))
    knots = [(kept[0], 0.0)]
    for before, offset in pairwise(kept):
        count = offset - before
        width = count * CELL_PX if count <= CELLS_IN_A_ROW_MAX else SHORTENED_PX
        knots.append((offset, knots[-1][1] + width))
    return Axis(knots=tuple(knots))
