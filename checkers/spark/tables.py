"""The tables of several runs as Spark's DataFrames, each row with the number of its run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.spark.executor import PART_FIELDS
from checkers.spark.head import Part
from harness.tables.schema import SCHEMAS

RUN: Final = "run"
PART: Final = tuple(name for name, _ in PART_FIELDS)
# The number of a run -> values of a column in it.
Chosen: TypeAlias = Mapping[int, Collection[int]]


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

    def all(self, name: str, runs: Collection[int]) -> DataFrame:
        """Return a table of these runs."""
        return union(self._of(name, run) for run in sorted(runs))

    def among(self, name: str, chosen: Mapping[str, Chosen]) -> DataFrame:
        """
        Return the rows of which one of these columns has one of these values; few row groups are read.

        Args:
            name: of the table.
            chosen: column -> the values in each run.
        """
        texts: dict[int, list[str]] = {}
        for column, values in chosen.items():
            for run, numbers in values.items():
                if numbers:
                    texts.setdefault(run, []).append(f"{column} in ({', '.join(map(str, sorted(numbers)))})")
        if not texts:
            return self._of(name, 0).where("false")
        return union(self._of(name, run).where(" or ".join(of_run)) for run, of_run in sorted(texts.items()))

    def _of(self, name: str, run: int) -> DataFrame:
        rows = self.session.read.schema(from_arrow_schema(SCHEMAS[name]))
        # A number for each run costs nothing a row; a name in each row would have to be hashed for each.
        return rows.parquet(f"{self._folders[run]}/{name}.parquet").withColumn(RUN, F.lit(run).cast("int"))

    def keys(self, parts: Iterable[Part]) -> DataFrame:
        """Return PART of partitions."""
        return self.small([dict(zip(PART, part.key, strict=True)) for part in parts])

    def small(self, rows: Sequence[Mapping[str, Any]], *fields: tuple[str, pa.DataType]) -> DataFrame:
        """Return a few rows about partitions as a DataFrame that every executor gets."""
        schema = pa.schema([*PART_FIELDS, *fields])
        return F.broadcast(self.session.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema)))


def union(rows: Iterable[DataFrame]) -> DataFrame:
    """Return all rows, with null in the columns that they lack."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows)
