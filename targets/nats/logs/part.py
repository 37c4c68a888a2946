"""
The log reader as the target names it: it is imported when a log is read.

Every command imports the targets, and starts faster without numpy, which checksums need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from harness.bit_rot import Flip, Where
from harness.logs.record import Record
from harness.logs.stream import Reading, Unread
from harness.target.logs import NodeFiles

if TYPE_CHECKING:
    from targets.nats.logs.reader import NatsLogs


class LaterLogs:
    """Has the calls of NatsLogs; see harness/target/logs.py for each."""

    second = "raft"
    expected = "a folder jetstream/ACCOUNT/streams/STREAM/msgs that has message blocks (1.blk)"

    def partitions(self, node: NodeFiles) -> Iterable[tuple[str, int]]:
        """Return the replicas by their streams' names."""
        return _reader().partitions(node)

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Begin to scan a stream's store."""
        return _reader().reading(node, topic, partition)

    def beside(self, node: NodeFiles, topic: str, partition: int) -> Iterable[Record | Unread]:
        """Yield the stream's records that the replica's Raft log holds."""
        return _reader().beside(node, topic, partition)

    def end(self, node: NodeFiles, topic: str, partition: int) -> int | None:
        """Return the log end offset that the newest blocks show."""
        return _reader().end(node, topic, partition)

    def to_flip(self, node: NodeFiles, topic: str, partition: int, where: Where) -> Flip | None:
        """Choose a byte of a record, of an entry of the Raft log, or of a file of its state."""
        return _reader().to_flip(node, topic, partition, where)

    def read_again(self, node: NodeFiles, flip: Flip) -> str:
        """Return what a file of the replica's state says since a byte of it was flipped."""
        return _reader().read_again(node, flip)

    def newest_segment(self, node: NodeFiles, topic: str, partition: int) -> Sequence[str]:
        """Return the newest block."""
        return _reader().newest_segment(node, topic, partition)


def _reader() -> NatsLogs:
    from targets.nats.logs.reader import LOGS

    return LOGS


LOGS: Final = LaterLogs()
