"""
Find the replicas of a tablet server's data directory, and their high watermarks.

    DATA/DATABASE/TABLE-ID/log-BUCKET                 a bucket's log; a table with a key has kv-BUCKET beside it
    DATA/DATABASE/TABLE-ID/PARTITION-pID/log-BUCKET   of a partitioned table: not read
    DATA/high-watermark-checkpoint                    `table id, bucket, offset` of every bucket

The topic of a bucket is `TABLE` in our database, `DATABASE.TABLE` in any other. A table that was dropped and made
again has another id: the newest has the plain name, each other one `NAME.ID`. Fluss has no dots in names.

A name that is a bucket's and is no folder (a link, a FIFO) is a replica that cannot be read: it is returned, and
its scan reports why. A database or a table that is a link is not looked into.

Source:  Apache Fluss 0.9.1, fluss-common/.../utils/FlussPaths.java, metadata/TablePath.java;
         fluss-server/.../log/checkpoint/OffsetCheckpointFile.java.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from harness import limits
from harness.beneath import Folder, RefusedError
from harness.logs.checkpoint import INT, LONG, entries_of, number_of

T = TypeVar("T")

HIGH_WATERMARKS: Final = "high-watermark-checkpoint"
# Where the harness makes its tables.
OUR_DATABASE: Final = "fencepost"

_DATABASE: Final = re.compile(r"[A-Za-z0-9_-]+")
# Not a number that Fluss does not write, such as 007, which would name one table twice.
_NUMBER: Final = r"0|[1-9][0-9]{0,18}"
_TABLE: Final = re.compile(rf"(?P<name>[A-Za-z0-9_-]+)-(?P<id>{_NUMBER})")
_BUCKET: Final = re.compile(r"log-(?P<bucket>0|[1-9][0-9]{0,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table's folder below the data directory, and its id."""

    folder: str
    id: int


def tables(data: Folder) -> dict[str, Table]:
    """
    Return the tables of a data directory by topic.

    Raises:
        OSError: A folder cannot be listed, or there are more than FOLDER_NAMES_MAX tables.
    """
    found: dict[tuple[str, str], list[Table]] = {}
    for database, name, table in _bounded(_tables(data)):
        found.setdefault((database, name), []).append(table)
    topics: dict[str, Table] = {}
    older: list[tuple[str, str, Table]] = []
    for (database, name), known in sorted(found.items()):
        topic = name if database == OUR_DATABASE else f"{database}.{name}"
        *rest, topics[topic] = sorted(known, key=lambda table: table.id)
        older += [(topic, f"{database}.{name}", table) for table in rest]
    for topic, whole, table in older:
        # A table 5 in a database `records` is `records.5`, as the fifth of our tables `records` would be.
        named = f"{topic}.{table.id}"
        topics[named if named not in topics else f"{whole}.{table.id}"] = table
    return topics


def replicas(data: Folder) -> list[tuple[str, int]]:
    """
    Return the (topic, bucket) of each replica, sorted.

    Raises:
        OSError: As tables, or there are more than FOLDER_NAMES_MAX buckets.
    """
    return sorted(_bounded(_replicas(data)))


def read_high_watermarks(data: Folder) -> Mapping[tuple[int, int], int]:
    """
    Return the high watermarks by (table id, bucket), without those of partitioned tables; none without a file.

    Raises:
        CheckpointError: The file does not have the format of Fluss.
        OSError: The file cannot be read.
    """
    name, entries_max = HIGH_WATERMARKS, limits.CHECKPOINT_ENTRIES_MAX
    found: dict[tuple[int, int], int] = {}
    for entry in entries_of(data, name, fields=(3, 4), entries_max=entries_max) or ():
        table, *partition = (number_of(name, each, LONG) for each in entry[:-2])
        bucket, offset = number_of(name, entry[-2], INT), number_of(name, entry[-1], LONG)
        if not partition:
            found[table, bucket] = offset
    return found


def _tables(data: Folder) -> Iterator[tuple[str, str, Table]]:
    """Yield the database, the name and the folder of each table."""
    for database in _folders(data, _DATABASE):
        # It may be dropped meanwhile.
        with suppress(FileNotFoundError), data.folder(database[0]) as folder:
            for match in _folders(folder, _TABLE):
                yield database[0], match["name"], Table(folder=f"{database[0]}/{match[0]}", id=int(match["id"]))


def _replicas(data: Folder) -> Iterator[tuple[str, int]]:
    for topic, table in tables(data).items():
        with suppress(FileNotFoundError), data.folder(table.folder) as folder:
            for entry in folder.entries():
                match = _BUCKET.fullmatch(entry.name)
                if match is not None and not entry.is_file(follow_symlinks=False):
                    yield topic, int(match["bucket"])


def _folders(folder: Folder, names: re.Pattern[str]) -> list[re.Match[str]]:
    """Return the names of the folders in a folder that match."""
    found = (names.fullmatch(entry.name) for entry in folder.entries() if entry.is_dir(follow_symlinks=False))
    return [match for match in found if match is not None]


def _bounded(found: Iterator[T]) -> Iterator[T]:
    for count, each in enumerate(found):
        if count >= limits.FOLDER_NAMES_MAX:
            text = f"more than {limits.FOLDER_NAMES_MAX} tables or buckets, the limit of this reader"
            raise RefusedError(errno.EOVERFLOW, text)
        yield each
