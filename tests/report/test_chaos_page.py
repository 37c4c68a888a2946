"""The page of a long run: its minutes, its faults, and the commands that play it again."""

from __future__ import annotations

from pathlib import Path

from harness.model import Anomaly, Kind, Verdict
from harness.report.chaos_page import LongRun, build_chaos_page, minutes_of
from harness.run.result import Activity
from harness.version import build
from tests.report.pages import Page, problems_of
from tests.report.samples import sample_result

LOST = Anomaly(kind=Kind.LOST, topic="log", partition=0, sentence="m1 was lost <on A>.", proof=(1,))


def test_minutes_count_the_seconds_that_were_tried_and_those_that_were_available() -> None:
    windows = {0: True, 1: False, 59: True, 60: False, 61: False, 181: True}
    assert [(0, 3, 2), (1, 2, 0), (2, 0, 0), (3, 1, 1)] == [
        (minute.number, minute.tried, minute.available) for minute in minutes_of(windows)
    ]
    assert [2 / 3, 0.0, 1.0, 1.0] == [minute.share for minute in minutes_of(windows)]
    assert [] == minutes_of({})


def test_page_has_the_verdict_every_minute_every_fault_and_the_commands(tmp_path: Path) -> None:
    result = sample_result(
        "kip101-1",
        "hw",
        verdict=Verdict.INVALID,
        anomalies=(LOST, LOST),
        activity=Activity(asked={"kill": 3, "pause": 1, "hold": 0}, bit={"kill": 2}, records_sent=1234),
    )
    run = LongRun(
        result=result,
        windows={0: True, 1: False, 70: False, 130: True},
        spans=[("kill", 1_000_000_000, 5_000_000_000), ("pause", 70_000_000_000, 70_000_000_000)],
        seconds=150.0,
        again=[("fencepost run --seed 1", "The seed."), ("fencepost run --schedule x.txt", "The steps.")],
    )
    page = Page(build_chaos_page(run, tmp_path / "chaos.html").read_text(encoding="utf-8"))
    assert f"Written by {build()}." in page.text
    for text in (
        "invalid",
        "2 lost",
        "m1 was lost &lt;on A&gt;.",
        "1,234",
        "2 of 4",
        "fencepost run --schedule x.txt",
    ):
        assert text in page.html
    availability, faults = ("".join(each.itertext()) for each in page.drawings()[-2:])
    for text in ("minute 0: 1 of 2 seconds available", "minute 1: 0 of 1", "minute 2: 1 of 1"):
        assert text in availability
    assert "kill: from 1.0 s to 5.0 s" in availability
    assert "pause: from 70.0 s to 70.0 s" in availability
    assert "kill: 3 asked, 2 took effect" in faults
    assert "hold" not in faults
    assert [] == problems_of(page)
