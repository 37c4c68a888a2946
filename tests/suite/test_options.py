"""A suite's course: options that say how it is played, and what is said and kept of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from harness.cell import Played
from harness.cli.course import SEED_MAX, Course, commit, configure_course, jobs, ports, seed_of
from rich.console import Console

from harness.cli import course as module
from harness.java import Java
from harness.run.suite import Suite
from tests.report.samples import sample


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that nobody starts."""
    found = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    monkeypatch.setattr(module, "find_java", lambda: found)


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    configure_course(parser, ["local"])
    return parser.parse_args(options)


@pytest.mark.parametrize(
    ("text", "expected"), [("20000-20999", range(20000, 21000)), ("1-65535", range(1, 65536))]
)
def test_ports_are_a_range_with_both_ends(text: str, expected: range) -> None:
    assert expected == ports(text)


@pytest.mark.parametrize("text", ["", "1", "0-5", "9-5", "1-65536", "a-b", "1-2-3"])
def test_ports_that_are_no_range_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected FIRST-LAST"):
        ports(text)


@pytest.mark.parametrize("text", ["0", "-1", "two", ""])
def test_jobs_are_a_number_from_one(text: str) -> None:
    assert 2 == jobs("2")
    with pytest.raises(argparse.ArgumentTypeError, match="expected a whole number from 1"):
        jobs(text)


def test_seed_is_the_one_that_was_asked_for_or_chance() -> None:
    assert 0 == seed_of(parsed("--seed", "0"))
    assert {True} == {0 <= seed_of(parsed()) < SEED_MAX for _ in range(9)}


def test_commit_is_that_of_this_checkout_or_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert commit()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "unknown" == commit()


@pytest.mark.usefixtures("java")
def test_course_says_what_is_played_and_keeps_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(width=60)
    arguments = parsed("--seed", "7", "--results", str(tmp_path))
    with console.capture() as said:
        course = Course.begin("some", arguments, 7, "two cells on a target", console)
    assert said.get().startswith("seed 7, commit ")
    assert "host local, two cells on a target, Java 17\n" in said.get()
    cells = sample()[0].cells
    monkeypatch.setattr(module, "judge", lambda *_: (list(cells), {}))
    played = [cast(Played, SimpleNamespace(power_tier=tier)) for tier in ("watermark", "loop", "loop")]
    suite, report = course.conclude(cast(Any, None), played, lambda _: "again", "broker")
    assert ("some", 7, "loop, watermark", cells) == (suite.name, suite.seed, suite.power_tier, suite.cells)
    assert suite.cells == Suite.read(course.folder.suite).cells
    assert report.exists()


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize(
    ("cores", "asked", "leaves"), [(2, (), True), (1, (), False), (2, ("--jobs", "2"), False)]
)
def test_spark_starts_meanwhile_where_cells_leave_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, asked: tuple[str, ...], leaves: bool
) -> None:
    monkeypatch.setattr(module.os, "cpu_count", lambda: cores)
    course = Course.begin("some", parsed("--results", str(tmp_path), *asked), 1, "", Console(quiet=True))
    assert leaves is course.leaves_a_core(cast(Any, SimpleNamespace(jobs=1)))


@pytest.mark.usefixtures("java")
def test_ground_is_closed_when_playing_on_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise OSError("no")

    calls: list[str] = []
    ground = SimpleNamespace(
        jobs=1, name="local", open=lambda _: calls.append("open"), close=lambda: calls.append("close")
    )
    monkeypatch.setattr(module, "play_all", fails)
    course = Course.begin("some", parsed("--results", str(tmp_path)), 1, "", Console(quiet=True))
    with pytest.raises(OSError, match="no"):
        course.play(cast(Any, ground), cast(Any, None), cast(Any, [None]))
    assert ["open", "close"] == calls
