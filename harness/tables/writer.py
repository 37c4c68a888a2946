"""
Write a history's tables: from its lines, in memory that does not grow with them, and never half.

The lines stay the durable record. Tables can be made from them at any time, also those of a run that was killed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.tables.lines import Lines
from harness.tables.manifest import FOLDER, Manifest, TablesError, check_size, partial_folder, table_path
from harness.tables.places import places_of
from harness.tables.rows import Row, Rows
from harness.tables.schema import DERIVED, ROWS, SCHEMAS, check_schema

# Numbers that hardly repeat are written as they are or as differences, texts by a dictionary, and pages have an
# index: Spark folds such files in 0.6 of the time, reads single places in less, and they are half as large.
_RISING: Final = frozenset(
    {"index", "time_ns", "invoked", "invoked_ns", "done", "done_ns", "offset", "base", "last", "before", "behind"}
    | {"floor", "number", "position", "rank", "batch"}
)
_SCATTERED: Final = frozenset({"hash", "digest", "crc"})
# What cannot be compressed.
_HASHES: Final = frozenset({"hash", "digest"})
_PAGE_BYTES: Final = 32_768
# What is read of a history at a time.
PIECE_BYTES: Final = 2**20
# The same text has the same hash in every run.
_HASH_KEY: Final = "fencepost-tables"


class TableWriter:
    """Writes tables to a new folder, row group by row group, until its block ends. The manifest is for others."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._stack = ExitStack()
        self.written = dict.fromkeys(SCHEMAS, 0)
        self._files = {
            name: self._stack.enter_context(pq.ParquetWriter(table_path(folder, name), schema, **_layout(schema)))
            for name, schema in SCHEMAS.items()
        }

    def write(self, name: str, rows: list[Row]) -> None:
        """Write one row group."""
        self.write_table(name, as_table(name, rows))

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write rows that are a table already."""
        if table.num_rows:
            self._files[name].write_table(table, row_group_size=ROWS)
            self.written[name] += table.num_rows

    def close(self) -> None:
        """Write the ends of the files, and close them; safe to call twice."""
        self._stack.close()

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each file, once they are closed."""
        return {name: table_path(self._folder, name).stat().st_size for name in SCHEMAS}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TableMaker:
    """
    Makes the tables of a history in a new folder, whose files are open until its block ends.

    Args:
        history: the path of the history, for warnings.

    Attributes:
        size: the bytes of the history that were added.
    """

    def __init__(self, folder: Path, history: Path) -> None:
        self.size = 0
        self._torn: list[bytes] = []
        self._rows = Rows()
        self._rows.on_rows = self._write_full
        self._lines = Lines(self._rows, str(history))
        self._folder = folder
        self._writer = TableWriter(folder)

    def add(self, piece: bytes) -> None:
        """Add the next bytes of the history, which may end anywhere."""
        self.size += len(piece)
        whole = piece.rfind(b"\n") + 1
        if whole:
            self._lines.add(b"".join((*self._torn, piece[:whole])))
            self._torn.clear()
            self._write_full()
        if len(piece) > whole:
            self._torn.append(piece[whole:])

    def finish(self) -> None:
        """Write all that is left, and the manifest last: the history has ended, perhaps within a line."""
        self._lines.end(sum(map(len, self._torn)))
        self._write_full()
        for name, last in self._rows.rows.items():
            self._writer.write(name, last)
        self._writer.close()
        rows, breaks = self._rows, self._lines.breaks
        manifest = Manifest(
            size=self.size,
            ops=breaks.count,
            rows=self._writer.written,
            skips=tuple(breaks.skips),
            falls=tuple(breaks.falls),
            parts=tuple(rows.parts),
            logs=tuple(rows.logs),
            irregular=rows.irregular,
            reach=rows.reach,
            sizes=self._writer.sizes(),
        )
        manifest.write(self._folder)

    def _write_full(self) -> None:
        """Write the row groups that are full; which rows are in which does not depend on the pieces."""
        for name, rows in self._rows.rows.items():
            full = len(rows) - len(rows) % ROWS
            for first in range(0, full, ROWS):
                self._writer.write(name, rows[first : first + ROWS])
            del rows[:full]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()


def _layout(schema: pa.Schema) -> dict[str, Any]:
    """Return how the columns of a table are written."""
    return {
        "compression": {name: "none" if name in _HASHES else "zstd" for name in schema.names},
        "use_dictionary": [name for name in schema.names if name not in _RISING | _SCATTERED],
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in schema.names if name in _RISING},
        "data_page_size": _PAGE_BYTES,
        "write_page_index": True,
    }


def make_tables(history: Path) -> Path:
    """
    Make the tables of a history beside it, and return their folder; an older one is replaced.

    Raises:
        OSError: the folder cannot be written.
        TablesError: a value fits into no column.
    """
    partial = partial_folder(history)
    shutil.rmtree(partial, ignore_errors=True)
    with history.open("rb") as file, TableMaker(partial, history) as maker:
        while piece := file.read(PIECE_BYTES):
            maker.add(piece)
        maker.finish()
    return put_in_place(history)


def ensure_tables(history: Path) -> Manifest:
    """
    Return the manifest of a history's tables; make them from its lines if they are not there or not whole.

    Raises:
        OSError: the folder cannot be written.
        TablesError: there are no lines from which to make them, or a value fits into no column.
    """
    try:
        return read_manifest(history)
    except TablesError:
        if not history.exists():
            raise
    make_tables(history)
    return read_manifest(history)


def put_in_place(history: Path) -> Path:
    """Make the partial folder that of the history's tables, and return it; an older one is replaced."""
    folder = history.parent / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    return partial_folder(history).rename(folder)


def read_manifest(history: Path) -> Manifest:
    """
    Return the manifest of a history's tables, after a look at each table's columns and number of rows.

    Raises:
        TablesError: a table is missing, is cut short, has other columns, or was made from another history.
    """
    folder = history.parent / FOLDER
    manifest = Manifest.read(folder)
    size = history.stat().st_size if history.exists() else manifest.size
    if size != manifest.size:
        raise TablesError(f"{folder}: made from a history of {manifest.size} bytes; expected {size}")
    for name in SCHEMAS:
        path = table_path(folder, name)
        try:
            about = pq.read_metadata(path)
            found = about.schema.to_arrow_schema()
        except (OSError, pa.ArrowException) as error:
            raise TablesError(f"{path}: {error!s:.200}; expected a table of this run") from error
        check_schema(path, name, found)
        if about.num_rows != manifest.rows[name]:
            raise TablesError(f"{path}: {about.num_rows} rows; expected {manifest.rows[name]}")
        check_size(path, path.stat().st_size, manifest.sizes.get(name))
    return manifest


def as_table(name: str, rows: list[Row]) -> pa.Table:
    """Return rows as a table, with the columns that are DERIVED; raise TablesError if a column cannot hold one."""
    schema = SCHEMAS[name]
    given = [column for column in schema.names if column not in DERIVED]
    found: dict[str, Any] = dict(zip(given, zip(*rows, strict=True) if rows else [()] * len(given), strict=True))
    try:
        if "hash" in schema.names:
            found["hash"] = hashes(found["value"])
        return placed(name, found)
    except (ValueError, OverflowError, pa.ArrowException) as error:  # half of a surrogate pair is no UTF-8
        raise TablesError(f"table {name}: {error!s:.200}; expected values that its columns hold") from error


def placed(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Return columns as a table, with that of the places, if it has one."""
    found = dict(columns)
    if "place" in SCHEMAS[name].names:
        found["place"] = places_of(found["part"], found["base" if name == "batches" else "offset"])
    return pa.table(found, schema=SCHEMAS[name])


def hashes(values: Any) -> Any:
    """Return the 64-bit hashes of texts, as signed numbers."""
    texts = pd.Series(values, dtype=object).to_numpy()
    return pd.util.hash_array(texts, hash_key=_HASH_KEY, categorize=False).view("int64")
