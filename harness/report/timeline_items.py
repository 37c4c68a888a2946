"""What a timeline draws: items in the rows of its lanes, marks at a moment and bars over a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.model import Op
from harness.report.limits import TITLE_LINES_MAX
from harness.report.reading import Span
from harness.report.text import exact, shortened, value_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """
    One drawn item.

    Attributes:
        row: the row in its lane, from 0.
        last: the op at which it ends: `first` for a mark, None if it lasts to the end of the history.
        rank: items of a lower rank are kept longer if there are too many.
        ops: the history lines that it represents.
        overlaps: the item moves down to a free row if it overlaps another.
        proof: the item proves an anomaly.
    """

    lane: str
    row: int
    label: str
    css: str
    first: Op
    last: Op | None
    rank: int
    ops: tuple[Op, ...]
    overlaps: bool = False
    proof: bool = False

    @property
    def title(self) -> str:
        """Its history lines in full; if there are too many, the first lines and the last."""
        all_fit = len(self.ops) <= TITLE_LINES_MAX
        shown = self.ops if all_fit else (*self.ops[: TITLE_LINES_MAX - 1], self.ops[-1])
        lines = [
            f"history {op.index} at {exact(op.time_ns)}: "
            f"{op.process} {op.type.value} {op.f} {value_text(op.value)}"
            for op in shown
        ]
        if len(shown) < len(self.ops):
            lines.insert(-1, f"and {len(self.ops) - len(shown):,} more")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Lanes from top to bottom, items by time, and how many items of each kind were left out."""

    lanes: tuple[str, ...]
    items: tuple[Item, ...]
    left_out: Mapping[str, int]


def mark(place: tuple[str, int], label: str, css: str, op: Op, *, rank: int) -> Item:
    """Return an item at a moment, in a lane and a row of it."""
    lane, row = place
    return Item(lane=lane, row=row, label=shortened(label, 40), css=css, first=op, last=op, rank=rank, ops=(op,))


def bar(lane: str, label: str, css: str, span: Span, rank: int) -> Item:
    """Return an item over a time, in the first row of a lane that is free."""
    return Item(
        lane=lane,
        row=0,
        label=shortened(label, 40),
        css=f"{css} {span.outcome}",
        first=span.first,
        last=span.last,
        rank=rank,
        ops=(span.first,) if span.last in (None, span.first) else (span.first, span.last),
        overlaps=True,
    )
