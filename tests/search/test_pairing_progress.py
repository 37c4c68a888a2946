"""A comparison that was cut off goes on where it ended, whatever the end tore."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.cli.logbook import Entry, Logbook

from harness.model import UsageError

ABOUT = {"theirs": "kafka:1", "ours": "broker:hw", "host": "local"}


def entry(side: str, seed: int) -> Entry:
    return Entry(side=side, seed=seed, run=f"play-1/seed-{seed}-{side}", commit="abc", seconds=1.5)


def test_rounds_that_were_played_are_known_after_a_new_start(tmp_path: Path) -> None:
    first = Logbook(tmp_path / "book", ABOUT)
    first.add(entry("ours", 3))
    again = Logbook(tmp_path / "book", ABOUT)
    assert (True, False, False) == (again.has("ours", 3), again.has("theirs", 3), again.has("ours", 4))
    assert entry("ours", 3) == again.entries["ours", 3]
    assert tmp_path / "book/play-1/seed-3-ours" == again.run_of(again.entries["ours", 3]).path


def test_line_that_a_kill_has_torn_is_dropped_and_the_next_is_whole(tmp_path: Path) -> None:
    first = Logbook(tmp_path, ABOUT)
    first.add(entry("ours", 0))
    with (tmp_path / "rounds.jsonl").open("a") as file:
        file.write('{"side":"theirs","se')
    torn = Logbook(tmp_path, ABOUT)
    assert {("ours", 0)} == set(torn.entries)
    torn.add(entry("theirs", 0))
    assert {("ours", 0), ("theirs", 0)} == set(Logbook(tmp_path, ABOUT).entries)


def test_comparison_of_something_else_does_not_go_on_here(tmp_path: Path) -> None:
    Logbook(tmp_path, ABOUT)
    with pytest.raises(UsageError, match="expected the same"):
        Logbook(tmp_path, {**ABOUT, "ours": "broker:kip380"})


def test_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="expected a folder that can be written"):
        Logbook(tmp_path / "file" / "book", ABOUT)


def test_every_sitting_has_a_folder_of_its_own(tmp_path: Path) -> None:
    book = Logbook(tmp_path, ABOUT)
    assert ["play-1", "play-2"] == [book.begin_sitting().path.name for _ in range(2)]
