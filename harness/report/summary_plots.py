"""
The plots of a summary: stacked bars, bars of two lengths, and distributions on a logarithmic axis.

Every number that a plot draws is also in its tooltips or labels, and in a table of the same page.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

from markupsafe import Markup

from harness.report import svg
from harness.report.text import plural, took

_AXIS_PX: Final = 58.0
_BAR_PX: Final = 54.0
_STEP_PX: Final = 84.0
_STACK_PX: Final = 230.0
_TOP_PX: Final = 14.0
_LINE_PX: Final = 22.0
_WIDTH_PX: Final = 620.0
_RIDGE_PX: Final = 44.0
# Columns of a distribution: ten to each factor of ten.
_DECADE: Final = 10
# A segment of a bar that is lower than this has no number in it.
_NUMBERED_PX: Final = 13.0
# One mismatch among a thousand runs is what people look for.
_SEEN_PX: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """
    The latencies of one row.

    Attributes:
        counts: (least, greatest, count) of each bucket, in nanoseconds.
        marks: a name, as `p50`, and the latency at which it is drawn, in nanoseconds.
    """

    name: str
    counts: Sequence[tuple[int, int, int]]
    marks: Mapping[str, float]


def stacked(rows: Sequence[tuple[str, Mapping[str, int]]], css: Mapping[str, str], label: str) -> Markup:
    """
    Draw a bar for each row, its parts on each other.

    Args:
        rows: the name of each bar, and the size of its parts.
        css: the parts from the bottom up, and the CSS class of each.
        label: what the plot shows, for those who do not see it.
    """
    most = max((sum(parts.values()) for _, parts in rows), default=0) or 1
    ticks = _ticks(most)
    scale = _STACK_PX / ticks[-1]
    picture = svg.picture(_AXIS_PX + _STEP_PX * len(rows) + 8, _TOP_PX + _STACK_PX + 2 * _LINE_PX, label, "plot")
    bottom = _TOP_PX + _STACK_PX
    for tick in ticks:
        y = bottom - tick * scale
        svg.line(picture, (_AXIS_PX - 4, y, _AXIS_PX + _STEP_PX * len(rows), y), "rule" if tick == 0 else "grid")
        text = f"{tick:,}"
        svg.label(picture, _AXIS_PX - 8 - svg.text_px(text), y + 4, text, "quiet")
    for place, (name, parts) in enumerate(rows):
        left, y = _AXIS_PX + place * _STEP_PX + (_STEP_PX - _BAR_PX) / 2, bottom
        for part, css_class in css.items():
            count = parts.get(part, 0)
            if not count:
                continue
            height = max(count * scale, _SEEN_PX)
            y -= height
            segment = svg.group(picture, f"part {css_class}", f"{name}: {count:,} {part}")
            svg.box(segment, (left, y, _BAR_PX, height), "bar")
            if height >= _NUMBERED_PX:
                svg.label(segment, left + _BAR_PX / 2, y + height / 2 + 4, f"{count:,}", middle=True)
        svg.label(picture, left + _BAR_PX / 2, bottom + 17, name, middle=True)
    return svg.markup(picture)


def pairs(rows: Sequence[tuple[str, int, int]], label: str) -> Markup:
    """Draw two bars for each row on each other: how many faults were asked, and how many of them took effect."""
    names = max((svg.text_px(name) for name, _, _ in rows), default=0) + 12
    most = max((asked for _, asked, _ in rows), default=0) or 1
    scale = (_WIDTH_PX - 120) / most
    picture = svg.picture(names + _WIDTH_PX, len(rows) * _LINE_PX + 10, label, "plot")
    for place, (name, asked, bit) in enumerate(rows):
        y = 4 + place * _LINE_PX
        row = svg.group(picture, "", f"{name}: {asked:,} asked, {bit:,} took effect")
        svg.label(row, names - 8 - svg.text_px(name), y + 14, name)
        svg.box(row, (names, y + 2, asked * scale, _LINE_PX - 6), "asked")
        svg.box(row, (names, y + 2, bit * scale, _LINE_PX - 6), "bit")
        svg.label(row, names + asked * scale + 6, y + 14, f"{bit:,} of {asked:,}", "quiet")
    return svg.markup(picture)


def distributions(rows: Sequence[Distribution], label: str) -> Markup:
    """Draw a histogram for each row on one logarithmic axis of time; each is as high as its own highest column."""
    names = max((svg.text_px(row.name) for row in rows), default=0) + 12
    binned = [_columns(row) for row in rows]
    known = [column for columns in binned for column in columns]
    first = math.floor(min(known, default=0) / _DECADE)
    last = math.ceil((max(known, default=0) + 1) / _DECADE)
    last = max(last, first + 1)
    each_px = _WIDTH_PX / (_DECADE * (last - first))
    notes = max((svg.text_px(_note(row)) for row in rows), default=0) + 16
    bottom = _TOP_PX + _RIDGE_PX * len(rows)
    picture = svg.picture(names + _WIDTH_PX + notes, bottom + _LINE_PX, label, "plot")
    for decade in range(first, last + 1):
        x = names + (decade - first) * _DECADE * each_px
        svg.line(picture, (x, _TOP_PX - 8, x, bottom), "grid")
        svg.label(picture, x, bottom + 15, took(10**decade), "quiet", middle=True)
    for place, (row, columns) in enumerate(zip(rows, binned, strict=True)):
        base = _TOP_PX + (place + 1) * _RIDGE_PX - 6
        svg.line(picture, (names, base, names + _WIDTH_PX, base), "rule")
        svg.label(picture, names - 8 - svg.text_px(row.name), base - 8, row.name)
        svg.label(picture, names + _WIDTH_PX + 12, base - 8, _note(row), "quiet")
        most, total = max(columns.values(), default=1), sum(columns.values())
        for column, count in sorted(columns.items()):
            height = (_RIDGE_PX - 12) * count / most
            x = names + (column - first * _DECADE) * each_px
            span = f"{took(_ns(column))} to {took(_ns(column + 1))}"
            bar = svg.group(
                picture, "", f"{row.name}: {plural(count, 'produce')}, {count / total:.1%}, from {span}"
            )
            svg.box(bar, (x, base - height, each_px - 0.6, height), "latency")
        _draw_marks(picture, row, (names - first * _DECADE * each_px, each_px), base)
    return svg.markup(picture)


def _draw_marks(picture: ET.Element, row: Distribution, scale: tuple[float, float], base: float) -> None:
    zero, each_px = scale
    for name, ns in row.marks.items():
        x = zero + math.log10(max(ns, 1)) * _DECADE * each_px
        mark = svg.group(picture, "", f"{row.name}: {name} {took(round(ns))}")
        svg.line(mark, (x, base - _RIDGE_PX + 12, x, base + 3), f"mark {name}")


def _note(row: Distribution) -> str:
    marks = ", ".join(f"{name} {took(round(ns))}" for name, ns in row.marks.items())
    return f"{sum(count for *_, count in row.counts):,}: {marks}"


def _columns(row: Distribution) -> Counter[int]:
    """Return how many latencies are in each column; a bucket counts where its middle is."""
    found: Counter[int] = Counter()
    for from_ns, to_ns, count in row.counts:
        found[math.floor(math.log10(max((from_ns + to_ns) / 2, 1)) * _DECADE)] += count
    return found


def _ns(column: int) -> int:
    return round(10 ** (column / _DECADE))


def _ticks(most: int) -> list[int]:
    """Return some round numbers from 0 to at least that one."""
    step = 10 ** max(0, math.floor(math.log10(most)) - 1)
    step = next(step * factor for factor in (1, 2, 5, 10, 20, 50) if most / (step * factor) <= 5)
    return [step * place for place in range(math.ceil(most / step) + 1)]
