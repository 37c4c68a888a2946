"""
A replica's log while it is read, batch by batch, and the whole of it.

A node may write to the log meanwhile. So a reading says at its end whether it may mix two states of the log; then
the log is read again, until the result is one state or SETTLE_S_MAX have passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from harness.cleanup.process import until
from harness.logs.names import shown
from harness.logs.replica import BatchSeen, ReplicaLog

# How long a log may keep changing while it is read. A write takes milliseconds.
SETTLE_S_MAX: Final = 2.0

T = TypeVar("T")


class Reading(Protocol):
    """
    One reading of one replica's log: first its batches, each once, then what is known of the whole.

    What cannot be read is a problem of the log, and no exception: damage is what a run may be about.
    """

    def batches(self, value_characters_max: int | None) -> Iterator[BatchSeen]:
        """
        Yield the batches in file order, one by one: a log may be larger than memory.

        Args:
            value_characters_max: How much of a record's value is kept; None: all of it.
        """

    def log(self) -> ReplicaLog:
        """
        Return what is known so far, without the batches.

        The epochs and the topic's id are known before the first batch, the log's start and what compaction may
        have removed from the first batch on. The end is that of the furthest batch so far.
        """

    def unsettled(self) -> str:
        """Return why what was read may mix two states of the log, "" if it does not; asked after the batches."""

    def close(self) -> None:
        """Close all files; safe to call twice."""


Open = Callable[[], Reading]


def read_whole(opened: Open) -> ReplicaLog:
    """Read a log with its batches, each value whole."""

    def read() -> tuple[ReplicaLog, str]:
        with closing(opened()) as reading:
            batches = tuple(reading.batches(None))
            return replace(reading.log(), batches=batches), reading.unsettled()

    log, unsettled = settled(read)
    name = shown(f"{log.topic}-{log.partition}")
    return replace(log, problems=(*log.problems, f"{name}: {unsettled}")) if unsettled else log


def settled(read: Callable[[], tuple[T, str]]) -> tuple[T, str]:
    """Return what `read` returns; call it again while it says that the log changed, for up to SETTLE_S_MAX."""
    found: list[tuple[T, str]] = []

    def is_settled() -> bool:
        found[:] = [read()]
        return not found[0][1]

    until(is_settled, SETTLE_S_MAX)
    return found[0]
