"""Check many small runs from their tables at once, as if they were large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from checkers import CHECKERS
from checkers.spark import runs as module
from checkers.spark.pieces import pieces
from checkers.spark.reading import opened
from checkers.spark.search import Limits
from harness.model import Anomaly
from harness.tables.manifest import FOLDER, Manifest, table_path
from harness.tables.schema import SCHEMAS


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
    for number, (path, _) in enumerate(runs):
        tables = folder / str(number) / FOLDER
        tables.mkdir(parents=True)
        for name in SCHEMAS:
            if backwards:
                table = pq.read_table(table_path(path, name))
                rows = pa.array(range(table.num_rows - 1, -1, -1), pa.int64())
                pq.write_table(table.take(rows), table_path(tables, name), row_group_size=50)
            else:
                table_path(tables, name).symlink_to(table_path(path, name))
    judged_by: Counter[str] = Counter()

    def counted(*arguments: Any, **named: Any) -> tuple[Any, Any]:
        rows, about = pieces(*arguments, **named)
        rows = rows.cache()
        for _, table in opened(rows.collect()):
            judged_by.update(table.column("piece").to_pylist())
        return rows, about

    keys = {folder / str(number): manifest for number, (_, manifest) in enumerate(runs)}
    before = module.pieces
    module.pieces = counted
    try:
        found = module._judge_tables(session, keys, CHECKERS, limits)
    finally:
        module.pieces = before
    made = {name: sum(manifest.rows[name] for _, manifest in runs) for name in SCHEMAS}
    return Found(anomalies=[found[key] for key in keys], rows=judged_by, made=made)
