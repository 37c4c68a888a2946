"""
Logs: what a replica holds, read from the folder of its node; a part of a target.

The folder may be a stranger's, and its node may write to it meanwhile: a reader opens files through `node.folder`
alone, takes a bounded part of them into memory, and reports what it cannot read instead of raising. What only some
systems can say or do is a protocol of its own; a reader that lacks its method lacks the ability.

    Logs              which replicas a folder holds, and what each log has        every target
    QuickEnds         where a log ends, without a reading of it                   else it is read
    ReplicaFolders    a replica has a folder of its own, which may be named       else a node's folder is named
    KeepsTwice        what a second store of a replica has                        else it has one
    Rots              where a byte may be flipped                                 else no bit rot
    RotsState         what a file without records says, such as that of a term    else no byte of one is flipped
    Segments          which files are the newest piece of a log                   else none is deleted

    class MyLogs:
        expected = "a file `log`, one record a line"

        def partitions(self, node):
            return [("log", 0)]

        def reading(self, node, topic, partition):
            return RecordsReading(topic, partition, my_records(node.folder))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harness.beneath import Folder
from harness.bit_rot import Flip, Where
from harness.launch import Address
from harness.logs.record import Record
from harness.logs.stream import Reading, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFiles:
    """
    Where a node keeps its logs.

    Attributes:
        folder: Its data directory, open.
        address: Where the node answers clients while it runs, for a log that its files alone do not show; None for
            a copy.
    """

    folder: Folder
    address: Address | None = None


class Logs(Protocol):
    """Reads the logs of a node's replicas."""

    @property
    def expected(self) -> str:
        """What a node's folder has in it, as words, for an error about a folder that is none."""

    def partitions(self, node: NodeFiles) -> Iterable[tuple[str, int]]:
        """
        Return the (topic, partition) of each replica of the node, also of one that cannot be read.

        Raises:
            OSError: The folder cannot be listed.
        """

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Begin to read a log; harness/logs/stream.py makes a reading of records."""


@runtime_checkable
class QuickEnds(Protocol):
    """Finds where a log ends at little cost, for conditions that are looked at many times a second."""

    def end(self, node: NodeFiles, topic: str, partition: int) -> int | None:
        """Return the log end offset; None if only a reading shows it, or there is no log."""


@runtime_checkable
class ReplicaFolders(Protocol):
    """Each replica has a folder, directly in that of its node."""

    def replica_of(self, folder: Folder) -> tuple[str, int] | None:
        """
        Return the (topic, partition) of the replica whose folder this is, None for any other folder.

        Raises:
            OSError: The folder cannot be listed.
        """


@runtime_checkable
class KeepsTwice(Protocol):
    """
    A replica keeps its records a second time: as a log that replicates them, beside the store that serves them.

    Attributes:
        second: What the second store is called in histories, such as `raft`.
    """

    second: str

    def beside(self, node: NodeFiles, topic: str, partition: int) -> Iterable[Record | Unread]:
        """Yield what the second store has, in its order: an offset may come again, as its last one counts."""


@runtime_checkable
class Rots(Protocol):
    """Chooses a byte that bit rot may change so that whoever reads it can see it."""

    def to_flip(self, node: NodeFiles, topic: str, partition: int, where: Where) -> Flip | None:
        """
        Choose a byte of a replica's files; None if there is none of that kind.

        Files of a state are asked for of a RotsState alone.

        Raises:
            OSError: A file cannot be read.
        """


@runtime_checkable
class RotsState(Protocol):
    """Chooses a byte of files that keep no record too (`Where.is_state`), and reads these again."""

    def read_again(self, node: NodeFiles, flip: Flip) -> str:
        """
        Return what a file of which a byte was flipped says now, or why it cannot be believed; "" if as before.

        Raises:
            OSError: The file cannot be read.
        """


@runtime_checkable
class Segments(Protocol):
    """Keeps a log in pieces, of which an operator can take away the newest while the node is down."""

    def newest_segment(self, node: NodeFiles, topic: str, partition: int) -> Sequence[str]:
        """
        Return the files of a log's newest piece, below the node's folder; none if there is no log.

        Raises:
            OSError: The folder cannot be listed.
        """
