"""
Have executors scan tables: each reads some row groups and works on their rows; what it makes of them is small.

Files that executors can open are read by Arrow, row groups one by one: it needs no query that Java would compile
first, and reads a record in a tenth of the time. Files that only Spark's readers reach are read by these, and the
same work is done with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import RDD, StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.spark.options import Folder, spark_path
from checkers.spark.reading import ROWS_SCHEMA, Key, Piece, Scan, as_rows, packed, packed_row, task_of, worked
from checkers.spark.rows import Ints
from harness.tables.manifest import FOLDER, table_path
from harness.tables.schema import ROWS, SCHEMAS

# Tables by partition, wherever they are (RDD[Packed]; PySpark is untyped here).
Parts: TypeAlias = Any

# Row groups of a piece: opening a file takes as long as reading five.
_GROUPS_MAX: Final = 64
# Pieces for each core, so that one that is slow does not keep the others waiting.
_PIECES: Final = 6


class Tables:
    """
    The tables of runs; the number of a run is its position in `folders`.

    Args:
        session: the Spark session.
        folders: each run's folder: a local path, which executors must have too, or a URI that Spark can read.
    """

    def __init__(self, session: SparkSession, folders: Sequence[Folder]) -> None:
        self._session = session
        self._context = session.sparkContext
        self._folders = folders
        self._about: dict[str, pq.FileMetaData] = {}
        self._kept: list[Parts] = []
        # Into how many tasks partitions are divided.
        self.tasks = 2 * int(self._context.defaultParallelism)

    def scan(self, *scans: Scan) -> Parts:
        """Return what the work of these scans makes of their rows, when it is asked for."""
        pieces, elsewhere = list[Piece](), list[Parts]()
        for place, scan in enumerate(scans):
            for run, values in scan.runs.items():
                folder = self._folders[run]
                if values is not None and not values:
                    continue
                if isinstance(folder, Path):
                    pieces += self._pieces(folder, run, scan, place)
                else:
                    elsewhere.append(self._read_by_spark(folder, run, scan))
        largest_first = sorted(pieces, key=lambda piece: -piece.rows)
        here = self._spread(largest_first).mapPartitions(partial(worked, scans=scans))
        return self._context.union([here, *elsewhere]) if elsewhere else here

    def of(self, tables: Iterable[tuple[Key, pa.Table]]) -> Parts:
        """Return tables that are small."""
        return self._spread([*packed(tables)])

    def gather(self, *some: Parts) -> Parts:
        """
        Return all of these, those of one partition in one place; what was gathered before stays where it is.

        A partition's tables are in one task then, whose memory they must fit.
        """
        gathered = (parts.partitionBy(self.tasks, task_of) for parts in some)
        return reduce(lambda one, other: one.union(other), gathered)

    def keep(self, parts: Parts) -> Parts:
        """Return tables that executors keep once they have made them, until the block of these tables ends."""
        self._kept.append(parts.persist(StorageLevel.MEMORY_AND_DISK))
        return self._kept[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for parts in self._kept:
            parts.unpersist()

    def _spread(self, items: Sequence[Any]) -> RDD[Any]:
        """Return items, which are dealt out to tasks one by one."""
        count = min(len(items), _PIECES * int(self._context.defaultParallelism)) or 1
        dealt = [item for first in range(count) for item in items[first::count]]
        return self._context.parallelize(dealt, count)

    def _pieces(self, folder: Path, run: int, scan: Scan, place: int) -> Iterator[Piece]:
        path = str(table_path(folder / FOLDER, scan.table))
        if path not in self._about:
            self._about[path] = pq.read_metadata(path)
        about = self._about[path]
        groups = _groups_of(about, scan, run)
        each = max(1, min(_GROUPS_MAX, len(groups) // (_PIECES * int(self._context.defaultParallelism))))
        for first in range(0, len(groups), each):
            some = groups[first : first + each]
            rows = sum(about.row_group(group).num_rows for group in some)
            yield Piece(path=path, run=run, groups=tuple(some), rows=rows, scan=place)

    def _read_by_spark(self, folder: str, run: int, scan: Scan) -> Parts:
        path = spark_path(folder, FOLDER, f"{scan.table}.parquet")
        # As many as a row group has: the work is called for each of these.
        self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS))
        rows = self._session.read.schema(from_arrow_schema(SCHEMAS[scan.table])).parquet(path)
        values = scan.runs[run]
        if values is not None:
            rows = rows.where(f"{scan.by} in ({', '.join(map(str, sorted(values)))})")
        found = rows.select(*scan.columns).mapInArrow(as_rows(scan, run), from_arrow_schema(ROWS_SCHEMA))
        return found.rdd.map(packed_row)


def _groups_of(about: pq.FileMetaData, scan: Scan, run: int) -> list[int]:
    """Return the row groups that may have one of the values that the scan looks for."""
    groups = range(about.num_row_groups)
    values = scan.runs[run]
    if values is None:
        return [*groups]
    rising: Ints = np.array(sorted(values), dtype=np.int64)
    column = about.schema.to_arrow_schema().get_field_index(scan.by)
    found = []
    for group in groups:
        known = about.row_group(group).column(column).statistics
        if known is None or not known.has_min_max:
            # No value, or none that is known.
            if known is None or known.num_values:
                found.append(group)
        elif np.searchsorted(rising, known.min) < np.searchsorted(rising, known.max, side="right"):
            found.append(group)
    return found
