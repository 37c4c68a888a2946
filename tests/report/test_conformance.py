"""The table of Apache Kafka's results beside our broker's: its rows, and when the two are alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from harness.report.conformance import Pair, Standing, render_conformance
from harness.report.console import COLUMNS_UNBOUNDED
from harness.run.result import RunResult, Status
from tests.report.samples import sample, suite_of

RESULT = sample()[0].results[0]


def result(
    protocol: str, expected: str = "lost m2", status: Status = Status.AS_EXPECTED, found: str = ""
) -> RunResult:
    return replace(
        RESULT,
        protocol=protocol,
        run=protocol,
        expected=expected,
        status=status,
        found=found or expected,
        reason="why it is so",
    )


def pair(theirs: RunResult | None, ours: RunResult | None, release: str = "1.1.1", why: str = "") -> Pair:
    return Pair(scenario="kip101-1", release=release, models="kip101", theirs=theirs, ours=ours, why=why)


def printed(*pairs: Pair, width: int = 120) -> str:
    results = {one.run: one for each in pairs for one in (each.theirs, each.ours) if one is not None}
    console = Console(width=width)
    with console.capture() as capture:
        render_conformance(suite_of(list(results.values())), pairs, console)
    return capture.get()


@pytest.mark.parametrize(
    ("theirs", "ours", "standing"),
    [
        (result("1.1.1"), result("kip101"), Standing.ALIKE),
        (result("1.1.1"), None, Standing.ALIKE),
        (result("1.1.1", "none"), result("kip101"), Standing.DIFFERS),
        (result("1.1.1", status=Status.MISMATCH), result("kip101"), Standing.WRONG),
        (result("1.1.1"), result("kip101", status=Status.MISMATCH), Standing.WRONG),
        (result("1.1.1", status=Status.UNKNOWN), result("kip101", status=Status.MISMATCH), Standing.WRONG),
        (result("1.1.1", status=Status.UNKNOWN), result("kip101"), Standing.UNKNOWN),
        (result("1.1.1"), result("kip101", status=Status.UNKNOWN), Standing.UNKNOWN),
        (None, None, Standing.NOT_PLAYED),
    ],
)
def test_release_stands_to_ours_as_both_came_out(
    theirs: RunResult | None, ours: RunResult | None, standing: Standing
) -> None:
    assert standing is pair(theirs, ours).standing


def test_releases_that_came_out_alike_share_a_row() -> None:
    ours = result("kip101")
    text = printed(pair(result("1.1.1"), ours), pair(result("0.11.0.3"), ours, "0.11.0.3"))
    (row,) = [line for line in text.splitlines() if "1.1.1" in line]
    assert ["kip101-1", "1.1.1 0.11.0.3", "kip101", "lost m2", "as expected", "as expected", "✓"] == [
        word.strip() for word in row.strip("│").split("│")
    ]


def test_row_in_a_pipe_names_its_scenario() -> None:
    ours = result("kip101")
    pairs = (pair(result("1.1.1"), ours), pair(result("0.11.0.3", status=Status.MISMATCH), ours, "0.11.0.3"))
    rows = [line for line in printed(*pairs, width=COLUMNS_UNBOUNDED).splitlines() if line.startswith("│")]
    assert ["kip101-1", "kip101-1"] == [row.split("│")[1].strip() for row in rows]


def test_difference_with_a_reason_is_printed_with_what_is_expected_of_each() -> None:
    text = printed(pair(result("2.1.1@1.1", "none"), result("kip101"), "2.1.1@1.1"))
    (row,) = [line for line in text.splitlines() if "2.1.1@1.1" in line]
    assert row.rstrip("│ ").endswith("≠")
    assert ["none", "as expected"] == [word.strip() for word in row.split("│")[4:6]]
    assert "lost m2, as" in text


def test_what_is_not_as_expected_is_printed_with_its_reason_and_its_command() -> None:
    odd = result("1.1.1", status=Status.MISMATCH, found="none")
    text = printed(pair(odd, result("kip101")))
    assert "none: mismatch" in " ".join(text.split())
    assert "why it is so" in text and f"again: {odd.rerun}" in text


def test_what_was_not_played_says_why() -> None:
    text = " ".join(printed(pair(None, None, why="no such format"), pair(result("2.0.0"), None, "2.0.0")).split())
    assert "no such format" in text
    assert "nothing is expected" in text


@pytest.mark.parametrize("width", [40, 80])
def test_every_release_is_on_the_table_whatever_its_width(width: int) -> None:
    text = printed(pair(result("1.1.1"), result("kip101")), pair(result("2.0.0"), None, "2.0.0"), width=width)
    assert "1.1.1" in text and "2.0.0" in text and "lost m2" in text
