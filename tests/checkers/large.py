"""Check many small runs from their tables at once, as if they were large."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from checkers import CHECKERS
from checkers.spark import runs as module
from checkers.spark.pieces import pieces
from checkers.spark.search import Limits
from checkers.spark.tables import Chosen, Tables
from harness.model import Anomaly
from harness.tables.schema import SCHEMAS, Manifest, table_path


class Together(Tables):
    """Tables of many small runs in one file each, so that a query does not open thousands of files."""

    def all(self, name: str, runs: Collection[int]) -> DataFrame:
        schema = SCHEMAS[name].append(pa.field("run", pa.int32()))
        (folder,) = {Path(each).parents[1] for each in self._folders}
        rows = self.session.read.schema(from_arrow_schema(schema)).parquet(str(table_path(folder, name)))
        return rows.where(f"run in ({', '.join(map(str, runs))})")

    def among(self, name: str, chosen: Mapping[str, Chosen]) -> DataFrame:
        rows = self.all(name, range(len(self._folders)))
        each = []
        for column, values in chosen.items():
            texts = [f"'{run}:{number}'" for run, numbers in values.items() for number in numbers]
            each.append(f"concat(run, ':', {column}) in ({', '.join(texts)})" if texts else "false")
        return rows.where(" or ".join(each))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What Spark found in many runs.

    Attributes:
        anomalies: of each run.
        rows: the number of rows of each piece by which the partitions were judged.
        made: the number of rows of each table.
    """

    anomalies: list[list[Anomaly]]
    rows: Mapping[str, int]
    made: Mapping[str, int]


def check_together(
    session: SparkSession,
    runs: Sequence[tuple[Path, Manifest]],
    folder: Path,
    limits: Limits,
    backwards: bool = False,
) -> Found:
    """Check many runs from their tables at once, with small buckets; backwards turns the rows' order around."""
    folder.mkdir()
    for name in SCHEMAS:
        tables = []
        for number, (path, manifest) in enumerate(runs):
            table = pq.read_table(table_path(path, name))
            if backwards:
                table = table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
            tables.append(table.append_column("run", pa.array([number] * manifest.rows[name], pa.int32())))
        pq.write_table(pa.concat_tables(tables[::-1] if backwards else tables), table_path(folder, name))
    judged_by: dict[str, int] = {}

    def counted(*arguments: Any) -> tuple[DataFrame, Any]:
        rows, about = pieces(*arguments)
        rows = rows.localCheckpoint()
        judged_by.update({row["piece"]: row["count"] for row in rows.groupBy("piece").count().collect()})
        return rows, about

    keys = {folder / str(number): manifest for number, (_, manifest) in enumerate(runs)}
    before = module.Tables, module.pieces
    module.Tables, module.pieces = Together, counted
    try:
        found = module._judge_tables(session, keys, CHECKERS, limits)
    finally:
        module.Tables, module.pieces = before
    made = {name: sum(manifest.rows[name] for _, manifest in runs) for name in SCHEMAS}
    return Found(anomalies=[found[key] for key in keys], rows=judged_by, made=made)
