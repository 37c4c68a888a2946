"""The file of epochs says which epoch a byte of the log is of, or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.beneath import Folder
from harness.logs.record import NO_EPOCH
from targets.rocketmq.logs.epochs import FILE, epoch_at, starts_in
from tests.targets.rocketmq.records import epochs

# What release 5.5.0 wrote.
REAL = "2\n832967443\n1-0\n2-1105\n"


def read(data: Path) -> list[tuple[int, int]]:
    with Folder.at(data) as folder:
        return list(starts_in(folder))


# --- the file --------------------------------------------------------------------------------------------------
def test_file_that_a_broker_wrote_is_read_and_is_what_is_built_here(tmp_path: Path) -> None:
    assert (REAL, FILE) == (epochs(tmp_path, (1, 0), (2, 1105)).read_text(), "epochFileCheckpoint")
    assert [(1, 0), (2, 1105)] == read(tmp_path)


def test_epochs_need_not_begin_with_one_nor_follow_one_another(tmp_path: Path) -> None:
    starts = [(3, 627), (7, 2**40), (2**31 - 1, 2**62)]
    epochs(tmp_path, *starts)
    assert starts == read(tmp_path)


def test_broker_without_the_file_has_no_epochs(tmp_path: Path) -> None:
    assert [] == read(tmp_path)


@pytest.mark.parametrize("text", [b"", b"2", b"2\n", b"0\n0\n", b"\n\n\n\n", b"\xff\xfe\x00" * 99, b"x\ny\nz\n"])
def test_file_without_a_line_of_an_epoch_has_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / FILE).write_bytes(text)
    assert [] == read(tmp_path)


@pytest.mark.parametrize(
    "line", ["", "-", "1-", "-0", "1", "x-0", "1-x", "1-0-0", "1--", "9" * 5000 + "-0", "1_0"]
)
def test_line_that_is_no_epoch_raises_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_text(f"1\n0\n{line}\n")
    read(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        REAL[:-3],  # cut within a number
        REAL[:-8],  # cut before the second epoch
        REAL.replace("2-1105", "2-1106"),
        REAL.replace("832967443", "832967444"),
        REAL.replace("832967443", "x"),
        REAL.replace("2\n", "3\n", 1),
        REAL.replace("1-0\n", "1-0\nnonsense\n"),
        REAL.replace("2-1105", "2-"),
    ],
)
def test_file_that_is_damaged_has_no_epochs(tmp_path: Path, text: str) -> None:
    """It is written in place: of a broker that is killed meanwhile the last number may be cut."""
    (tmp_path / FILE).write_text(text)
    assert [] == read(tmp_path)


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    file = epochs(tmp_path, (1, 0))
    file.rename(tmp_path / "kept")
    if kind == "link":
        file.symlink_to(tmp_path / "kept")
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.mkdir()
    assert [] == read(tmp_path)


# --- which epoch a byte is of ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("position", "epoch"),
    [(0, NO_EPOCH), (99, NO_EPOCH), (100, 1), (101, 1), (626, 1), (627, 2), (628, 2), (1999, 2), (2000, 5)],
)
def test_epoch_begins_with_its_first_byte_and_lasts_until_the_next_one(position: int, epoch: int) -> None:
    assert epoch == epoch_at([(1, 100), (2, 627), (5, 2000)], position)


def test_last_epoch_has_no_end_and_without_epochs_there_is_none() -> None:
    assert (5, NO_EPOCH) == (epoch_at([(1, 0), (5, 2000)], 2**62), epoch_at([], 0))


def test_of_two_epochs_that_begin_at_one_byte_the_later_one_counts() -> None:
    assert [1, 3, 3] == [epoch_at([(1, 0), (2, 627), (3, 627)], position) for position in (626, 627, 628)]
