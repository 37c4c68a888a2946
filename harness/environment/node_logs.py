"""
The logs of a run's nodes, read from their disks by the log reader of their target.

A node may have put a link in the place of its data directory; then nothing is read. All that the reader returns is
taken through a guard (harness/logs/guard.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.ability import Ability
from harness.beneath import Folder
from harness.bit_rot import Flip, Where, nothing_to_flip
from harness.environment.of_target import why_lacking
from harness.launch import Address
from harness.logs.asked import ReaderError
from harness.logs.guard import Guard
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.logs.stream import RecordsReading, read_whole
from harness.model import PreconditionError
from harness.target.logs import KeepsTwice, NodeFiles, QuickEnds, Rots, RotsState, Segments
from harness.target.target import Target


class NodeLogs:
    """
    The logs on the disks of a run's nodes.

    Raises:
        PreconditionError: From every call, if a node's data directory cannot be listed, or is a link by now; or if
            the target's reader does what none may do.
    """

    def __init__(
        self,
        target: Target,
        disk: Callable[[str], Path],
        address: Callable[[str], Address | None],
        give_up: Callable[[Exception], object],
    ) -> None:
        """
        Keep where nodes are.

        Args:
            disk: The path of a node's data directory.
            address: Where a node answers clients while it runs; None if that is not known.
            give_up: Notes that the reader does what none may do: the run is unknown then, and says why.
        """
        self._target = target
        self._guard = Guard(target.name, give_up)
        self._disk = disk
        self._address = address

    def whole(self, name: str, topic: str, partition: int) -> ReplicaLog | None:
        """Return a replica's log as its files have it; None while there is none."""
        logs, guard = self._target.logs, self._guard
        with self._listed(name) as node:

            def read() -> ReplicaLog | None:
                if (topic, partition) not in guard.partitions(lambda: logs.partitions(node)):
                    return None
                opened = partial(logs.reading, node, topic, partition)
                return read_whole(guard.opening(opened, topic, partition, node.folder.path))

            log = guard.run(read)
        if guard.wrong:  # no condition waits for a log that is not read
            raise ReaderError(guard.wrong)
        return log

    def beside(self, name: str, topic: str, partition: int) -> tuple[str, Sequence[BatchSeen]]:
        """Return what a replica's second store is called and has; "" and nothing if it has none."""
        logs, guard = self._target.logs, self._guard
        if not isinstance(logs, KeepsTwice):
            return "", ()
        second = logs.second
        with self._listed(name) as node:

            def opened() -> RecordsReading:
                return RecordsReading(topic, partition, logs.beside(node, topic, partition), file=second)

            log = guard.run(lambda: read_whole(guard.opening(opened, topic, partition, node.folder.path)))
        # It goes back where an entry was written again: that is how such a log is.
        return second, [replace(batch, problem="") for batch in log.batches]

    def end(self, name: str, topic: str, partition: int) -> int:
        """Return where a replica's log ends, at little cost if its reader can say it so; -1 if there is none."""
        logs, guard = self._target.logs, self._guard
        if isinstance(logs, QuickEnds):
            with suppress(OSError), self._opened(name) as node:
                end = guard.run(lambda: guard.end(lambda: logs.end(node, topic, partition)))
                if end is not None:
                    return end
        log = self.whole(name, topic, partition)
        return -1 if log is None else log.log_end_offset

    def to_flip(self, name: str, topic: str, partition: int, where: Where) -> Flip:
        """Choose a byte of a replica's files; raise PreconditionError if there is none."""
        logs, guard = self._target.logs, self._guard
        if not isinstance(logs, Rots):
            raise PreconditionError(f"{name}: {why_lacking(self._target, Ability.BIT_ROT)}")
        if where.is_state and not isinstance(logs, RotsState):
            raise PreconditionError(f"{name}: {nothing_to_flip(topic, partition, where)}")
        try:
            with self._opened(name) as node:
                found = guard.run(lambda: guard.flip(lambda: logs.to_flip(node, topic, partition, where)))
        except OSError as error:
            raise PreconditionError(f"{name}: {self._disk(name)}: {error}; expected files to read") from error
        if found is None:
            raise PreconditionError(f"{name}: {nothing_to_flip(topic, partition, where)}")
        return found

    def read_again(self, name: str, flip: Flip) -> str:
        """Return what a file of a state says since a byte of it was flipped, "" if nothing new."""
        logs, guard = self._target.logs, self._guard
        if not isinstance(logs, RotsState):
            return ""
        try:
            with self._opened(name) as node:
                return guard.run(lambda: guard.said(lambda: logs.read_again(node, flip)))
        except OSError as error:
            raise PreconditionError(f"{name}: {self._disk(name)}: {error}; expected files to read") from error

    def newest_segment(self, name: str, topic: str, partition: int) -> Sequence[str]:
        """Return the files of a log's newest segment, below the data directory; raise if there are none."""
        logs, guard = self._target.logs, self._guard
        if not isinstance(logs, Segments):
            raise PreconditionError(f"{name}: {why_lacking(self._target, Ability.SEGMENTS)}")
        with self._listed(name) as node:
            found = guard.run(lambda: guard.paths(lambda: logs.newest_segment(node, topic, partition)))
        if not found:
            raise PreconditionError(f"{name}: no segment of {topic}-{partition} to delete; expected one at least")
        return found

    @contextmanager
    def _listed(self, name: str) -> Iterator[NodeFiles]:
        try:
            with self._opened(name) as node:
                yield node
        except OSError as error:
            text = f"{error.strerror}; expected a data directory that can be listed"
            raise PreconditionError(f"{name}: {self._disk(name)}: {text}") from error

    @contextmanager
    def _opened(self, name: str) -> Iterator[NodeFiles]:
        # Closed here, and not by a reader that never returns: an open folder keeps its disk from being unmounted.
        with Folder.no_link(self._disk(name)) as folder:
            yield NodeFiles(folder=folder, address=self._address(name))
