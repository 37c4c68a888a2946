"""An axis of offsets that gives every interesting offset room and shortens the long, uneventful stretches."""

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
    """Offsets to pixels, by (offset, x) knots that both rise; straight between two knots."""

    knots: tuple[tuple[int, float], ...]

    def x(self, offset: int) -> float:
        """Where the offset's left edge is; beyond the ends, the end."""
        place = bisect_right(self.knots, offset, key=lambda knot: knot[0])
        if place == 0:
            return self.knots[0][1]
        if place == len(self.knots):
            return self.knots[-1][1]
        (o1, x1), (o2, x2) = self.knots[place - 1], self.knots[place]
        return x1 + (x2 - x1) * (offset - o1) / (o2 - o1)

    @property
    def width(self) -> float:
        """How wide the axis is."""
        return self.knots[-1][1]

    def stretches(self) -> tuple[tuple[int, int, bool], ...]:
        """Give (first, end, shortened) between each two knots."""
        return tuple(
            (o1, o2, (x2 - x1) < (o2 - o1) * CELL_PX - 0.5) for (o1, x1), (o2, x2) in pairwise(self.knots)
        )


def axis_of(offsets: Iterable[int]) -> Axis:
    """
    Lay out an axis on which every offset given is a knot, the most important first.

    Shapes:  at most AXIS_KNOTS_MAX knots, the outermost offsets among them. A stretch of more than
             CELLS_IN_A_ROW_MAX offsets is shortened to SHORTENED_PX.
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
