"""A batch whose bytes have changed in the file is returned by no read; those before it are."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from targets.broker.core.log_port import DamagedError, LeoAfterCut
from targets.broker.core.messages import Batch
from targets.broker.log import FileLog
from targets.broker.log.index import BLOCK_BATCHES
from tests.broker.log.batches import batch, new_log, offsets, singles

ALL = 1 << 30
SIZE = batch(text=b"0").size
COUNT = 8


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    """A log of small batches of one size, the latest of which have their headers in memory."""
    log = new_log(tmp_path / "data")
    for number in range(COUNT):
        log.append_as_leader([batch(text=str(number).encode())], 3)
    return log


def flip(log: FileLog, position: int, bit: int = 1) -> None:
    """Flip a bit of a byte of the log's only file."""
    (path,) = log.directory.glob("*.log")
    with path.open("r+b") as file:
        byte = os.pread(file.fileno(), 1, position)[0]
        os.pwrite(file.fileno(), bytes((byte ^ bit,)), position)


@pytest.mark.parametrize("at", range(SIZE))
def test_each_byte_of_a_batch_is_missed_when_it_is_another(log: FileLog, at: int) -> None:
    """Its base offset, size and epoch too, which the CRC does not cover: the index knows them."""
    flip(log, 4 * SIZE + at)
    assert [(each, each) for each in range(4)] == offsets(log.read(0, COUNT, ALL))
    with pytest.raises(DamagedError) as raised:
        log.read(4, COUNT, ALL)
    damaged = raised.value.damaged
    assert (4, 5, 4 * SIZE) == (damaged.offset, damaged.end, damaged.position)
    assert f"topic-0/{0:020d}.log" == damaged.path
    assert "expected" in damaged.what
    assert [(each, each) for each in range(5, COUNT)] == offsets(log.read(5, COUNT, ALL))


@pytest.mark.parametrize("at", [at for at in range(SIZE) if not 0 <= at < 8 and not 12 <= at < 16])
def test_each_byte_that_the_crc_covers_is_missed_when_the_header_is_in_the_file_alone(
    tmp_path: Path, at: int
) -> None:
    """Nothing shows that the base offset or the epoch of a batch in the middle of a block is another."""
    log = new_log(tmp_path / "data")
    singles(log, 3 * BLOCK_BATCHES)
    flip(log, 10 * SIZE + at)
    assert [(each, each) for each in range(10)] == offsets(log.read(0, ALL, ALL))
    with pytest.raises(DamagedError) as raised:
        log.read(10, ALL, ALL)
    assert (10, 10 * SIZE) == (raised.value.damaged.offset, raised.value.damaged.position)


def test_check_finds_damage_and_reads_no_more_than_it_may(log: FileLog) -> None:
    flip(log, 4 * SIZE + 61)
    assert (2, 2 * SIZE) == log.check(0, 2 * SIZE)
    assert (4, 2 * SIZE) == log.check(2, ALL)
    with pytest.raises(DamagedError):
        log.check(4, ALL)
    assert (COUNT, 3 * SIZE) == log.check(5, ALL)
    assert (COUNT, 0) == log.check(COUNT, ALL)


def test_log_that_is_cut_at_the_damage_goes_on_whole(log: FileLog) -> None:
    flip(log, 4 * SIZE + 61)
    assert 4 == log.truncate_to(4, LeoAfterCut.TARGET)
    log.append_as_leader([batch(text=b"a"), batch(text=b"b")], 4)
    assert [(each, each) for each in range(6)] == offsets(log.read(0, ALL, ALL))


def test_same_batch_is_written_in_the_place_of_the_damaged_one(log: FileLog) -> None:
    whole = log.read(0, ALL, ALL)
    (path,) = log.directory.glob("*.log")
    before = path.read_bytes()
    flip(log, 4 * SIZE + 61)
    assert log.mend(whole[4])
    assert (before, whole) == (path.read_bytes(), log.read(0, ALL, ALL))


@pytest.mark.parametrize("other", [batch(text=b"x"), batch(text=b"longer"), batch(count=2)])
def test_another_batch_is_not_written_in_the_place_of_a_damaged_one(log: FileLog, other: Batch) -> None:
    flip(log, 4 * SIZE + 61)
    (path,) = log.directory.glob("*.log")
    before = path.read_bytes()
    last = 4 + other.last_offset
    assert not log.mend(replace(other, base_offset=4, last_offset=last, leader_epoch=3))
    assert before == path.read_bytes()


def test_batch_that_is_damaged_itself_mends_nothing(log: FileLog) -> None:
    (whole,) = log.read(4, 5, ALL)
    damaged = bytes(whole.payload)[:-1] + b"?"
    flip(log, 4 * SIZE + 61)
    assert not log.mend(replace(whole, payload=damaged))


def test_batch_whose_header_cannot_be_read_is_not_mended(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    singles(log, 3 * BLOCK_BATCHES)
    (whole,) = log.read(10, 11, ALL)
    flip(log, 10 * SIZE + 16)
    log.position_of(BLOCK_BATCHES + 1)  # another block is read, so that the first must be read again
    assert not log.mend(whole)


def test_file_that_is_shorter_than_it_was_is_an_error_of_the_disk_and_no_damage(log: FileLog) -> None:
    (path,) = log.directory.glob("*.log")
    os.truncate(path, 4 * SIZE + 10)
    with pytest.raises(OSError, match="bytes at"):
        log.read(4, COUNT, ALL)
