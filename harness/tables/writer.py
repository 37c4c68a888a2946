"""
Write a history's tables: from its lines, in memory that does not grow with them, and never half.

The lines stay the durable record. Tables can be made from them at any time, also those of a run that was killed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.history.file import history_ops
from harness.history.sequence import Sequence
from harness.model import Op
from harness.tables.rows import Row, Rows
from harness.tables.schema import FOLDER, ROWS, SCHEMAS, Manifest, TablesError, check_schema, table_path

# Row groups compress to a third of their size, at no cost that could be measured.
_COMPRESSION: Final = "zstd"
# The same text has the same hash in every run.
_HASH_KEY: Final = "fencepost-tables"


class TableWriter:
    """Writes tables to a folder, row group by row group; `tables_of` decides when it is whole."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._stack = ExitStack()
        self.written = dict.fromkeys(SCHEMAS, 0)
        self._files = {
            name: self._stack.enter_context(
                pq.ParquetWriter(table_path(folder, name), schema, compression=_COMPRESSION)
            )
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
        """Write the files' ends."""
        self._stack.close()


def make_tables(history: Path) -> Path:
    """
    Make the tables of a history beside it, and return their folder; an older one is replaced.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = history.parent / FOLDER
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    manifest = write_tables(history_ops(history), partial, history.stat().st_size)
    manifest.write(partial)
    shutil.rmtree(folder, ignore_errors=True)
    return partial.rename(folder)


def write_tables(ops: Iterable[Op], folder: Path, size: int) -> Manifest:
    """Write the tables of these ops to a new folder, without the manifest, which is returned."""
    rows, sequence, writer = Rows(), Sequence(), TableWriter(folder)
    for op in ops:
        sequence.add(op.index, op.time_ns)
        rows.add(op)
        for name, waiting in rows.rows.items():
            if len(waiting) >= ROWS:
                writer.write(name, waiting)
                rows.rows[name] = []
    rows.end()
    for name, waiting in rows.rows.items():
        writer.write(name, waiting)
    writer.close()
    return Manifest(
        size=size,
        ops=sequence.count,
        rows=writer.written,
        skips=tuple(sequence.skips),
        falls=tuple(sequence.falls),
        parts=tuple(rows.parts),
        logs=tuple(rows.logs),
        irregular=rows.irregular,
    )


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
    return manifest


def as_table(name: str, rows: list[Row]) -> pa.Table:
    """Return rows as a table, with the hashes of their values."""
    schema = SCHEMAS[name]
    columns = iter(zip(*rows, strict=True)) if rows else iter([()] * (len(schema) - ("hash" in schema.names)))
    found: dict[str, Any] = {}
    for column in schema:
        if column.name != "hash":
            found[column.name] = next(columns)
    if "hash" in schema.names:
        found["hash"] = hashes(found["value"])
    return pa.table(found, schema=schema)


def hashes(values: Any) -> Any:
    """Return the 64-bit hashes of texts, as signed numbers."""
    texts = pd.Series(values, dtype=object).to_numpy()
    return pd.util.hash_array(texts, hash_key=_HASH_KEY, categorize=False).view("int64")
