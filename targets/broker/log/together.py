"""
What several logs have to make durable at once: their flushes side by side take little longer than one.

A command names thousands of partitions, and each has an epoch file to be flushed before its broker leads
(KIP-101, footnote to step 3). One after another they would wait for thousands of commits of the filesystem's
journal; side by side most of them share one. Nobody sees that it is later: what the broker says, it says after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
            side_by_side([one.settle for one in waiting])
            for one in waiting:
                one.report()


def side_by_side(flushes: Sequence[Callable[[], None]]) -> None:
    """
    Make all of these, on threads if there are several; return when all are made.

    Raises:
        OSError: of the first one, in their order, that failed.
    """
    if len(flushes) < 2:
        _make(flushes)
        return
    most = -(-len(flushes) // THREADS_MAX)
    shares = [flushes[first : first + most] for first in range(0, len(flushes), most)]
    with ThreadPoolExecutor(len(shares), "flushes") as threads:
        for _ in threads.map(_make, shares):
            pass


def _make(share: Sequence[Callable[[], None]]) -> None:
    """Make one flush after another: a task for each would cost more than its write."""
    for flush in share:
        flush()
