"""The log reader of Kafka's family as a part of its targets; see harness/target/logs.py for every call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from harness.beneath import Folder, RefusedError
from harness.bit_rot import Flip, Where
from harness.logs.checkpoint import Remembered
from harness.logs.flips import flip_of_count
from harness.logs.stream import Reading
from harness.target.logs import NodeFiles
from targets.kafka_family.logs.checkpoint import HIGH_WATERMARKS
from targets.kafka_family.logs.data import DataFolder, is_partition, parse
from targets.kafka_family.logs.flipping import chosen
from targets.kafka_family.logs.log_end import quick_end
from targets.kafka_family.logs.scan import Scan


class KafkaLogs:
    """Reads the log directories of Kafka's brokers."""

    expected = "segments (00000000000000000000.log), or directories named TOPIC-PARTITION that have them"

    def __init__(self) -> None:
        # A data directory's checkpoints are read once for all of its partitions, while its folder is used.
        self._read: WeakKeyDictionary[Folder, Remembered] = WeakKeyDictionary()

    def partitions(self, node: NodeFiles) -> Iterator[tuple[str, int]]:
        """Yield the replicas by their folders' names."""
        for name in self._data_of(node).partitions() or ():
            yield parse(name, node.folder.path / name)

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Begin to scan a partition's directory."""
        return Scan(self._data_of(node), f"{topic}-{partition}")

    def replica_of(self, folder: Folder) -> tuple[str, int] | None:
        """Return the partition whose directory this is, by its name."""
        return parse(folder.path.name, folder.path) if is_partition(folder) else None

    def end(self, node: NodeFiles, topic: str, partition: int) -> int | None:
        """Return the log end offset that the newest segment shows."""
        with suppress(OSError), _partition(node, topic, partition) as folder:
            return None if folder is None else quick_end(folder)
        return None

    def to_flip(self, node: NodeFiles, topic: str, partition: int, where: Where) -> Flip | None:
        """
        Choose a byte of the middle batch of the active segment, or of the newest closed one that has batches.

        Of a checkpoint it is the first digit of its number of entries: the replica's of epochs, or, if that has
        none, the node's of high watermarks.
        """
        with _partition(node, topic, partition) as folder:
            found = None if folder is None else chosen(folder, where)
            if found is None and folder is not None and where is Where.CHECKPOINT:
                found = flip_of_count(node.folder, HIGH_WATERMARKS)
        return found

    def newest_segment(self, node: NodeFiles, topic: str, partition: int) -> Sequence[str]:
        """Return the newest segment with its indexes."""
        with _partition(node, topic, partition) as folder:
            names = [] if folder is None else sorted(entry.name for entry in folder.entries())
        newest = max((each.removesuffix(".log") for each in names if each.endswith(".log")), default=None)
        return [f"{topic}-{partition}/{each}" for each in names if newest and each.startswith(f"{newest}.")]

    def _data_of(self, node: NodeFiles) -> DataFolder:
        return DataFolder(node.folder, self._read.setdefault(node.folder, {}))


@contextmanager
def _partition(node: NodeFiles, topic: str, partition: int) -> Iterator[Folder | None]:
    """Open a replica's folder; None if there is none, or a link in its place."""
    try:
        folder = node.folder.folder(f"{topic}-{partition}")
    except (FileNotFoundError, RefusedError):
        yield None
        return
    with folder:
        yield folder


LOGS = KafkaLogs()
