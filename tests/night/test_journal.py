"""A line of a journal is whole or not there; what is torn is dropped; a full disk is met with a reserve."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model import Kind, UsageError, Verdict
from harness.night.count import Count, Finding
from harness.night.journal import LINES, RESERVE, Journal, read_lines, require
from harness.night.state import State
from tests.search.results import result_of


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_torn_last_line_is_dropped_and_the_next_line_is_whole(tmp_path: Path) -> None:
    journal, lines = Journal.open(tmp_path)
    assert [] == lines
    journal.write("begun", unit=1)
    journal.close()
    with (tmp_path / LINES).open("ab") as file:
        file.write(b'{"what": "ended", "uni')
    journal, lines = Journal.open(tmp_path)
    assert ["begun"] == [line["what"] for line in lines]
    journal.write("begun", unit=2)
    journal.close()
    assert [1, 2] == [line["unit"] for line in read_lines(tmp_path / LINES)[0]]


def test_time_at_work_is_that_of_all_sessions_and_nothing_between_them(tmp_path: Path) -> None:
    clock = Clock()
    journal, _ = Journal.open(tmp_path, clock)
    clock.now += 5
    assert 5.0 == journal.write("begun", unit=1)["spent_s"]
    journal.close()
    clock.now += 1_000
    journal, _ = Journal.open(tmp_path, clock)
    clock.now += 2
    assert 7.0 == journal.write("begun", unit=2)["spent_s"]
    journal.close()


def test_line_in_the_middle_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    (tmp_path / LINES).write_bytes(b'{"what": "night", "spent_s": 0}\n{}\n{"what": "begun", "spent_s": 0}\n')
    with pytest.raises(UsageError, match=f"{LINES}:2: .*expected a line of a night's journal"):
        Journal.open(tmp_path)
    with pytest.raises(UsageError, match="version 2; expected 1; move the night's folder away"):
        require({"what": "night", "version": 2}, tmp_path)


def full_for(times: int) -> Callable[[int, memoryview], int]:
    """Return a write to a disk that is full so many times, each after a part of what was to be written."""
    write, left = os.write, [times]

    def written(handle: int, data: memoryview) -> int:
        if left[0] > 0:
            left[0] -= 1
            write(handle, data[:3])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data)

    return written


def test_full_disk_takes_the_reserve_and_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = Journal.open(tmp_path)
    assert (tmp_path / RESERVE).exists()
    monkeypatch.setattr("harness.night.journal.os.write", full_for(1))
    journal.write("begun", unit=1)
    assert not (tmp_path / RESERVE).exists()
    assert 1 == len(read_lines(tmp_path / LINES)[0])
    journal.close()


def test_full_disk_is_made_room_on_first_and_else_ends_the_night_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = Journal.open(tmp_path)
    left = [True, False]
    journal.make_room = lambda: left.pop(0)
    monkeypatch.setattr("harness.night.journal.os.write", full_for(1))
    journal.write("begun", unit=1)
    assert (tmp_path / RESERVE).exists()
    monkeypatch.setattr("harness.night.journal.os.write", full_for(9))
    left += [False] * 9
    with pytest.raises(
        UsageError, match="No space left on device; expected a disk with room; make some, and start"
    ):
        journal.write("begun", unit=2)
    assert journal.failed
    assert [1] == [line["unit"] for line in read_lines(tmp_path / LINES)[0]]
    journal.close()


def test_counts_and_findings_come_back_from_a_journal_unchanged(tmp_path: Path) -> None:
    count = Count(windows=10, available=9, gap_s=2.0)
    result = result_of(Verdict.INVALID, Kind.LOST, Kind.STUCK, seed=4)
    count.add(result)
    count.findings.append(Finding.of(result, folder="findings/x", kept="why"))
    journal, _ = Journal.open(tmp_path)
    journal.write("begun", unit=3)
    journal.write("ran", unit=3, place=0, count=count.to_dict(), used_s=1.5)
    journal.write("ended", unit=3, count=Count().to_dict(), problem="p", notes=["n"], used_s=2.5)
    journal.close()
    progress = State.of(read_lines(tmp_path / LINES)[0]).progress(3)
    assert count == progress.count
    assert ({0}, 2.5, True, "p", ("n",)) == (
        progress.done,
        progress.used_s,
        progress.ended,
        progress.problem,
        progress.notes,
    )


def test_count_is_unknown_if_half_of_its_runs_are_and_its_gravest_finding_else() -> None:
    count = Count()
    assert Verdict.UNKNOWN is count.verdict
    for seed in range(3):
        count.add(result_of(Verdict.VALID, seed=seed))
    count.add(result_of(Verdict.UNKNOWN, Kind.VACUOUS))
    assert (Verdict.VALID, 4, 8, 4) == (count.verdict, count.runs, count.asked["kill"], count.bit["kill"])
    count.findings.append(Finding.of(result_of(Verdict.HANG, Kind.STUCK)))
    assert (Verdict.HANG, 1) == (count.verdict, len(count.violations))
    total = Count.total([count, count])
    assert (8, 16, 2) == (total.runs, total.asked["kill"], len(total.findings))
