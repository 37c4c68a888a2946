"""The page of a summary has every plot, and its numbers in words; a terminal has what it has room for."""

from __future__ import annotations

import re
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from harness.report.summary_page import build_summary, headline
from harness.report.summary_plots import Distribution, distributions, pairs, stacked
from harness.report.summary_table import OUTCOMES, render_summary
from harness.version import build
from tests.report.pages import Page, problems_of

HOSTILE = "</title></svg><script>alert('x')</script>\"'&\x00\x1b http://evil.example"
NIGHTS = (date(2026, 11, 20), date(2026, 11, 21))


def _counted(value: str, clock: str = "virtual", **more: Any) -> dict[str, Any]:
    counts = dict.fromkeys((*OUTCOMES, "status_mismatch", "status_unknown", "fail", "info", "open"), 0)
    measured = {"p50_ms": 0.2, "p90_ms": 0.8, "p99_ms": 1.5, "max_ms": 12.0, "windows": 2000}
    available = {"available_windows": 1999, "unavailable_s": 0.01, "unavailable_in": "one/a", "around": "kill"}
    about = {"value": value, "clock": clock, "runs": 3, "status_as_expected": 3, "ok": 30, "anomalies": 2}
    return counts | measured | available | about | {"asked": 9, "bit": 7, "available_share": 0.9995} | more


def frames(folder: Path, name: str = "kip101", suite: str = "one") -> dict[str, pd.DataFrame]:
    """Return the aggregates of a tiny data set."""
    nights = [
        _counted("2026-11-20", valid=2, invalid=1),
        _counted("2026-11-21", runs=4, valid=1, hang=1, unreadable=2, status_as_expected=1, status_mismatch=1),
        _counted("2026-11-21", "real", permitted=3),
    ]
    runs = [
        {"run": "a", "workload": name, "protocol": "hw", "place": 0, "status": "as expected", "outcome": "valid"},
        {"run": "b", "workload": name, "protocol": "hw", "place": 1, "status": "mismatch", "outcome": "invalid"},
    ]
    about = {"night": NIGHTS[0], "suite": suite, "odd": False}
    bucket = {"family": name, "acks": -1, "bucket": 1, "from_ns": 200_000, "to_ns": 210_000, "max_ns": 209_000}
    counted = _counted("")
    return {
        "nights": pd.DataFrame(nights),
        **{
            t: pd.DataFrame([_counted(name), _counted(name, "real")])
            for t in ("protocols", "releases", "workloads")
        },
        "anomalies": pd.DataFrame(
            [{"kind": "lost", "verdict": "invalid", "family": name, "anomalies": 2, "runs": 1, "offsets": 5}]
        ),
        "faults": pd.DataFrame([{"kind": "kill", "asked": 9, "bit": 7, "runs": 3, "runs_bit": 2}]),
        "latencies": pd.DataFrame(
            [
                {"clock": "virtual", "outcome": "ok", "count": 30, **bucket},
                {"clock": "virtual", "outcome": "info", "count": 4, **bucket},
            ]
        ),
        "availability": pd.DataFrame([{**counted, "family": name, "night": NIGHTS[0]}]),
        "unreadable": pd.DataFrame([{"night": None, "suite": suite, "run": None, "reason": "suite.json: cut"}]),
        "suites": pd.DataFrame([{"night": NIGHTS[0], "suite": suite}]),
        "links": pd.DataFrame([{**about, **run, "path": f"{folder}/{suite}/{run['run']}"} for run in runs]),
        "totals": pd.DataFrame(
            [
                {
                    **_counted(
                        "", runs=10, valid=3, permitted=3, hang=1, invalid=1, unreadable=2, status_mismatch=1
                    ),
                    "suites": 1,
                    "nights": 2,
                    "unreadable_rows": 3,
                    "unreadable_suites": 1,
                }
            ]
        ),
    }


def _page(folder: Path, **names: str) -> Page:
    return Page(build_summary(frames(folder, **names), folder / "summary.html").read_text(encoding="utf-8"))


def _labels(page: Page) -> list[str]:
    return [drawing.get("aria-label") or "" for drawing in page.drawings() if drawing.get("role") == "img"]


def test_page_stands_alone_and_has_every_plot_with_its_numbers_in_words(tmp_path: Path) -> None:
    page = _page(tmp_path)
    assert [] == problems_of(page)
    assert [
        "Runs of each night by verdict. 2026-11-20: 2 valid, 1 invalid; 2026-11-21: 1 valid, 3 permitted, 1 hang, "
        "2 unreadable.",
        "Runs of each night by comparison with their expectation. 2026-11-20: 3 as expected; 2026-11-21: "
        "4 as expected, 1 mismatch, 2 unreadable.",
        "Faults that took effect, of those that were asked. kill: 7 of 9.",
        "Latencies of acknowledged produces by protocol, virtual time. kip101: p50 0.2 ms, p99 1.5 ms.",
    ] == _labels(page)
    for text in ("2 in 1 run", "99.9 % 0.01 s, around kill", "suite.json: cut", "7 of 9"):
        assert text in page.text, text


def test_headline_says_how_it_came_out(tmp_path: Path) -> None:
    totals = frames(tmp_path)["totals"].to_dict("records")[0]
    assert (
        "10 runs, 1 suite, 2 nights: 3 valid, 3 permitted, 1 hang, 1 invalid, 2 unreadable; "
        "not as expected: 1 mismatch." == headline(totals)
    )
    fine = {**totals, "status_mismatch": 0, "runs": 1}
    assert headline(fine).endswith("2 unreadable; all that can be read is as expected.")


def test_each_run_leads_to_its_section_in_the_report_where_there_is_one(tmp_path: Path) -> None:
    assert not [target for _, _, target in _page(tmp_path).targets if "report" in target]
    (tmp_path / "one #1").mkdir()
    (tmp_path / "one #1" / "report.html").write_text("x", encoding="utf-8")
    page = _page(tmp_path, suite="one #1")
    reports = [target for _, _, target in page.targets if "report" in target]
    report = "one%20%231/report.html"
    assert [report, f"{report}#cell-kip101-hw", f"{report}#cell-kip101-hw--2"] == reports


def test_page_escapes_whatever_a_name_holds(tmp_path: Path) -> None:
    page = _page(tmp_path, name=HOSTILE, suite="<b>&\"'")
    assert [] == problems_of(page)
    assert "script" not in page.tags


def test_page_of_nothing_is_a_page(tmp_path: Path) -> None:
    some = frames(tmp_path)
    none = {name: frame.iloc[:0] for name, frame in some.items()} | {"totals": some["totals"] * 0}
    page = Page(build_summary(none, tmp_path / "s.html").read_text(encoding="utf-8"))
    assert [] == problems_of(page)
    assert "0 runs, 0 suites, 0 nights: none" in page.text
    assert "No produce was acknowledged." in page.text


# --- plots -------------------------------------------------------------------------------------------------------
def _heights(plot: str, css: str) -> list[float]:
    found = re.findall(rf'class="part {css}"><title>[^<]*</title><rect [^>]*height="([\d.]+)"', plot)
    return [float(height) for height in found]


def test_parts_of_a_bar_are_as_high_as_their_counts() -> None:
    css = {"a": "o-a", "b": "o-b"}
    plot = stacked([("x", {"a": 30, "b": 10}), ("y", {"a": 15})], css, "label")
    (first, second), (third,) = _heights(plot, "o-a"), _heights(plot, "o-b")
    assert first == pytest.approx(2 * second, abs=0.2)
    assert first == pytest.approx(3 * third, abs=0.2)
    assert "<title>x: 10 b</title>" in plot


def test_one_of_very_many_can_be_seen() -> None:
    plot = stacked([("x", {"a": 100_000, "b": 1})], {"a": "o-a", "b": "o-b"}, "label")
    assert _heights(plot, "o-b") == [3.0]


def test_bar_of_faults_is_filled_as_far_as_they_took_effect() -> None:
    plot = pairs([("kill", 40, 10), ("pause", 8, 8)], "label")
    asked, bit = (
        [float(width) for width in re.findall(rf'width="([\d.]+)"[^>]*class="{css}"', plot)]
        for css in ("asked", "bit")
    )
    assert [asked[0] / 4, asked[0] / 5] == pytest.approx(bit, abs=0.2)
    assert asked[1] == pytest.approx(bit[1])


def test_latencies_are_drawn_where_they_are_on_the_axis() -> None:
    row = Distribution(name="hw", counts=[(10**6, 10**6, 3), (10**8, 10**8, 1)], marks={"p50": 1e6, "max": 1e8})
    plot = distributions([row], "label")
    lefts = [float(x) for x in re.findall(r'<rect x="([\d.]+)"[^>]*class="latency"', plot)]
    marks = [float(x) for x in re.findall(r'<line x1="([\d.]+)"[^>]*class="mark', plot)]
    assert lefts == pytest.approx(marks, abs=0.1)
    assert "hw: 3 produces, 75.0%, from 1.0 ms to 1.3 ms" in plot
    assert "4: p50 1.0 ms, max 100.0 ms" in plot


# --- terminal ----------------------------------------------------------------------------------------------------
def _printed(folder: Path, width: int) -> str:
    console = Console(width=width, file=StringIO(), no_color=True)
    render_summary(frames(folder), console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 120, 240])
def test_tables_are_never_wider_than_the_terminal(tmp_path: Path, width: int) -> None:
    assert max(map(len, _printed(tmp_path, width).splitlines())) <= width


def test_columns_for_which_there_is_no_room_are_named(tmp_path: Path) -> None:
    wide, narrow = _printed(tmp_path, 240), _printed(tmp_path, 60)
    assert "no room" not in wide
    for word in ("unexpected", "99.9 %", "12.0 ms", "longest gap", "suite.json: cut"):
        assert word in wide, word
    assert "12.0 ms" not in narrow
    assert "no room for" in narrow
    assert "--csv protocols" in narrow
    # A column in which all is zero says nothing.
    assert "never ended" not in wide


def test_page_names_the_build_that_wrote_it(tmp_path: Path) -> None:
    assert f"Written by {build()}." in _page(tmp_path).text
