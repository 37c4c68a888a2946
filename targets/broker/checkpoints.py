"""
The checkpoint of high watermarks: of many partitions it is written beside the event loop, which it would hold up.

One write goes on at a time, and what is noted meanwhile is one more. As in Kafka, where a thread of its own writes
it, an acknowledgement never waits for it (Kafka Replication Design V3, "high watermark").
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Final

from targets.broker.core.messages import TopicPartition
from targets.broker.log.data_dir import DataDir
from targets.broker.log.offsets import Durable

# Up to so many are written in the loop: a few milliseconds, and what was written is reported with it.
IN_LOOP_MAX: Final = 500


class Checkpoints:
    """
    Writes of the high watermarks, one after another.

    Args:
        writer: has one thread.
        on_durable: told in the event loop of what was written.
        on_failed: told in the event loop of the disk's error, which ends the broker.
    """

    def __init__(
        self,
        data: DataDir,
        writer: Executor,
        on_durable: Callable[[str, int], None],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        self._data = data
        self._writer = writer
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._writing = False
        self._again = False

    def write(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Have these high watermarks written, or newer ones."""
        if len(high_watermarks) <= IN_LOOP_MAX and not self._writing:
            self._data.write_high_watermarks(high_watermarks)
            return
        self._data.note_high_watermarks(high_watermarks)
        if self._writing:
            self._again = True
        else:
            self._begin()

    def _begin(self) -> None:
        self._writing, self._again = True, False
        future = asyncio.get_running_loop().run_in_executor(self._writer, self._data.write_noted)
        future.add_done_callback(self._wrote)

    def _wrote(self, future: asyncio.Future[Durable]) -> None:
        self._writing = False
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._on_failed(error)
            return
        self._on_durable(*future.result())
        if self._again:
            self._begin()
