"""A log that is no Kafka's: one file of a node, one record a line, with its epoch in front; for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, cast

from harness.beneath import Folder
from harness.logs.record import Record
from harness.logs.stream import Reading, RecordsReading, Unread
from harness.target.logs import NodeFiles

FILE: Final = "log"


class ToyLogs:
    """Reads it; it has neither segments nor a byte that may rot."""

    expected = "a file `log`, one record a line"

    def partitions(self, node: NodeFiles) -> list[tuple[str, int]]:
        """Return the only replica, once there is a file."""
        return [("log", 0)] if FILE in {entry.name for entry in node.folder.entries()} else []

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Read the lines."""
        return RecordsReading(topic, partition, records(node.folder), file=FILE)


def records(folder: Folder) -> Iterator[Record | Unread]:
    """Yield a record for each line that ends, and an unread one for a line that is damaged."""
    with os.fdopen(folder.open(FILE), "rb") as file:
        for offset, line in enumerate(file):
            epoch, space, value = line.removesuffix(b"\n").partition(b" ")
            if not (line.endswith(b"\n") and space and epoch.isdigit()):
                yield Unread(why=f"{FILE}, line {offset + 1}: {line!r}", first=offset, end=offset + 1)
            else:
                yield Record(offset=offset, epoch=int(epoch), value=value)


def toy(logs: object) -> Any:
    """Return a target with these logs and no other part."""
    return cast(Any, SimpleNamespace(name="toy", logs=logs))


TARGET = toy(ToyLogs())
