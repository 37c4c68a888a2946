"""The log reader of Apache Fluss as a part of its target; see harness/target/logs.py for every call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from harness.beneath import Folder, RefusedError
from harness.bit_rot import Flip, Where
from harness.logs.checkpoint import Remembered
from harness.logs.flips import flip_of_batch, flip_of_count
from harness.logs.segments import Pieces, end_of_newest
from harness.logs.stream import Reading
from harness.target.logs import NodeFiles
from targets.fluss.logs.batch import Header
from targets.fluss.logs.data import HIGH_WATERMARKS, replicas, tables
from targets.fluss.logs.records import rotting
from targets.fluss.logs.scan import Scan, list_log, pieces

_OFFSET_DIGITS = 20
_KINDS = (".log", ".index", ".timeindex", ".writer_snapshot")


class FlussLogs:
    """Reads the data directories of tablet servers."""

    expected = "folders DATABASE/TABLE-ID/log-BUCKET that have segments (00000000000000000000.log)"

    def __init__(self) -> None:
        # A data directory's checkpoint is read once for all of its buckets, while its folder is used.
        self._known: WeakKeyDictionary[Folder, Remembered] = WeakKeyDictionary()

    def partitions(self, node: NodeFiles) -> Iterable[tuple[str, int]]:
        """Return the replicas by their tables' names and their buckets."""
        return replicas(node.folder)

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Begin to scan a bucket's folder."""
        return Scan(node.folder, topic, partition, self._known.setdefault(node.folder, {}))

    def end(self, node: NodeFiles, topic: str, partition: int) -> int | None:
        """Return the log end offset that the newest segment shows."""
        with suppress(OSError), _log(node, topic, partition) as log:
            return None if log is None else end_of_newest(log)
        return None

    def to_flip(self, node: NodeFiles, topic: str, partition: int, where: Where) -> Flip | None:
        """
        Choose a byte of the middle batch of the active segment, or of the newest closed one that has batches.

        Of checkpoints it is the first digit of the number of high watermarks.
        """
        with _log(node, topic, partition) as log:
            if log is None:
                return None
            if where is Where.CHECKPOINT:
                return flip_of_count(node.folder, HIGH_WATERMARKS)
            return flip_of_batch(log, where, rotting)

    def newest_segment(self, node: NodeFiles, topic: str, partition: int) -> Sequence[str]:
        """Return the newest segment with its indexes, and what was kept of writers from its first offset on."""
        with _log(node, topic, partition) as log:
            if log is None or not log.segments:
                return []
            newest = log.segments[max(log.segments)][:_OFFSET_DIGITS]
            names = sorted(entry.name for entry in log.folder.entries())
        return [
            f"{log.name}/{each}"
            for each in names
            if each[:_OFFSET_DIGITS] >= newest and each[_OFFSET_DIGITS:] in _KINDS
        ]


@contextmanager
def _log(node: NodeFiles, topic: str, partition: int) -> Iterator[Pieces[Header] | None]:
    """Open a bucket's log; None if there is none, or a link in its place."""
    table = tables(node.folder).get(topic)
    name = "" if table is None else f"{table.folder}/log-{partition}"
    try:
        folder = node.folder.folder(name) if name else None
    except (FileNotFoundError, RefusedError):
        folder = None
    if folder is None:
        yield None
        return
    with folder:
        yield pieces(name, folder, list_log(folder))


LOGS = FlussLogs()
