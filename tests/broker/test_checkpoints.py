"""
The checkpoint of high watermarks of many partitions is written beside the loop, and never brings an old one back.

Source:  Kafka Replication Design V3, the high watermark checkpoint.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from targets.broker.checkpoints import IN_LOOP_MAX, Checkpoints
from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.data_dir import DataDir

MANY = range(IN_LOOP_MAX + 1)


def high_watermarks(at: int, of: range = MANY) -> dict[TopicPartition, int]:
    return {TopicPartition("t", number): at for number in of}


class Writes:
    """Checkpoints on a disk whose writes of them wait for `gate`, while they are on the thread beside the loop."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        path.mkdir(exist_ok=True)
        self.path = path / checkpoint.HIGH_WATERMARKS_FILE
        self.gate, self.entered = threading.Event(), threading.Event()
        self.written: list[dict[TopicPartition, int]] = []
        self.durable: list[str] = []
        self.failed: list[BaseException] = []
        self.fails = False
        self.data = DataDir(path, segment_bytes=1_000, on_durable=lambda name, _: self.durable.append(name))
        writer = stack.enter_context(ThreadPoolExecutor(1))
        stack.callback(self.gate.set)
        real = checkpoint.write_offsets

        def write(path: Path, offsets: Any, **options: Any) -> int:
            if path == self.path:
                self.written.append(dict(offsets))
                if threading.current_thread() is not threading.main_thread():
                    self.entered.set()
                    assert self.gate.wait(30)
                if self.fails:
                    raise OSError(5, "Input/output error")
            return real(path, offsets, **options)

        monkeypatch.setattr(checkpoint, "write_offsets", write)
        self.checkpoints = Checkpoints(
            self.data, writer, lambda name, _: self.durable.append(name), self.failed.append
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.001)

    async def until_durable(self, writes: int) -> None:
        await self.until(lambda: len(self.durable) >= writes)

    @property
    def on_disk(self) -> dict[TopicPartition, int]:
        return checkpoint.read_offsets(self.path)


@pytest.fixture
def stack() -> Any:
    with ExitStack() as made:
        yield made


def test_few_are_on_the_disk_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
    writes = Writes(tmp_path, monkeypatch, stack)
    few = high_watermarks(3, range(IN_LOOP_MAX))
    writes.checkpoints.write(few)
    assert few == writes.on_disk and [checkpoint.HIGH_WATERMARKS_FILE] == writes.durable


def test_loop_goes_on_while_many_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    """What is noted meanwhile is written once, the newest of it."""

    async def run() -> None:
        writes = Writes(tmp_path, monkeypatch, stack)
        writes.checkpoints.write(high_watermarks(1))
        for at in (2, 3, 4):
            writes.checkpoints.write(high_watermarks(at))
        await writes.until(writes.entered.is_set)
        assert not writes.path.exists() and not writes.durable
        writes.gate.set()
        await writes.until_durable(2)
        assert high_watermarks(4) == writes.on_disk == writes.written[-1]
        assert 2 == len(writes.written)

    asyncio.run(run())


def test_replica_made_anew_meanwhile_does_not_get_its_old_high_watermark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    """Recovery would take it for the new log's, whose records it would then keep as committed."""

    async def run() -> None:
        writes = Writes(tmp_path, monkeypatch, stack)
        writes.checkpoints.write(high_watermarks(7))
        await writes.until(writes.entered.is_set)
        made = asyncio.get_running_loop().run_in_executor(None, writes.data.create_log, TopicPartition("t", 0))
        writes.gate.set()
        await made
        await writes.until_durable(2)
        assert high_watermarks(7, MANY[1:]) == writes.on_disk

    asyncio.run(run())


def test_replica_made_anew_before_the_thread_begins_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    writes = Writes(tmp_path, monkeypatch, stack)
    writes.data.note_high_watermarks(high_watermarks(7))
    writes.data.create_log(TopicPartition("t", 0))
    writes.data.write_noted()
    assert high_watermarks(7, MANY[1:]) == writes.on_disk


def test_error_of_the_disk_ends_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    async def run() -> None:
        writes = Writes(tmp_path, monkeypatch, stack)
        writes.fails = True
        writes.gate.set()
        writes.checkpoints.write(high_watermarks(1))
        await writes.until(lambda: bool(writes.failed))
        assert ["in a write of replication-offset-checkpoint"] == writes.failed[0].__notes__
        assert not writes.durable

    asyncio.run(run())
