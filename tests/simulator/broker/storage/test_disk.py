"""A power loss leaves the flushed state or, with randomness, any valid state between flushed and written."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from harness.hosts.disks import WatermarkDisk
from targets.broker.core.log_port import LeoAfterCut, Recovery
from targets.broker.core.messages import TopicPartition
from targets.broker.log import open_data_dir
from targets.simulator.broker.storage.disk import SimDisk
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import make_batch
from tests.broker.log.batches import batch as real_batch
from tests.hosts.test_disks import DeadVictim, nothing

TP = TopicPartition("topic", 0)
ALL = 1 << 30
TARGET = LeoAfterCut.TARGET
SEEDS = range(60)
STEPS = 25


def append(log: SimLog, *values: str, epoch: int = 0) -> None:
    """Append a batch for each value."""
    for value in values:
        log.append_as_leader([make_batch([value], timestamp_ms=0)], epoch)


def values(disk: SimDisk) -> list[str | None] | None:
    """Return the values that a reader of the log's files finds, None if there is no log."""
    found = disk.replica_log(*TP)
    return None if found is None else [value for batch in found.batches for _, _, value in batch.records]


def reopened(disk: SimDisk) -> tuple[SimLog, Recovery]:
    (pair,) = disk.open()
    return pair


# --- without randomness -----------------------------------------------------------------------------
def test_kill_loses_nothing() -> None:
    disk = SimDisk()
    append(disk.create(TP), "a", "b")
    log, recovery = reopened(disk)
    assert (["a", "b"], 2) == (values(disk), log.end_offset)
    assert (
        Recovery(
            clean=False,
            cut_bytes=0,
            reason="clean",
            batch_epochs=((0, 0),),
            batch_ends=(2,),
            file_epochs=(),
            high_watermark=0,
        )
        == recovery
    )


def test_power_cut_takes_all_that_was_not_flushed() -> None:
    disk = SimDisk()
    log = disk.create(TP)
    append(log, "a", "b")
    assert 2 == disk.sync()
    append(log, "c")
    log.write_epochs([(0, 0)], flush=False)
    assert "3 batches became 2, 1 logs changed" == disk.lose_power(None)
    assert (["a", "b"], ()) == (values(disk), reopened(disk)[1].file_epochs)


def test_power_cut_undoes_a_truncation_that_was_not_flushed() -> None:
    disk = SimDisk()
    log = disk.create(TP)
    append(log, "a", "b", "c")
    disk.sync()
    log.truncate_to(1, TARGET)
    append(log, "x")
    disk.lose_power(None)
    assert ["a", "b", "c"] == values(disk)


def test_power_cut_takes_a_log_away_whose_directory_nobody_flushed() -> None:
    disk = SimDisk()
    append(disk.create(TP), "a")
    disk.lose_power(None)
    assert (None, ()) == (values(disk), disk.open())


def test_flushed_epochs_leave_an_empty_log_and_their_file() -> None:
    """KIP-101, step 3: the epoch entry is durable before its records are."""
    disk = SimDisk()
    log = disk.create(TP)
    log.write_epochs([(0, 0)], flush=True)
    append(log, "a")
    disk.lose_power(None)
    log, recovery = reopened(disk)
    assert (0, ((0, 0),), []) == (log.end_offset, recovery.file_epochs, values(disk))


def test_high_watermarks_are_durable_and_make_nothing_else_durable() -> None:
    disk = SimDisk()
    log = disk.create(TP)
    disk.sync()
    append(log, "a")
    disk.write_high_watermarks([(TP, 1)])
    disk.lose_power(None)
    assert (1, []) == (reopened(disk)[1].high_watermark, values(disk))


def test_log_flushed_by_its_broker_is_durable_and_the_listener_is_told() -> None:
    disk = SimDisk()
    told: list[tuple[str, int]] = []
    disk.on_durable = lambda path, length: told.append((path, length))
    log = disk.create(TP)
    append(log, "a")
    assert disk.flush_log(TP, 1)
    disk.lose_power(None)
    assert (["a"], [("topic-0/00000000000000000000.log", log.segments[0].size)]) == (values(disk), told)
    log.delete()
    assert not disk.flush_log(TP, 1)


def test_flush_up_to_an_offset_leaves_later_segments_to_chance() -> None:
    disk = SimDisk(segment_bytes=1)
    log = disk.create(TP)
    append(log, "a", "b", "c")
    disk.flush_log(TP, 2)
    disk.lose_power(None)
    assert ["a", "b"] == values(disk)


def test_start_of_a_log_survives_a_power_cut_and_the_files_below_it_stay_away() -> None:
    disk = SimDisk(segment_bytes=1)
    log = disk.create(TP)
    append(log, "a", "b", "c")
    disk.sync()
    log.advance_start(2)
    disk.lose_power(None)
    assert ["c"] == values(disk)
    assert (2, 3) == (reopened(disk)[0].start_offset, log.end_offset)


def test_log_whose_records_were_lost_begins_anew_at_its_start() -> None:
    disk = SimDisk()
    log = disk.create(TP)
    log.write_epochs([(0, 0)], flush=True)
    append(log, "a", "b", "c")
    log.advance_start(2)
    disk.lose_power(None)
    log, recovery = reopened(disk)
    assert (2, 2, "below-log-start", ()) == (
        log.start_offset,
        log.end_offset,
        recovery.reason,
        recovery.file_epochs,
    )


def test_removed_segments_come_back() -> None:
    disk = SimDisk(segment_bytes=1)
    log = disk.create(TP)
    append(log, "a", "b", "c")
    disk.sync()
    log.truncate_to(0, TARGET)
    disk.lose_power(None)
    assert ["a", "b", "c"] == values(disk)


def test_names_that_were_flushed_stay_gone_when_only_the_epochs_were_meant() -> None:
    """An fsync of the directory makes every name in it durable, and every removal."""
    disk = SimDisk(segment_bytes=1)
    log = disk.create(TP)
    append(log, "a", "b", "c")
    disk.sync()
    log.truncate_to(1, TARGET)
    log.write_epochs([(0, 0)], flush=True)
    disk.lose_power(None)
    assert ["a", "b"] == values(disk)


def test_deleted_log_is_gone_for_good() -> None:
    disk = SimDisk()
    log = disk.create(TP)
    append(log, "a")
    disk.sync()
    log.delete()
    assert values(disk) is None
    disk.lose_power(None)
    assert ((), {}) == (disk.open(), disk.logs)


def test_replica_that_is_made_anew_is_not_mistaken_for_the_one_before() -> None:
    disk = SimDisk()
    append(disk.create(TP), "a")
    assert ["a"] == values(disk)
    append(disk.create(TP), "b")
    assert ["b"] == values(disk)


def test_active_segment_that_an_operator_deletes_is_gone_whatever_happens() -> None:
    disk = SimDisk(segment_bytes=1)
    append(disk.create(TP), "a", "b")
    disk.sync()
    assert "00000000000000000001.log" == disk.delete_active_segment(*TP)
    disk.lose_power(None)
    assert (["a"], 1) == (values(disk), reopened(disk)[0].end_offset)
    disk.delete_active_segment(*TP)
    assert (0, []) == (reopened(disk)[0].end_offset, values(disk))
    assert SimDisk().delete_active_segment(*TP) is None


# --- as the watermark tier --------------------------------------------------------------------------
@pytest.mark.parametrize("seed", SEEDS)
def test_power_cut_leaves_what_the_watermark_tier_leaves(tmp_path: Path, seed: int) -> None:
    """The simulated disk agrees with real files whose shadow holds the durable state; see docs/power-loss.md."""
    chance = Random(seed)
    tier = WatermarkDisk(tmp_path / "data", tmp_path / "shadow")
    data = open_data_dir(tier.data, on_durable=tier.note_flushed).data
    real, disk = data.create_log(TP), SimDisk()
    sim = disk.create(TP)
    for _ in range(STEPS):
        what = chance.choices(("append", "cut", "epochs", "sync", "power"), (6, 2, 2, 1, 1))[0]
        if what == "append":
            fresh = [real_batch(count=chance.randint(1, 3))]
            assert real.append_as_leader(fresh, 1) == sim.append_as_leader(fresh, 1)
        elif what == "cut":
            to = chance.randint(0, real.end_offset)
            assert real.truncate_to(to, TARGET) == sim.truncate_to(to, TARGET)
        elif what == "epochs":
            entries, flush = [(chance.randint(0, 9), 0)], bool(chance.getrandbits(1))
            real.write_epochs(entries, flush=flush)
            sim.write_epochs(entries, flush=flush)
        elif what == "sync":
            tier.flush()
            disk.sync()
        else:
            data.close()
            tier.power_loss(DeadVictim(), nothing)
            disk.lose_power(None)
            opened = open_data_dir(tier.data, on_durable=tier.note_flushed)
            data, found = opened.data, disk.open()
            assert list(opened.logs) == [log.tp for log, _ in found]
            if not found:
                real, sim = data.create_log(TP), disk.create(TP)
                continue
            (real, recovery), (sim, ours) = opened.logs[TP], found[0]
            assert (recovery, real.end_offset) == (ours, sim.end_offset)
    data.close()
    shutil.rmtree(tmp_path)


# --- with randomness --------------------------------------------------------------------------------
def outcomes(count: int = 300) -> list[tuple[list[str | None] | None, str]]:
    """Return what many power losses leave of a, b flushed, b cut and x, y appended; and the recovery's reason."""
    found: list[tuple[list[str | None] | None, str]] = []
    for seed in range(count):
        disk = SimDisk()
        log = disk.create(TP)
        append(log, "a", "b")
        disk.sync()
        log.truncate_to(1, TARGET)
        append(log, "x", "y")
        disk.lose_power(Random(seed))
        ((_, recovery),) = disk.open()
        found.append((values(disk), recovery.reason))
    return found


def test_chance_leaves_any_part_and_nothing_that_never_was() -> None:
    found = outcomes()
    assert {("a", "b"), ("a",), ("a", "x"), ("a", "x", "y")} == {tuple(kept or ()) for kept, _ in found}
    assert {"clean", "torn", "zeros"} == {reason for _, reason in found}


def test_chance_brings_removed_segments_back_only_as_they_stood_one_after_another() -> None:
    found = set()
    for seed in range(100):
        disk = SimDisk(segment_bytes=1)
        log = disk.create(TP)
        append(log, "a", "b", "c")
        disk.sync()
        log.truncate_to(0, TARGET)
        append(log, "x")
        disk.lose_power(Random(seed))
        reopened(disk)
        found.add(tuple(values(disk) or ()))
    assert {("a", "b", "c"), ("a", "b"), ("a",), (), ("x",)} == found


def test_damage_in_one_segment_takes_the_later_ones_with_it() -> None:
    disk = SimDisk(segment_bytes=1)
    log = disk.create(TP)
    append(log, "a", "b", "c")
    disk.sync()
    log.segments[1].batches, log.segments[1].damage, log.segments[1].damage_bytes = [], "torn", 5
    log, recovery = reopened(disk)
    assert ("torn", 5 + log.segments[0].size, 1) == (recovery.reason, recovery.cut_bytes, log.end_offset)
    disk.lose_power(None)
    assert ["a", "b", "c"] == values(disk)


def test_damage_is_seen_in_the_files_until_recovery_cuts_it() -> None:
    seen = set()
    for seed in range(50):
        disk = SimDisk()
        log = disk.create(TP)
        disk.sync()
        append(log, "a")
        disk.lose_power(Random(seed))
        found, damage = disk.replica_log(*TP), log.segments[0].damage
        assert found is not None
        if damage:
            seen.add(damage)
            assert ((0, None),) == found.unread
            assert (f"00000000000000000000.log, position 0: {damage}",) == found.problems
        assert bool(damage) is (reopened(disk)[1].cut_bytes > 0)
        found = disk.replica_log(*TP)
        assert found is not None
        assert () == found.problems
    assert {"torn", "zeros"} == seen


def test_same_chance_leaves_the_same() -> None:
    assert outcomes(20) == outcomes(20)


def test_chance_may_leave_or_take_a_name_that_nobody_flushed() -> None:
    kept = []
    for seed in range(50):
        disk = SimDisk()
        append(disk.create(TP), "a")
        disk.lose_power(Random(seed))
        kept.append(values(disk) is not None)
    assert {True, False} == set(kept)


def test_log_that_is_created_again_has_no_high_watermark_of_its_predecessor() -> None:
    disk = SimDisk()
    append(disk.create(TP), "a", "b")
    other = TopicPartition("other", 0)
    disk.write_high_watermarks([(TP, 2), (other, 1)])
    disk.logs[TP].delete()
    append(disk.create(TP), "c", "d")
    assert [0] == [found.high_watermark for _, found in disk.open()]
    assert {other: 1} == disk.high_watermarks
