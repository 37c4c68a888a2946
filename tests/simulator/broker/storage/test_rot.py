"""A flipped byte of a simulated disk is what it is on a real one: kept by a power loss, found, cut, and mended."""

from __future__ import annotations

from random import Random

import pytest

from harness.bit_rot import Where
from targets.broker.core.log_port import DamagedError, LeoAfterCut
from targets.simulator.broker.storage.disk import SimDisk
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import make_batch
from tests.simulator.broker.storage.test_disk import TP, append, values

ALL = 1 << 30


@pytest.fixture
def disk() -> SimDisk:
    """A log of four batches, two in each segment."""
    disk = SimDisk(segment_bytes=2 * make_batch(["a"], timestamp_ms=0).size)
    append(disk.create(TP), "a", "b", "c", "d")
    return disk


def log_of(disk: SimDisk) -> SimLog:
    return disk.logs[TP]


def bases(log: SimLog, offset: int) -> list[int]:
    return [batch.base_offset for batch in log.read(offset, ALL, ALL)]


@pytest.mark.parametrize(("where", "offset"), [(Where.CLOSED, 1), (Where.ACTIVE, 3)])
def test_flipped_batch_is_read_by_nobody_and_told_by_the_reader_of_files(
    disk: SimDisk, where: Where, offset: int
) -> None:
    done = disk.flip(*TP, where)
    assert done is not None
    assert (offset, offset, 1) == (done.base, done.last, done.before ^ done.after)
    log = log_of(disk)
    assert list(range(offset)) == bases(log, 0)
    with pytest.raises(DamagedError) as raised:
        log.read(offset, ALL, ALL)
    assert (offset, offset + 1) == (raised.value.damaged.offset, raised.value.damaged.end)
    assert list(range(offset + 1, 4)) == bases(log, offset + 1)
    seen = disk.replica_log(*TP)
    assert seen is not None
    assert (((offset, offset + 1),), 4) == (seen.unread, seen.log_end_offset)
    assert seen.problems[0].startswith(f"{done.file}, position ")


@pytest.mark.parametrize("chance", [None, Random(3)])
def test_flip_of_what_was_durable_is_durable(disk: SimDisk, chance: Random | None) -> None:
    disk.sync()
    disk.flip(*TP, Where.CLOSED)
    disk.lose_power(chance)
    with pytest.raises(DamagedError):
        log_of(disk).read(1, ALL, ALL)


def test_recovery_cuts_a_log_at_the_damage_unless_it_was_closed_cleanly(disk: SimDisk) -> None:
    disk.flip(*TP, Where.CLOSED)
    disk.close_cleanly({})
    ((log, recovery),) = disk.open()
    assert (4, "clean") == (log.end_offset, recovery.reason)
    ((log, recovery),) = disk.open()
    assert (1, "crc", 3 * make_batch(["a"], timestamp_ms=0).size) == (
        log.end_offset,
        recovery.reason,
        recovery.cut_bytes,
    )
    assert ["a"] == values(disk)


def test_same_batch_mends_and_another_does_not(disk: SimDisk) -> None:
    log = log_of(disk)
    (whole,) = log.read(1, 2, ALL)
    disk.flip(*TP, Where.CLOSED)
    assert not log.mend(log.read(2, 3, ALL)[0])
    append(other := SimLog(TP, ALL), "a", "x")
    assert not log.mend(other.read(1, 2, ALL)[0])
    assert log.mend(whole)
    assert ["a", "b", "c", "d"] == values(disk)


def test_cut_takes_the_damage_with_it_and_says_what_was_lost(disk: SimDisk) -> None:
    disk.flip(*TP, Where.CLOSED)
    log = log_of(disk)
    log.truncate_to(1, LeoAfterCut.TARGET)
    append(log, "e")
    assert [0, 1] == bases(log, 0)
    assert [1, 2, 3] == sorted(batch.base_offset for batch in log.lost)


def test_checkpoints_that_were_flipped_cannot_be_read_and_are_whole_once_they_are_written(disk: SimDisk) -> None:
    log = log_of(disk)
    log.write_epochs([(0, 0)], flush=True)
    disk.write_high_watermarks([(TP, 4)])
    for expected in (f"{TP}/leader-epoch-checkpoint", "replication-offset-checkpoint"):
        done = disk.flip(*TP, Where.CHECKPOINT)
        assert done is not None
        assert (expected, 0x31, 0x71) == (done.path, done.before, done.after)
    assert disk.flip(*TP, Where.CHECKPOINT) is None
    seen = disk.replica_log(*TP)
    assert seen is not None
    assert (None, None, 2) == (seen.epochs, seen.high_watermark, len(seen.problems))
    ((_, recovery),) = disk.open()
    assert "clean+epoch-checkpoint-unreadable+replication-offset-checkpoint-unreadable" == recovery.reason
    assert ((), 0, ((0, 0),)) == (recovery.file_epochs, recovery.high_watermark, recovery.batch_epochs)
    log.write_epochs([(0, 0)], flush=True)
    disk.write_high_watermarks([(TP, 4)])
    again = disk.replica_log(*TP)
    assert again is not None
    assert (((0, 0),), 4, ()) == (again.epochs, again.high_watermark, again.problems)
