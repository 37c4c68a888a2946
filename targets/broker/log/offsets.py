"""
The checkpoints that hold an offset for each partition of a data directory: recovery points, starts, what is clean.

Each is one file for all logs, replaced whole. What a step takes out of it goes in one write, at the step's end: a
command deletes thousands of replicas, and a write for each of them would hold up the broker.
Source:  Kafka, OffsetCheckpointFile; LogManager, which leaves a deleted log's entries to the next checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.doubt import noted
from targets.broker.log.together import Together

Durable = tuple[str, int]


def replace_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> Durable:
    """Replace a checkpoint, durably; return its name and length."""
    with noted(f"a write of {path.name}"):
        return path.name, checkpoint.write_offsets(path, offsets)


class Offsets:
    """
    One of the checkpoints, as it is on disk or is about to be.

    It has entries of logs that are gone, until one of that name is made: recovery would take them for its own.

    Args:
        together: while it is open, what is taken out stays in the file until its end.
        on_durable: called with the name of the file and its length when it was replaced.

    Raises:
        OSError: from the disk.
    """

    def __init__(self, path: Path, together: Together, on_durable: Callable[[str, int], None]) -> None:
        self._path = path
        self._together = together
        self._on_durable = on_durable
        self._offsets: dict[TopicPartition, int] = {}
        # Taken out, but in the file: a dict without values, a set that keeps its order.
        self._leaving: dict[TopicPartition, None] = {}
        self._durable: list[Durable] = []

    def begin(self, found: Mapping[TopicPartition, int]) -> None:
        """Take what a start read from the file."""
        self._offsets = dict(found)

    def of(self, tp: TopicPartition) -> int:
        """Return the offset of a log, 0 if the file has none."""
        return self._offsets.get(tp, 0)

    def replace(self, offsets: Mapping[TopicPartition, int]) -> Durable:
        """Write these offsets in place of all, durably."""
        self._offsets = dict(offsets)
        return self._replace()

    def keep(self, tp: TopicPartition, offset: int) -> None:
        """Write down the offset of a log, durably."""
        self._offsets[tp] = offset
        self._replace()

    def lower(self, tp: TopicPartition, offset: int) -> None:
        """Write down an offset if the file has a later one, durably."""
        if self.of(tp) > offset:
            self.keep(tp, offset)

    def forget(self, tp: TopicPartition, *, at_once: bool = False) -> None:
        """Take out a log that is gone, or is about to be made: durably, by the end of the step or at once."""
        if self._offsets.pop(tp, None) is not None:
            self._leaving[tp] = None
            self._together.add(self)
        if at_once and tp in self._leaving:
            self._replace()

    def settle(self) -> None:
        """Write what is left, durably, unless it was written meanwhile."""
        if self._leaving:
            self._write()

    def report(self) -> None:
        """Say that it is durable."""
        durable, self._durable = self._durable, []
        for each in durable:
            self._on_durable(*each)

    def _replace(self) -> Durable:
        self._write()
        durable = self._durable[-1]
        self.report()
        return durable

    def _write(self) -> None:
        self._durable.append(replace_offsets(self._path, self._offsets))
        self._leaving.clear()
