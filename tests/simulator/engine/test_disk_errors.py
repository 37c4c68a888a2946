"""What a failed write or a failed flush leaves of a log, and what it never takes."""

from __future__ import annotations

import errno
from random import Random

import pytest

from harness.cluster.disk_error import DiskError
from targets.broker.core.log_port import LogPort
from targets.broker.core.messages import Batch, TopicPartition
from targets.simulator.broker.storage.disk import SimDisk
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import make_batch, placed

TP = TopicPartition("log", 0)
SEEDS = range(80)


def batches(first: int, count: int) -> list[Batch]:
    """Return batches of one record each, as a leader sends them."""
    return [placed(make_batch([f"v{at}"], timestamp_ms=0), at, 0) for at in range(first, first + count)]


def disk_with(flushed: int, more: int) -> tuple[SimDisk, SimLog]:
    """Return a disk with a log of so many durable records, and so many that are not."""
    disk = SimDisk()
    log = disk.create(TP)
    log.append_as_follower(batches(0, flushed))
    disk.flush_log(TP, flushed)
    log.append_as_follower(batches(flushed, more))
    return disk, log


def reopened(disk: SimDisk) -> LogPort:
    """Return the log as the next process finds it."""
    disk.errors.mend()
    ((log, _),) = disk.open()
    return log


@pytest.mark.parametrize("chance", [None, Random(1)], ids=["nothing", "a-part"])
def test_write_on_a_full_disk_fails_and_takes_nothing_that_was_there(chance: Random | None) -> None:
    disk, log = disk_with(2, 2)
    disk.errors.arm(DiskError.FULL, chance)
    disk.errors._left = 0
    with pytest.raises(OSError, match="No space left") as raised:
        log.append_as_follower(batches(4, 3))
    assert errno.ENOSPC == raised.value.errno
    assert "ENOSPC at an append to log-0" == disk.errors.met
    assert 4 <= reopened(disk).end_offset < 7


def test_full_disk_leaves_any_number_of_whole_batches_and_a_torn_one() -> None:
    ends, torn = set(), set()
    for seed in SEEDS:
        disk, log = disk_with(1, 1)
        disk.errors.arm(DiskError.FULL, Random(seed))
        disk.errors._left = 0
        with pytest.raises(OSError, match="No space left"):
            log.append_as_follower(batches(2, 3))
        torn.add(log.segments[-1].damage)
        ends.add(reopened(disk).end_offset)
    assert ({2, 3, 4}, {"", "torn"}) == (ends, torn)


def test_failed_flush_loses_only_what_was_not_durable() -> None:
    ends, damage = set(), set()
    for seed in SEEDS:
        disk, log = disk_with(2, 3)
        disk.errors.arm(DiskError.FLUSH, Random(seed))
        disk.errors._left = 0
        with pytest.raises(OSError, match="Input/output error"):
            disk.flush_log(TP, 5)
        damage.add(log.segments[-1].damage)
        ends.add(reopened(disk).end_offset)
    assert ({2, 3, 4, 5}, {"", "torn", "zeros"}) == (ends, damage)


def test_pages_that_a_failed_flush_left_are_still_not_durable() -> None:
    disk, log = disk_with(2, 3)
    disk.errors.arm(DiskError.FLUSH, Random(3))
    disk.errors._left = 0
    with pytest.raises(OSError, match="Input/output error"):
        log.flush()
    reopened(disk)
    disk.lose_power(None)
    assert 2 == reopened(disk).end_offset


def test_without_chance_a_failed_flush_loses_all_that_it_was_to_write() -> None:
    disk, _ = disk_with(2, 3)
    disk.errors.arm(DiskError.FLUSH, None)
    with pytest.raises(OSError, match="Input/output error"):
        disk.flush_log(TP, 5)
    assert 2 == reopened(disk).end_offset


@pytest.mark.parametrize("error", [DiskError.FULL, DiskError.WRITE, DiskError.FLUSH, DiskError.READ_ONLY])
def test_files_that_are_replaced_whole_stay_as_they_were(error: DiskError) -> None:
    disk, log = disk_with(2, 0)
    log.write_epochs([(0, 0)], flush=True)
    disk.write_high_watermarks([(TP, 1)])
    disk.errors.arm(error, None)
    with pytest.raises(OSError, match=r"No space|Input|Read-only"):
        log.write_epochs([(0, 0), (1, 2)], flush=True)
    with pytest.raises(OSError, match=r"No space|Input|Read-only"):
        disk.write_high_watermarks([(TP, 2)])
    with pytest.raises(OSError, match=r"No space|Input|Read-only"):
        log.adopt(7)
    assert (((0, 0),), {TP: 1}, 3) == (log.epochs, disk.high_watermarks, disk.errors.failed)


def test_full_disk_has_no_room_for_a_new_log() -> None:
    disk = SimDisk()
    disk.errors.arm(DiskError.FULL, None)
    with pytest.raises(OSError, match="No space left"):
        disk.create(TP)
    assert {} == disk.logs


def test_error_comes_at_one_of_the_next_calls_of_its_kind() -> None:
    tries = set()
    for seed in SEEDS:
        disk, log = disk_with(0, 0)
        disk.errors.arm(DiskError.FULL, Random(seed))
        disk.flush_log(TP, 0)
        for number in range(9):
            try:
                log.append_as_follower(batches(number, 1))
            except OSError:
                tries.add(number)
                break
    assert {0, 1, 2} == tries
