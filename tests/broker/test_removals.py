"""
Deletions of many logs at once: one flush for all their names, and their files go beside the event loop.

Source:  Kafka Replication Design V3, C, stopReplica; Kafka, LogManager.asyncDelete and deleteLogs.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint, deletion
from targets.broker.log.data_dir import DataDir, open_data_dir
from targets.broker.removals import Removals

TPS = tuple(TopicPartition("t", number) for number in range(5))


class Disk:
    """A data directory with logs, which notes what is flushed and what somebody is to remove."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.steps: list[str] = []
        self.data = DataDir(path, segment_bytes=1_000, on_durable=lambda *_: None, remove=self._remove)
        with self.data.together():
            for tp in TPS:
                self.data.create_log(tp)
        real = checkpoint.sync_directory

        def sync(directory: Path) -> None:
            self.steps.append(f"flush of {directory.relative_to(path.parent)} with {sorted(self.names())}")
            real(directory)

        monkeypatch.setattr(checkpoint, "sync_directory", sync)

    def names(self) -> set[str]:
        """Return what is there, each doomed directory by its partition."""
        return {name.partition(".")[0] + "-delete" * name.endswith("-delete") for name in os.listdir(self.path)}

    def _remove(self, doomed: Sequence[Path]) -> None:
        self.steps.append(f"removal of {len(doomed)}")


def test_all_that_one_step_deletes_shares_a_flush_and_is_removed_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path, monkeypatch)
    with disk.data.together():
        for tp in TPS:
            disk.data.logs[tp].delete()
        assert [] == disk.steps
    doomed = [f"{tp}-delete" for tp in TPS]
    assert [f"flush of {tmp_path.name} with {doomed}", "removal of 5"] == disk.steps
    assert {*doomed} == disk.names()  # who removes them has not begun


def test_name_of_a_deleted_log_is_free_within_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command for the next topic of a name deletes one replica and makes another (KIP-516)."""
    disk = Disk(tmp_path, monkeypatch)
    with disk.data.together():
        disk.data.logs[TPS[0]].delete()
        assert 0 == disk.data.create_log(TPS[0]).end_offset
    assert {f"{TPS[0]}-delete", *map(str, TPS)} == disk.names()


def checkpoints_written(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list that gets the file of each checkpoint of offsets that is written from now on."""
    written: list[Path] = []
    real = checkpoint.write_offsets

    def write(path: Path, *arguments: object, **options: object) -> int:
        written.append(path)
        return real(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(checkpoint, "write_offsets", write)
    return written


def test_logs_that_are_made_anew_in_one_step_leave_the_checkpoint_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: Kafka Replication Design V3, the high watermark checkpoint."""
    disk = Disk(tmp_path, monkeypatch)
    disk.data.write_high_watermarks(dict.fromkeys(TPS, 7))
    written = checkpoints_written(monkeypatch)
    with disk.data.together():
        for tp in TPS[1:]:
            disk.data.logs[tp].delete()
            disk.data.create_log(tp)
    file = tmp_path / checkpoint.HIGH_WATERMARKS_FILE
    assert ([file], {TPS[0]: 7}) == (written, checkpoint.read_offsets(file))


FILES = (checkpoint.RECOVERY_POINTS_FILE, checkpoint.LOG_STARTS_FILE, checkpoint.CLEANED_FILE)


@pytest.mark.parametrize("again", [False, True])
def test_logs_of_an_earlier_process_leave_each_checkpoint_in_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    """A write for each of a thousand logs would hold up the broker; that they are made anew changes nothing."""
    open_data_dir(tmp_path).data.close()
    for name in FILES:
        checkpoint.write_offsets(tmp_path / name, dict.fromkeys(TPS, 0))
    for tp in TPS:
        (tmp_path / str(tp)).mkdir()
    data = open_data_dir(tmp_path).data
    written = checkpoints_written(monkeypatch)
    with data.together():
        for tp in TPS[1:]:
            data.logs[tp].delete()
        assert [] == written
        for tp in TPS[1:] if again else ():
            data.create_log(tp)
    assert sorted(FILES) == sorted(path.name for path in written)
    assert [{TPS[0]: 0}] * 3 == [checkpoint.read_offsets(tmp_path / name) for name in FILES]


def test_loop_goes_on_while_a_directory_is_removed_and_who_closes_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, gate = threading.Event(), threading.Event()
    real = deletion.remove_directory

    def remove(path: Path) -> None:
        entered.set()
        assert gate.wait(30)
        real(path)

    monkeypatch.setattr(deletion, "remove_directory", remove)
    doomed = tmp_path / "t-0.0-delete"
    doomed.mkdir()

    async def scene() -> None:
        removals = Removals(lambda error: pytest.fail(repr(error)))
        removals.begin([doomed])
        assert entered.wait(30)  # and yet we are here
        asyncio.get_running_loop().call_soon(gate.set)
        await asyncio.sleep(0)
        removals.close()
        await asyncio.sleep(0)

    asyncio.run(scene())
    assert not doomed.exists()


def test_error_of_the_disk_at_a_removal_ends_the_broker(tmp_path: Path) -> None:
    """Source: Kafka Replication Design V3, discussion 4."""
    failed: list[BaseException] = []

    async def scene() -> None:
        ended = asyncio.Event()
        removals = Removals(lambda error: (failed.append(error), ended.set())[0])
        removals.begin([tmp_path / "t-0.0-delete"])
        await asyncio.wait_for(ended.wait(), 30)
        removals.close()

    asyncio.run(scene())
    (error,) = failed
    assert isinstance(error, FileNotFoundError)
    assert ["in the removal of t-0.0-delete"] == error.__notes__


def test_loop_goes_on_between_steps_of_work_and_who_closes_waits_for_one_alone() -> None:
    steps: list[int] = []
    between: list[int] = []

    def work() -> bool:
        steps.append(len(steps))
        return len(steps) < 4

    async def scene() -> None:
        removals = Removals(lambda error: pytest.fail(repr(error)))
        removals.do(work)
        while len(steps) < 4:
            between.append(len(steps))
            await asyncio.sleep(0)
        removals.close()

    asyncio.run(scene())
    assert [0, 1, 2, 3] == steps
    assert between


def test_work_ends_with_the_broker(tmp_path: Path) -> None:
    entered, gate = threading.Event(), threading.Event()
    steps: list[int] = []

    def work() -> bool:
        steps.append(len(steps))
        entered.set()
        return gate.wait(30)

    async def scene() -> None:
        removals = Removals(lambda error: pytest.fail(repr(error)))
        removals.do(work)
        assert entered.wait(30)
        asyncio.get_running_loop().call_soon(gate.set)
        await asyncio.sleep(0)
        removals.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(scene())
    assert [0] == steps


def test_error_of_a_step_of_work_ends_the_broker() -> None:
    """Source: Kafka Replication Design V3, discussion 4."""
    failed: list[BaseException] = []

    def work() -> bool:
        raise OSError("the disk")

    async def scene() -> None:
        ended = asyncio.Event()
        removals = Removals(lambda error: (failed.append(error), ended.set())[0])
        removals.do(work)
        await asyncio.wait_for(ended.wait(), 30)
        removals.close()

    asyncio.run(scene())
    assert ["the disk"] == [str(error) for error in failed]
