"""The rules of a failing disk: what each error refuses, what is counted, and what a failed fsync takes."""

from __future__ import annotations

import pytest

from harness.cluster.disk_error import SLOW_MS, DiskError
from harness.hosts.fault_rules import ASK, CHANGE, FSYNC, MAKE, MET_MAX, READ, REFUSED, WRITE, FaultRules

KINDS = (READ, WRITE, MAKE, CHANGE, FSYNC, ASK)


class Files:
    """Lengths by path, and how long the rules waited."""

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        self.waited_s: list[float] = []
        self.rules = FaultRules(self.lengths.__getitem__, self.lengths.__setitem__, self.waited_s.append)

    def written(self, path: str, length: int) -> None:
        self.lengths[path] = length


@pytest.fixture
def files() -> Files:
    return Files()


def refused_by(rules: FaultRules) -> dict[str, int | None]:
    """Return the kinds of calls that fail now, and with what."""
    found: dict[str, int | None] = {}
    for kind in KINDS:
        try:
            rules.check(kind, "/t-0/log", 7)
        except OSError as error:
            found[kind] = error.errno
    return found


def test_each_error_is_a_word_of_the_rules() -> None:
    assert {*DiskError, ""} == REFUSED.keys()


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ("full", {WRITE: 28, MAKE: 28}),
        ("write", {WRITE: 5}),
        ("flush", {FSYNC: 5}),
        ("read", {READ: 5}),
        ("read-only", {WRITE: 30, MAKE: 30, CHANGE: 30}),
        ("slow", {}),
        ("", {}),
    ],
)
def test_error_refuses_its_calls_and_no_others(files: Files, error: str, refused: dict[str, int]) -> None:
    files.written("/t-0/log", 7)
    files.rules.set(error)
    files.rules.fits(2)  # of a full disk's last bytes
    assert refused == refused_by(files.rules)
    assert len(refused) == files.rules.refused
    files.rules.mend()
    assert {} == refused_by(files.rules)


def test_refused_call_is_described_with_its_file_and_size(files: Files) -> None:
    files.rules.set("full")
    files.rules.fits(2)
    with pytest.raises(OSError, match="No space left"):
        files.rules.check(WRITE, "/t-0/000.log", 123)
    assert ["ENOSPC at t-0/000.log, write of 123 bytes"] == files.rules.seen()["met"]


def test_full_disk_takes_a_half_of_the_first_write_alone(files: Files) -> None:
    assert 100 == files.rules.fits(100)
    files.rules.set("full")
    files.rules.check(WRITE, "/log", 100)
    assert (50, 0) == (files.rules.fits(100), files.rules.refused)
    with pytest.raises(OSError, match="No space left"):
        files.rules.check(WRITE, "/log", 50)
    files.rules.mend()
    assert 100 == files.rules.fits(100)


def test_only_the_first_are_described_and_all_are_counted(files: Files) -> None:
    files.rules.set("read")
    for _ in range(MET_MAX + 3):
        with pytest.raises(OSError, match="Input/output"):
            files.rules.check(READ, "/log")
    assert (MET_MAX, MET_MAX + 3) == (len(files.rules.met), files.rules.refused)


def test_what_the_disk_below_refuses_counts_too_and_a_missing_file_does_not(files: Files) -> None:
    files.rules.set("")
    files.rules.failed(OSError(28, "No space left on device"), WRITE, "/log", 9)
    files.rules.failed(FileNotFoundError(2, "No such file"), CHANGE, "/log")
    assert (1, ["ENOSPC at log, write of 9 bytes"]) == (files.rules.refused, files.rules.met)


def test_slow_disk_waits_for_each_call_on_bytes(files: Files) -> None:
    files.rules.set("slow")
    assert {} == refused_by(files.rules)
    assert [SLOW_MS / 1000] * 4 == files.waited_s
    assert 4 == files.rules.slowed


def test_failed_fsync_takes_what_was_written_since_the_last_one(files: Files) -> None:
    rules = files.rules
    rules.created("/log")
    files.written("/log", 100)
    rules.flushed("/log")
    files.written("/log", 160)
    rules.set("flush")
    with pytest.raises(OSError, match="Input/output"):
        rules.check(FSYNC, "/log")
    assert 160 == files.lengths["/log"], "it can be read until the broker has ended"
    rules.mend()
    assert 100 == files.lengths["/log"]
    assert "60 bytes in 1 files are gone with it" in rules.met


def test_later_fsync_does_not_bring_back_what_an_earlier_one_lost(files: Files) -> None:
    """fsyncgate: the pages are marked clean, so the next fsync succeeds and makes nothing durable."""
    rules = files.rules
    rules.created("/log")
    files.written("/log", 50)
    rules.set("flush")
    with pytest.raises(OSError, match="Input/output"):
        rules.check(FSYNC, "/log")
    rules.flushed("/log")
    rules.mend()
    assert 0 == files.lengths["/log"]


def test_bytes_written_behind_a_cut_are_new(files: Files) -> None:
    rules = files.rules
    files.written("/log", 100)
    rules.opened("/log")
    rules.cut("/log", 40)
    files.written("/log", 90)
    rules.set("flush")
    with pytest.raises(OSError, match="Input/output"):
        rules.check(FSYNC, "/log")
    rules.mend()
    assert 40 == files.lengths["/log"]


def test_renamed_file_keeps_what_is_durable_of_it(files: Files) -> None:
    rules = files.rules
    rules.created("/t-0/cp.tmp")
    files.written("/t-0/cp.tmp", 30)
    rules.flushed("/t-0/cp.tmp")
    files.written("/gone-0/cp", 30)
    rules.renamed("/t-0", "/gone-0")
    rules.renamed("/gone-0/cp.tmp", "/gone-0/cp")
    files.written("/gone-0/cp", 45)
    rules.set("flush")
    with pytest.raises(OSError, match="Input/output"):
        rules.check(FSYNC, "/gone-0/cp")
    rules.mend()
    assert 30 == files.lengths["/gone-0/cp"]


def test_flush_from_outside_makes_all_durable(files: Files) -> None:
    rules = files.rules
    rules.created("/log")
    files.written("/log", 100)
    rules.all_durable()
    files.written("/log", 130)
    rules.set("flush")
    with pytest.raises(OSError, match="Input/output"):
        rules.check(FSYNC, "/log")
    rules.mend()
    assert 100 == files.lengths["/log"]


def test_file_that_was_only_read_loses_nothing_by_a_failed_fsync(files: Files) -> None:
    files.written("/cp", 100)
    files.rules.set("flush")
    with pytest.raises(OSError, match="Input/output"):
        files.rules.check(FSYNC, "/cp")
    files.rules.mend()
    assert 100 == files.lengths["/cp"]


def test_word_that_is_no_error_is_refused(files: Files) -> None:
    with pytest.raises(OSError, match="disk error 'soggy': expected one of full, write"):
        files.rules.set("soggy")
