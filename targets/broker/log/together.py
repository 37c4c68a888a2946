"""
What several logs have to make durable at once: their flushes side by side take little longer than one.

A command names thousands of partitions, and each has an epoch file to be flushed before its broker leads
(KIP-101, footnote to step 3). One after another they would wait for thousands of commits of the filesystem's
journal; side by side most of them share one. Nobody sees that it is later: what the broker says, it says after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, Protocol

# More of them share no more commits of the journal, and take more of the processors.
THREADS_MAX: Final = 16


class Waits(Protocol):
    """Files of one log that are to become durable."""

    def settle(self) -> None:
        """Write them, durably; called from any thread, never twice at once."""

    def report(self) -> None:
        """Say what is durable now."""


class Together:
    """Who waits to make files durable, while it is open."""

    def __init__(self) -> None:
        """Be closed: nobody waits."""
        self._is_open = False
        self._waiting: dict[int, Waits] = {}

    def add(self, waits: Waits) -> None:
        """Have files settled and reported when it closes, or now if it is closed."""
        if self._is_open:
            self._waiting[id(waits)] = waits
        else:
            waits.settle()
            waits.report()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """
        Let files wait until the end of this, also of one that fails: what it did stands.

        Raises:
            OSError: of the first log, in the order in which they were added, whose files could not be written.
        """
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
            waiting, self._waiting = [*self._waiting.values()], {}
            if len(waiting) > 1:
                most = -(-len(waiting) // THREADS_MAX)
                shares = [waiting[first : first + most] for first in range(0, len(waiting), most)]
                with ThreadPoolExecutor(len(shares), "flushes") as threads:
                    for _ in threads.map(_settle, shares):
                        pass
            else:
                _settle(waiting)
            for one in waiting:
                one.report()


def _settle(share: Sequence[Waits]) -> None:
    """Settle one after another: a task for each file would cost more than its write."""
    for waits in share:
        waits.settle()
