"""
The page of a long run: how available it was minute by minute, and which faults were in force meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup

from harness.report import svg
from harness.report.page import environment, write_page
from harness.report.summary_plots import pairs
from harness.run.result import RunResult
from harness.version import build

_MINUTE_S: Final = 60
_WIDTH_PX: Final = 900.0
_NAMES_PX: Final = 190.0
_BARS_PX: Final = 120.0
_LANE_PX: Final = 18.0
_TOP_PX: Final = 10.0
# A fault that lasted for a moment is still to be seen.
_SEEN_PX: Final = 2.0
# A minute in which at least this share of the seconds was available is not worth a look.
_FINE: Final = 0.95

# A fault's name, and its first and last moment in nanoseconds since the run began.
Span = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """
    What the page of a long run shows.

    Attributes:
        windows: second of the run -> whether a record was acknowledged in it; only seconds in which one was tried.
        spans: when each fault was in force.
        again: commands that play the run again, each with what it repeats.
    """

    result: RunResult
    windows: Mapping[int, bool]
    spans: Sequence[Span]
    seconds: float
    again: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """A minute of the run: how many of its seconds were tried, and how many of these were available."""

    number: int
    tried: int
    available: int

    @property
    def share(self) -> float:
        """The share of the tried seconds that was available; 1 if none was tried."""
        return self.available / self.tried if self.tried else 1.0


def minutes_of(windows: Mapping[int, bool]) -> list[Minute]:
    """Return every minute from the first to the last second that was tried."""
    if not windows:
        return []
    numbers = range(min(windows) // _MINUTE_S, max(windows) // _MINUTE_S + 1)
    return [
        Minute(
            number=number,
            tried=sum(second // _MINUTE_S == number for second in windows),
            available=sum(found and second // _MINUTE_S == number for second, found in windows.items()),
        )
        for number in numbers
    ]


def build_chaos_page(run: LongRun, out: Path) -> Path:
    """Write the page and return its path."""
    minutes = minutes_of(run.windows)
    asked = run.result.activity.asked
    rows = [(kind, asked[kind], run.result.activity.bit.get(kind, 0)) for kind in sorted(asked) if asked[kind]]
    text = (
        environment()
        .get_template("chaos.html.j2")
        .render(
            run=run,
            build=build(),
            verdict=run.result.verdict.name.lower(),
            kinds=Counter(anomaly.kind.value for anomaly in run.result.anomalies).most_common(),
            plot=plot(run, minutes),
            bit=pairs(rows, "How often each fault was asked for, and took effect"),
            minutes=minutes,
            tried=sum(each.tried for each in minutes),
            available=sum(each.available for each in minutes),
        )
    )
    return write_page(text, out)


def plot(run: LongRun, minutes: Sequence[Minute]) -> Markup:
    """Draw a bar for each minute, as high as its share of available seconds, and a lane for each fault."""
    kinds = sorted({name for name, _, _ in run.spans})
    end_s = max(
        [1.0, run.seconds, *(last / 1e9 for _, _, last in run.spans), *(60.0 * (m.number + 1) for m in minutes)]
    )
    scale = _WIDTH_PX / end_s
    base = _TOP_PX + _BARS_PX
    height = base + 24 + _LANE_PX * len(kinds) + 8
    picture = svg.picture(
        _NAMES_PX + _WIDTH_PX + 10, height, "Availability by minute, and the faults in force", "plot"
    )
    for share in (0.0, 0.5, 1.0):
        y = base - share * _BARS_PX
        svg.line(picture, (_NAMES_PX, y, _NAMES_PX + _WIDTH_PX, y), "rule" if share == 0 else "grid")
        text = f"{share:.0%}"
        svg.label(picture, _NAMES_PX - 8 - svg.text_px(text), y + 4, text, "quiet")
    width = max(1.0, _MINUTE_S * scale - 1)
    for minute in minutes:
        x, tall = _NAMES_PX + minute.number * _MINUTE_S * scale, max(1.0, minute.share * _BARS_PX)
        css = "o-valid" if minute.share >= _FINE else "o-unknown" if minute.available else "o-invalid"
        title = f"minute {minute.number}: {minute.available} of {minute.tried} seconds available"
        svg.box(svg.group(picture, f"part {css}", title), (x, base - tall, width, tall), "bar")
    step = max(1, round(end_s / _MINUTE_S / 15))
    for number in range(0, int(end_s // _MINUTE_S) + 1, step):
        svg.label(picture, _NAMES_PX + number * _MINUTE_S * scale, base + 15, f"{number} min", "quiet")
    for place, kind in enumerate(kinds):
        y = base + 24 + place * _LANE_PX
        svg.label(picture, _NAMES_PX - 8 - svg.text_px(kind), y + 12, kind)
        svg.line(picture, (_NAMES_PX, y + _LANE_PX - 3, _NAMES_PX + _WIDTH_PX, y + _LANE_PX - 3), "grid")
        for name, since_ns, until_ns in run.spans:
            if name == kind:
                x = _NAMES_PX + since_ns / 1e9 * scale
                wide = max(_SEEN_PX, (until_ns - since_ns) / 1e9 * scale)
                title = f"{kind}: from {since_ns / 1e9:.1f} s to {until_ns / 1e9:.1f} s"
                svg.box(svg.group(picture, "", title), (x, y + 2, wide, _LANE_PX - 7), "bit")
    return svg.markup(picture)
