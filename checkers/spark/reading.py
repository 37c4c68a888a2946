"""
The work of executors on tables: read row groups of a file, and do with their rows what a scan asks for.

This module imports nothing of Spark.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from harness.tables.manifest import TablesError
from harness.tables.schema import SCHEMAS

# The number of a run, and the place of a partition in its manifest.
Key: TypeAlias = tuple[int, int]
# What is done with rows of a run: its number, and tables of some rows each -> tables by partition.
Work: TypeAlias = Callable[[int, Iterator[pa.Table]], Iterable[tuple[Key, pa.Table]]]

# Rows of one partition, and the same as bytes.
Found: TypeAlias = tuple[Key, pa.Table]
Packed: TypeAlias = tuple[Key, bytes]
# All tables of one partition.
Grouped: TypeAlias = tuple[Key, Sequence[pa.Table]]

T = TypeVar("T")

# Texts of few values, which are read as numbers.
_CODED: Final = frozenset({"codec", "outcome"})

ROWS_SCHEMA: Final = pa.schema([("run", pa.int32()), ("part", pa.int32()), ("rows", pa.binary())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """
    Rows of one table, and what is done with them.

    Attributes:
        table: its name.
        columns: those that are read.
        work: called by executors, with some of the rows at a time.
        runs: the number of each run whose rows are read -> values of `by`; rows with other values may be left out.
            None leaves none out.
        by: a column of whole numbers, by which the rows nearly lie in order.
    """

    table: str
    columns: tuple[str, ...]
    work: Work
    runs: Mapping[int, frozenset[int] | None]
    by: str = "place"

    @staticmethod
    def all(table: str, work: Work, runs: Iterable[int], columns: Sequence[str] = ()) -> Scan:
        """Return the scan of all rows of these runs, of all columns if none is named."""
        return Scan(
            table=table, columns=tuple(columns or SCHEMAS[table].names), work=work, runs=dict.fromkeys(runs)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """
    Some row groups of one file.

    Attributes:
        path: of the file, on the machine of the executor.
        run: the number of the run.
        groups: the places of the row groups.
        rows: how many rows they have.
        scan: the place of the scan that asks for them.
    """

    path: str
    run: int
    groups: tuple[int, ...]
    rows: int
    scan: int


# --- what Spark moves: tables as bytes, which takes a tenth of the time that pickling them takes ----------------
def worked(pieces: Iterable[Piece], scans: Sequence[Scan]) -> Iterator[Packed]:
    """Read pieces, and yield what the work of each one's scan makes of them."""
    settle()
    for piece in pieces:
        scan = scans[piece.scan]
        yield from packed(scan.work(piece.run, _read(piece, scan.columns)))


def each_table(work: Callable[[Found], Iterable[Found]], items: Iterable[Packed]) -> Iterator[Packed]:
    """Yield what the work makes of each table."""
    for item in opened(items):
        yield from packed(work(item))


def each_key(work: Callable[[Grouped], Iterable[T]], items: Iterable[Packed]) -> Iterator[T]:
    """Call the work with all tables of each partition that are in one task, and yield what it returns."""
    grouped: dict[Key, list[bytes]] = {}
    for key, content in items:
        grouped.setdefault(key, []).append(content)
    for key in [*grouped]:
        yield from work((key, [table for _, table in opened((key, each) for each in grouped.pop(key))]))


def packed(found: Iterable[Found]) -> Iterator[Packed]:
    """Yield tables as bytes."""
    for key, table in found:
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        yield key, sink.getvalue().to_pybytes()


def opened(items: Iterable[Packed]) -> Iterator[Found]:
    """Yield the tables that are in bytes."""
    for key, content in items:
        with ipc.open_stream(content) as stream:
            yield key, stream.read_all()


def task_of(key: Key) -> int:
    """Return a number by which a partition's tables find their task."""
    return key[0] + key[1]


def settle() -> None:
    """Keep what is imported out of garbage collection, which PySpark asks for after each task: 40 ms of it."""
    if not gc.get_freeze_count():
        gc.freeze()


def as_rows(scan: Scan, run: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that executors call with rows that Spark has read; it yields rows of ROWS_SCHEMA."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        for (_, part), content in packed(scan.work(run, tables)):
            yield pa.RecordBatch.from_pylist([{"run": run, "part": part, "rows": content}], ROWS_SCHEMA)

    return work


def packed_row(row: Mapping[str, Any]) -> Packed:
    """Return what is in a row of ROWS_SCHEMA."""
    return (row["run"], row["part"]), bytes(row["rows"])


def _read(piece: Piece, columns: Sequence[str]) -> Iterator[pa.Table]:
    coded = [name for name in columns if name in _CODED]
    group = -1
    try:
        with pq.ParquetFile(piece.path, read_dictionary=coded) as file:
            for group in piece.groups:
                # One thread: Spark gives each task a core.
                yield file.read_row_group(group, columns=list(columns), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        where = f"row group {group}: " if group >= 0 else ""
        raise TablesError(f"{piece.path}: {where}{error!s:.200}; expected a table of this run") from None
