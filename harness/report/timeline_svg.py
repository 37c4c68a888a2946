"""
Draw the timeline: time runs to the right, and each process has a lane.

A scenario is bursts of milliseconds with seconds between them, so the axis is not linear: the distance between two
events grows with the logarithm of the time between them, and labels never overlap. The times along the top are
exact.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Final
from xml.etree import ElementTree as ET

from harness.model import Op
from harness.report import svg
from harness.report.limits import LANE_ROWS_MAX
from harness.report.text import plural, seconds
from harness.report.timeline_items import Item, Timeline

_ROW_PX: Final = 21.0
_LANE_GAP_PX: Final = 11.0
_TOP_PX: Final = 26.0
_NAMES_PX: Final = 92.0
_NAME_CHARACTERS_MAX: Final = 12
_PAD_PX: Final = 5.0
_TICK_PX: Final = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The positions: history index -> x, (lane, row) -> y, lane -> (top, bottom)."""

    xs: Mapping[int, float]
    rows: Mapping[tuple[str, int], float]
    lanes: Mapping[str, tuple[float, float]]
    width: float
    height: float


def draw_timeline(timeline: Timeline, ops: Sequence[Op]) -> svg.Drawing:
    """Draw the timeline; ops is the whole history."""
    items = stacked(timeline.items)
    layout = lay_out(timeline.lanes, items)
    words = f"Timeline of {plural(len(ops), 'history line')}: lanes {', '.join(timeline.lanes)}."
    names = svg.picture(_NAMES_PX, layout.height, "names of the lanes", "names")
    plot = svg.picture(layout.width, layout.height, words)
    _draw_lanes(names, plot, timeline.lanes, layout)
    _draw_times(plot, items, layout)
    for item in items:
        if item.css.split()[0] in ("st-down", "st-paused"):
            _draw_fault_band(plot, item, layout)
    for item in items:
        _draw_item(plot, item, layout)
    return svg.Drawing(names=svg.markup(names), plot=svg.markup(plot), notes=_notes(timeline))


def stacked(items: Sequence[Item]) -> tuple[Item, ...]:
    """
    Move items that overlap in time to separate rows of their lane.

    A lane has at most LANE_ROWS_MAX such rows; further items share the last row.
    """
    free: dict[tuple[str, int], list[float]] = {}
    placed = []
    for item in items:
        if not item.overlaps:
            placed.append(item)
            continue
        ends = free.setdefault((item.lane, item.row), [])
        end = float("inf") if item.last is None else item.last.index
        row = next((n for n, taken in enumerate(ends) if taken <= item.first.index), len(ends))
        row = min(row, LANE_ROWS_MAX - 1)
        ends[row : row + 1] = [end]
        placed.append(replace(item, row=item.row + row))
    return tuple(placed)


def lay_out(lanes: Sequence[str], items: Sequence[Item]) -> Layout:
    """Return an x for both ends of every item, so that labels in a row do not touch, and a y for every row."""
    rows, extents, y = {}, {}, _TOP_PX
    for lane in lanes:
        top = y
        for row in sorted({i.row for i in items if i.lane == lane}):
            rows[lane, row] = y
            y += _ROW_PX
        extents[lane] = (top, y)
        y += _LANE_GAP_PX
    xs, x = _xs(items)
    return Layout(xs=xs, rows=rows, lanes=extents, width=x + 24, height=y)


def _xs(items: Sequence[Item]) -> tuple[dict[int, float], float]:
    begins: dict[int, list[Item]] = {}
    ends: dict[int, list[Item]] = {}
    times: dict[int, int] = {}
    for item in items:
        begins.setdefault(item.first.index, []).append(item)
        times[item.first.index] = item.first.time_ns
        if item.last and item.last is not item.first:
            ends.setdefault(item.last.index, []).append(item)
            times[item.last.index] = item.last.time_ns
    xs: dict[int, float] = {}
    taken: dict[tuple[str, int], float] = {}
    x, before, right = 10.0, None, 0.0
    for index, time_ns in sorted(times.items()):
        if before is not None:
            x += 3 + 7 * log10(1 + max(time_ns - before, 0) / 1e5)
        before = time_ns
        starting = begins.get(index, [])
        x = max([x, *(taken.get((i.lane, i.row), 0.0) + _PAD_PX for i in starting)])
        x = max([x, *(xs[i.first.index] + svg.text_px(i.label) + 8 for i in ends.get(index, []))])
        xs[index] = x
        for item in starting:
            taken[item.lane, item.row] = x + svg.text_px(item.label) + 8
            right = max(right, taken[item.lane, item.row])
    return xs, max(x, right)


# --- drawing -----------------------------------------------------------------------------------------------


def _draw_lanes(names: ET.Element, plot: ET.Element, lanes: Sequence[str], layout: Layout) -> None:
    svg.label(names, 8, 16, "time", "quiet")
    for lane in lanes:
        top, bottom = layout.lanes[lane]
        svg.box(plot, (0, top - 4, layout.width, bottom - top + 6), "lane")
        svg.label(names, 8, top + 13, _lane_name(lane), "strong")


def _lane_name(lane: str) -> str:
    """Return a lane's name, without its middle if it is long: processes of one service differ at the end."""
    return lane if len(lane) <= _NAME_CHARACTERS_MAX else f"{lane[:7]}…{lane[-4:]}"


def _draw_times(plot: ET.Element, items: Sequence[Item], layout: Layout) -> None:
    """Draw ticks at begins and ends of items, as close as their texts allow: steps first, then begins."""
    begins = [i.first for i in items]
    steps = [i.first for i in items if i.css.startswith("step")]
    ends = [i.last for i in items if i.last]
    taken: list[float] = []
    for op in {op.index: op for op in (*steps, *begins, *ends)}.values():
        x = layout.xs[op.index]
        place = bisect_left(taken, x)
        near = taken[max(place - 1, 0) : place + 1]
        if any(abs(x - other) < _TICK_PX for other in near):
            continue
        taken.insert(place, x)
        svg.label(plot, x, 14, seconds(op.time_ns), "quiet")
        svg.line(plot, (x, 18, x, layout.height), "grid")


def _ends_at(item: Item, layout: Layout) -> float:
    return layout.width - 8 if item.last is None else layout.xs[item.last.index]


def _draw_fault_band(plot: ET.Element, item: Item, layout: Layout) -> None:
    top, bottom = layout.lanes[item.lane]
    x = layout.xs[item.first.index]
    svg.box(plot, (x, top - 4, _ends_at(item, layout) - x, bottom - top + 6), f"down {item.css}")


def _draw_item(plot: ET.Element, item: Item, layout: Layout) -> None:
    x, y = layout.xs[item.first.index], layout.rows[item.lane, item.row]
    drawn = svg.group(plot, f"item {item.css}{' proof' if item.proof else ''}", item.title)
    if item.last is item.first:
        width = svg.text_px(item.label) + 6
        svg.box(drawn, (x, y, width, _ROW_PX - 4), "mark", round_=2)
        svg.line(drawn, (x, y - 1, x, y + _ROW_PX - 3), "at")
    else:
        width = max(_ends_at(item, layout) - x, 3)
        svg.box(drawn, (x, y, width, _ROW_PX - 4), "bar", round_=2)
    svg.label(drawn, x + 4, y + 12.5, item.label)
    if item.proof:
        svg.path(drawn, f"M{x - 3:.1f} {y - 3:.1f}h7l-3.5 6z", "flag")


def _notes(timeline: Timeline) -> tuple[str, ...]:
    if not timeline.left_out:
        return ()
    kinds = ", ".join(f"{count:,} {f}" for f, count in timeline.left_out.items())
    total = len(timeline.items) + sum(timeline.left_out.values())
    return (f"{len(timeline.items):,} of {total:,} events are drawn; left out, the least telling first: {kinds}.",)
