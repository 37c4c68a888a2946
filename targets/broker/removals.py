"""
Removal of files beside the event loop, which thousands would hold up for seconds: of deleted logs, of old records.

What is left when the broker ends is removed by its next start.
Source:  Kafka, LogManager.deleteLogs, a task of its scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from targets.broker.log.deletion import remove_directories
from targets.broker.log.discards import Work


class Removals:
    """
    Removes directories one after another, in a thread of its own.

    Args:
        on_failed: told in the event loop of the disk's error, which ends the broker.
    """

    def __init__(self, on_failed: Callable[[BaseException], None]) -> None:
        self._remover = ThreadPoolExecutor(max_workers=1, thread_name_prefix="removals")
        self._on_failed = on_failed
        self._closed = False

    def begin(self, doomed: Sequence[Path]) -> None:
        """Have directories removed; each is a task of its own, so that `close` waits for one alone."""
        loop = asyncio.get_running_loop()
        for directory in doomed:
            removal = partial(remove_directories, [directory])
            loop.run_in_executor(self._remover, removal).add_done_callback(self._removed)

    def do(self, work: Work) -> None:
        """Have work done step by step, each of them a task, so that others and `close` wait for one alone."""
        future = asyncio.get_running_loop().run_in_executor(self._remover, work)
        future.add_done_callback(partial(self._did, work))

    def close(self) -> None:
        """Remove nothing more; return once what is being removed is gone."""
        self._closed = True
        self._remover.shutdown(cancel_futures=True)

    def _did(self, work: Work, future: asyncio.Future[bool]) -> None:
        if future.cancelled():
            return
        if (error := future.exception()) is not None:
            self._on_failed(error)
        elif future.result() and not self._closed:
            self.do(work)

    def _removed(self, future: asyncio.Future[None]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            self._on_failed(error)
