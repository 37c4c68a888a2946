"""The plot of shares by night: a line for each host; its numbers are in its tooltips and a table too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from harness.report import svg

_AXIS_PX: Final = 58.0
_STEP_PX: Final = 84.0
_HEIGHT_PX: Final = 160.0
_TOP_PX: Final = 14.0
_LINE_PX: Final = 22.0
_DOT_PX: Final = 3.5


def shares(
    nights: Sequence[str], hosts: Mapping[str, Sequence[float | None]], css: Mapping[str, str], label: str
) -> Markup:
    """
    Draw the share of each night, host by host.

    Args:
        nights: what is written below each place.
        hosts: host -> its share in each night, None if it has none there.
        css: host -> the CSS class of its line.
        label: what the plot shows, for those who do not see it.
    """
    width = _AXIS_PX + _STEP_PX * len(nights)
    picture = svg.picture(width + 8, _TOP_PX + _HEIGHT_PX + 2 * _LINE_PX, label, "plot")
    bottom = _TOP_PX + _HEIGHT_PX
    for percent in (0, 25, 50, 75, 100):
        y = bottom - _HEIGHT_PX * percent / 100
        svg.line(picture, (_AXIS_PX - 4, y, width, y), "rule" if percent == 0 else "grid")
        text = f"{percent} %"
        svg.label(picture, _AXIS_PX - 8 - svg.text_px(text), y + 4, text, "quiet")
    for host, values in hosts.items():
        group = svg.group(picture, f"share {css[host]}", host)
        points = [
            (_AXIS_PX + (place + 0.5) * _STEP_PX, bottom - _HEIGHT_PX * share)
            for place, share in enumerate(values)
            if share is not None
        ]
        if len(points) > 1:
            svg.path(group, "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points), "way")
        told = [(night, share) for night, share in zip(nights, values, strict=True) if share is not None]
        for (x, y), (night, share) in zip(points, told, strict=True):
            dot = svg.group(group, "", f"{host}, {night}: {percent_of(share)}")
            svg.box(dot, (x - _DOT_PX, y - _DOT_PX, 2 * _DOT_PX, 2 * _DOT_PX), "dot", round_=_DOT_PX)
    for place, night in enumerate(nights):
        svg.label(picture, _AXIS_PX + (place + 0.5) * _STEP_PX, bottom + 17, night, middle=True)
    return svg.markup(picture)


def percent_of(share: float) -> str:
    """Return a share in percent, rounded down: what was not always available is never 100 %."""
    return f"{int(share * 1000) / 10:.1f} %"
