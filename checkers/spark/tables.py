"""The tables of several runs as Spark's DataFrames, each row with the number of its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from harness.tables.schema import SCHEMAS

RUN: Final = "run"
# What a partition is grouped by: the number of its run, and its place in the manifest of the run.
PART: Final = (RUN, "part")
PART_FIELDS: Final = ((RUN, pa.int32()), ("part", pa.int32()))
# Offsets of a partition, or its ops' indexes: (run, part, first, end).
Near: TypeAlias = tuple[int, int, int, int]
# More ranges than these are not told to the reader of Parquet, which compares each with each row group.
_RANGES_MAX: Final = 12
# Rows that one task of a query takes, if it shuffles many.
_TASK_ROWS: Final = 1_000_000


class Tables:
    """
    The tables of runs, by name; `run` is the position of a row's run in `folders`.

    Args:
        session: the Spark session.
        folders: each run's folder of tables, as Spark takes paths.
    """

    def __init__(self, session: SparkSession, folders: Sequence[str]) -> None:
        self.session = session
        self._folders = folders
        self._read: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        """Return a table of all runs."""
        if name in self._read:
            return self._read[name]
        schema = from_arrow_schema(SCHEMAS[name])
        # A number for each run costs nothing a row; a name in each row would have to be hashed for each.
        each = [
            self.session.read.schema(schema)
            .parquet(f"{folder}/{name}.parquet")
            .withColumn(RUN, F.lit(number).cast("int"))
            for number, folder in enumerate(self._folders)
        ]
        found = self._read[name] = reduce(DataFrame.unionByName, each)
        return found

    def expect(self, rows: int) -> None:
        """Set the number of tasks of the next queries, which shuffle about so many rows; most shuffle few."""
        tasks = 2 * self.session.sparkContext.defaultParallelism + rows // _TASK_ROWS
        self.session.conf.set("spark.sql.shuffle.partitions", tasks)

    def small(self, rows: Sequence[Mapping[str, Any]], *fields: tuple[str, pa.DataType]) -> DataFrame:
        """Return a few rows about partitions as a DataFrame that every executor gets."""
        schema = pa.schema([*PART_FIELDS, *fields])
        return F.broadcast(self.session.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema)))


def near(rows: DataFrame, column: str, ranges: Sequence[Near]) -> DataFrame:
    """
    Return the rows whose column may lie in the ranges, and perhaps others, so that few row groups are read.

    Args:
        rows: rows of a table with `run`, `part` and that column, of which neighbours have neighbouring values.
        column: the column that is compared: an offset, an index or a number.
        ranges: see `joined`.
    """
    if len(ranges) > _RANGES_MAX:
        return rows
    each = (
        f"({RUN} = {run} and part = {part} and {column} >= {first} and {column} < {end})"
        for run, part, first, end in ranges
    )
    return rows.where(" or ".join(each) or "false")


def ranges_of(rows: DataFrame, column: str, size: int = 1) -> list[Near]:
    """Return the values of a column, or the offsets of buckets of that size, as a few ranges for `near`."""
    raw: Iterable[Mapping[str, Any]] = rows.select(*PART, column).distinct().toArrow().to_pylist()
    return joined((row["run"], row["part"], row[column] * size, (row[column] + 1) * size) for row in raw)


def joined(ranges: Iterable[Near]) -> list[Near]:
    """Return ranges in order, those that touch each other as one; beyond a number, those nearest to each other."""
    found: list[Near] = []
    for run, part, first, end in sorted(ranges):
        if found and found[-1][:2] == (run, part) and first <= found[-1][3]:
            found[-1] = (*found[-1][:3], max(end, found[-1][3]))
        else:
            found.append((run, part, first, end))
    while len(found) > _RANGES_MAX:
        gaps = [
            (later[2] - earlier[3], place)
            for place, (earlier, later) in enumerate(pairwise(found))
            if earlier[:2] == later[:2]
        ]
        if not gaps:
            break
        limit = sorted(gaps)[min(len(gaps), len(found) - _RANGES_MAX) - 1][0]
        closed: list[Near] = []
        for each in found:
            if closed and closed[-1][:2] == each[:2] and each[2] - closed[-1][3] <= limit:
                closed[-1] = (*closed[-1][:3], each[3])
            else:
                closed.append(each)
        found = closed
    return found
