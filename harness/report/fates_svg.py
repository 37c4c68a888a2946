"""
Draw the fates of a lost record's copies: a row for each replica, a bar from the append of its copy to its end.

As in the timeline, the distance between two events grows with the logarithm of the time between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from typing import Final
from xml.etree import ElementTree as ET

from harness.model import CopyFate, Fates, Op
from harness.report import svg
from harness.report.text import plural, seconds

_ROW_PX: Final = 30.0
_TOP_PX: Final = 42.0
_NAMES_PX: Final = 92.0
_STEP_PX: Final = 46.0
_BAR_PX: Final = 12.0


def draw_fates(fates: Fates, ops: Mapping[int, Op]) -> svg.Drawing | None:
    """
    Draw the copies; None if the history lacks an op that the fates name.

    Args:
        fates: what became of the record's copies.
        ops: the history's ops by index.
    """
    named = {index for copy in fates.copies for index in (copy.begun, copy.ended) if index is not None}
    named |= {index for index, _ in fates.marks}
    if not fates.copies or not named <= ops.keys():
        return None
    xs = _xs([ops[index] for index in sorted(named)])
    rows = {node: _TOP_PX + n * _ROW_PX for n, node in enumerate(dict.fromkeys(c.node for c in fates.copies))}
    height = _TOP_PX + len(rows) * _ROW_PX + 6
    right = max(xs.values()) + _STEP_PX
    ends = [xs[copy.ended] + svg.text_px(copy.text) + 18 for copy in fates.copies if copy.ended is not None]
    marks = [xs[index] + svg.text_px(text) + 8 for index, text in fates.marks]
    width = max([right, *ends, *marks]) + 8
    words = f"Fates of the record at offset {fates.offset} on {plural(len(rows), 'replica')}."
    names = svg.picture(_NAMES_PX, height, "names of the replicas", "names")
    plot = svg.picture(width, height, words)
    for node, y in rows.items():
        svg.label(names, 8, y + 12, node, "strong")
        svg.box(plot, (0, y - 4, width, _ROW_PX - 6), "lane")
    _draw_marks(plot, fates, ops, xs, height)
    for copy in fates.copies:
        _draw_copy(plot, copy, ops, xs, (rows[copy.node], right))
    return svg.Drawing(names=svg.markup(names), plot=svg.markup(plot))


def _xs(ops: Sequence[Op]) -> dict[int, float]:
    xs: dict[int, float] = {}
    x, before = 10.0, ops[0].time_ns
    for op in ops:
        x += _STEP_PX * bool(xs) + 7 * log10(1 + max(op.time_ns - before, 0) / 1e5)
        xs[op.index], before = x, op.time_ns
    return xs


def _draw_marks(
    plot: ET.Element, fates: Fates, ops: Mapping[int, Op], xs: Mapping[int, float], height: float
) -> None:
    for row, (index, text) in enumerate(fates.marks):
        svg.line(plot, (xs[index], 4, xs[index], height), "grid")
        svg.label(plot, xs[index] + 4, 14 + 15 * (row % 2), f"{seconds(ops[index].time_ns)} {text}", "quiet")


def _draw_copy(
    plot: ET.Element,
    copy: CopyFate,
    ops: Mapping[int, Op],
    xs: Mapping[int, float],
    place: tuple[float, float],
) -> None:
    y, right = place
    end = right if copy.ended is None else xs[copy.ended]
    css = "kept" if copy.ended is None else "by-fault" if copy.by_fault else "by-bug"
    since = f"{copy.node} has it since {seconds(ops[copy.begun].time_ns)}"
    drawn = svg.group(plot, f"fate {css}", f"{since}; it {copy.text}" if copy.text else f"{since}, to the end")
    svg.box(drawn, (xs[copy.begun], y, max(end - xs[copy.begun], 3), _BAR_PX), "bar", round_=2)
    if copy.ended is not None:
        sign = "~" if copy.by_fault else "✗"
        svg.label(drawn, end + 5, y + 10, f"{sign} {copy.text}")
