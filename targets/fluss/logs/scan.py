"""
Read one bucket's log from its folder: batches, records, its high watermark, and what could not be read.

Damage becomes a problem text, not an exception: a scan after a power loss must report what it found. Only regular
files are opened, and no link below the data directory is followed (harness/beneath.py).

    NNNN.log                                    a segment, named by its first offset
    NNNN.index, .timeindex, .writer_snapshot    what follows from the segments: not read
    NNNN.log.deleted                            no longer part of the log

There is no file of leader epochs. A tablet server holds no lock on its files: it is at work if they change while
they are read.

Source:  Apache Fluss 0.9.1, fluss-common/.../utils/FlussPaths.java; fluss-server/.../log/LogLoader.java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from harness.beneath import Folder
from harness.logs.checkpoint import Remembered, remembered
from harness.logs.files import Seen, seen_in
from harness.logs.names import shown
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.logs.segments import Findings, Pieces, read_in_order
from targets.fluss.logs.batch import Header, headers
from targets.fluss.logs.data import HIGH_WATERMARKS, Table, read_high_watermarks, tables
from targets.fluss.logs.records import seen

_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")


class Scan:
    """One reading of one bucket's folder; see harness/logs/stream.py for every call."""

    def __init__(self, data: Folder, topic: str, bucket: int, known: Remembered) -> None:
        """
        Read the high watermark and list the log.

        Args:
            data: The data directory.
            known: Its checkpoints that were read before, to which it adds.
        """
        self.topic, self.partition = topic, bucket
        self._found = Findings()
        self._remarked = False
        self._high_watermark: int | None = None
        self._name = f"{topic}-{bucket}"
        self._folder: Folder | None = None
        self._before: Seen = {}
        table = self._found.attempt(self._name, lambda: tables(data).get(topic))
        if table is None:
            if not self._found.problems:
                text = "no folder of a table of this name; expected one"
                self._found.problems.append(f"{shown(self._name)}: {text}")
            return
        # Read before the records: a high watermark read after them could lie beyond their end.
        self._high_watermark = self._high_watermark_of(data, table, known)
        name = self._name = f"{table.folder}/log-{bucket}"
        self._folder = self._found.attempt(name, lambda: data.folder(name))
        if self._folder is not None:
            self._before = self._found.attempt(name, partial(list_log, self._folder)) or {}

    def close(self) -> None:
        """Close the bucket's folder."""
        if self._folder is not None:
            self._folder.close()

    def batches(self, value_characters_max: int | None) -> Iterator[BatchSeen]:
        """Yield the batches in file order."""
        if self._folder is None:
            self._found.unread.append((0, None))
            return
        log = pieces(self._name, self._folder, self._before)
        yield from read_in_order(
            self._found, log, partial(seen, value_characters_max=value_characters_max, remark=self._remark)
        )

    def log(self) -> ReplicaLog:
        """Return the log without its batches; no files of Fluss have epochs beside it."""
        return ReplicaLog(
            topic=self.topic,
            partition=self.partition,
            log_start_offset=self._found.start,
            log_end_offset=self._found.end,
            batches=(),
            epochs=None,
            high_watermark=self._high_watermark,
            problems=tuple(self._found.problems),
            unread=tuple(self._found.unread),
            remarks=tuple(self._found.remarks),
        )

    def unsettled(self) -> str:
        """Return why what was read may mix two states of the log."""
        if self._folder is None:
            return ""
        try:
            after = list_log(self._folder)
        except OSError:
            after = self._before
        return self._found.unsettled(self._before, after)

    def _remark(self, text: str) -> None:
        """Keep a remark on a batch, the first: others of the log would be for the same reason."""
        if not self._remarked:
            self._remarked = True
            self._found.remarks.append(text)

    def _high_watermark_of(self, data: Folder, table: Table, known: Remembered) -> int | None:
        read = partial(read_high_watermarks, data)
        kept = self._found.attempt(HIGH_WATERMARKS, lambda: remembered(data, HIGH_WATERMARKS, read, known))
        return None if kept is None else kept.get((table.id, self.partition))


def list_log(folder: Folder) -> Seen:
    """
    List the segments of a bucket's folder.

    Raises:
        OSError: It cannot be listed.
    """
    return seen_in(folder, _SEGMENT)


def pieces(name: str, folder: Folder, listed: Seen) -> Pieces[Header]:
    """
    Return a log's segments.

    Args:
        name: The folder's path below the data directory.
    """
    segments = {int(each.removesuffix(".log")): each for each in sorted(listed)}
    return Pieces(name=name, folder=folder, segments=segments, walk=headers)
