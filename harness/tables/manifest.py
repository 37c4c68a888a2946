"""
Where the tables of a run are, and the manifest that says that they are complete.

    RUN/tables/manifest.json    written last
    RUN/tables/NAME.parquet     one file for each table

Nothing here needs pyarrow: commands that only ask whether there are tables start without it, in half the time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from harness.model import FencepostError

VERSION: Final = 3
# Histories up to this many bytes need no tables: they are judged whole, from their lines; some 60,000 ops.
LINES_MAX: Final = 16 * 2**20
FOLDER: Final = "tables"
MANIFEST: Final = "manifest.json"


class TablesError(FencepostError):
    """A run's tables are not there, not whole, or of another version; its history can always be read instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """
    What is known of a run's tables.

    Attributes:
        size: the bytes of the history that they were made from; other bytes are another history.
        ops: how many ops it has.
        rows: how many rows each table has.
        skips: the first breaks of the ops' indexes: the last index, and the one that followed.
        falls: the first breaks of the ops' times: the index, the last time and the one that followed.
        parts: the topic and partition of all ops that are about one.
        logs: the place of the partition, the replica and the index of the snapshot of each log that was read.
        irregular: `topic-partition` -> why an op of that partition does not fit the tables.
        reach: how many places after its own the records of a batch that is not odd lie at most.
        sizes: the bytes of each table's file; nothing in manifests that are older than this.
    """

    version: int = VERSION
    size: int
    ops: int
    rows: Mapping[str, int]
    skips: tuple[tuple[int, int], ...] = ()
    falls: tuple[tuple[int, int, int], ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    logs: tuple[tuple[int, str, int], ...] = ()
    irregular: Mapping[str, str] = field(default_factory=dict)
    reach: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write it to the folder of the tables."""
        (folder / MANIFEST).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> Manifest:
        """Read it from the folder of the tables; raise TablesError if it is not there, or of another version."""
        path = folder / MANIFEST
        try:
            text = path.read_bytes()
        except OSError as error:
            raise _no_manifest(path, error) from error
        return Manifest.parse(text, path)

    @staticmethod
    def parse(text: bytes, path: Path | str) -> Manifest:
        """Return the manifest in that text, which is at `path`; raise TablesError as `read` does."""
        try:
            raw = json.loads(text)
            if raw["version"] != VERSION:
                raise TablesError(f"{path}: version {raw['version']!r:.20}; expected {VERSION}")
            return Manifest(
                size=raw["size"],
                ops=raw["ops"],
                rows=raw["rows"],
                skips=tuple((last, index) for last, index in raw["skips"]),
                falls=tuple((index, last, now) for index, last, now in raw["falls"]),
                parts=tuple((topic, partition) for topic, partition in raw["parts"]),
                logs=tuple((part, replica, snapshot) for part, replica, snapshot in raw["logs"]),
                irregular=raw["irregular"],
                reach=raw["reach"],
                sizes=raw.get("sizes", {}),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise _no_manifest(path, error) from error


def _no_manifest(path: Path | str, error: Exception) -> TablesError:
    return TablesError(f"{path}: {error!r:.200}; expected the manifest of a run's tables")


def check_size(path: Path | str, found: int, expected: int | None) -> None:
    """Raise TablesError if a table's file has another size than the one that was written with the manifest."""
    if expected not in (None, found):
        raise TablesError(f"{path}: {found} bytes; expected the file of {expected} that its manifest is about")


def table_path(folder: Path, name: str) -> Path:
    """Return the path of a table's file."""
    return folder / f"{name}.parquet"


def partial_folder(history: Path) -> Path:
    """Return the folder of tables that are being made."""
    return history.parent / f"{FOLDER}.partial"
