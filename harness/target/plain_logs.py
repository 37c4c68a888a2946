"""The logs of a system with one partition, which each node keeps in one file, one line a record."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from harness.beneath import Folder
from harness.logs.record import Record
from harness.logs.stream import Reading, RecordsReading, Unread
from harness.target.logs import NodeFiles


class PlainLogs:
    """
    The logs; see harness/target/logs.py for every call. A last line without an end was not written whole.

    Attributes:
        file: the file's name in a node's folder.
        place: the topic and the partition.
    """

    file: ClassVar[str] = "log"
    place: ClassVar[tuple[str, int]] = ("log", 0)

    @abstractmethod
    def record(self, line: bytes) -> tuple[int, bytes]:
        """Return the epoch, -1 for none, and the value that a line has; raise ValueError if it is no record."""

    @property
    def expected(self) -> str:
        """What a node's folder has in it."""
        return f"a file `{self.file}`, one record a line"

    def partitions(self, node: NodeFiles) -> Sequence[tuple[str, int]]:
        """Return the one partition, if the file is there."""
        return [self.place] if any(entry.name == self.file for entry in node.folder.entries()) else []

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Read the file."""
        return RecordsReading(topic, partition, self._records(node.folder), file=self.file)

    def _records(self, folder: Folder) -> Iterator[Record | Unread]:
        with os.fdopen(folder.open(self.file), "rb") as file:
            for offset, line in enumerate(file):
                if not line.endswith(b"\n"):
                    return
                try:
                    epoch, value = self.record(line[:-1])
                except ValueError as error:
                    why = f"{self.file}, line {offset + 1}: {line[:100]!r}: {error}; expected a record"
                    yield Unread(why=why, first=offset, end=offset + 1)
                else:
                    yield Record(offset=offset, epoch=epoch, value=value)
