"""
Measure many runs with Spark: small ones from their lines, large ones from their tables, each by executors.

What comes back of a run does not grow with its records, and none of it comes to this process: it is written to a
folder. If something of a run cannot be read, it alone is unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.measures.availability import window_of
from checkers.measures.folders import Folders
from checkers.measures.run import LOOKED_AT, UNREADABLE
from checkers.measures.stored import STORED_SCHEMA, unread_suite
from checkers.spark.assemble import event_of
from checkers.spark.errors import said
from checkers.spark.measured import (
    FACT_SCHEMA,
    MEASURE_SCHEMA,
    add_up,
    measure_events,
    measure_lines,
    measure_produces,
    read_stored,
    unread_run,
)
from checkers.spark.options import local_place, spark_path
from harness.events import Setup
from harness.model import HistoryError, Source
from harness.run.store import Run
from harness.tables.manifest import Manifest, TablesError, table_path
from harness.tables.schema import SCHEMAS
from harness.tables.writer import ensure_tables
from harness.target.traits import traits_of

# Large runs whose tables are queried together.
_TOGETHER: Final = 8

Step = Callable[[str], object]


def write_stored(
    session: SparkSession, found: Folders, untabled: Sequence[Mapping[str, Any]], folder: Path
) -> None:
    """Write the stored results of all suites as rows of STORED_SCHEMA, with those of suites without a table."""
    rows = _files(session, [each / "suite.json" for each in found.suites], read_stored, STORED_SCHEMA)
    if found.chosen:
        paths = [f"{suite}/{run}" for suite, runs in found.chosen.items() for run in runs]
        others = ~F.col("folder").isin([str(suite) for suite in found.chosen])
        rows = rows.where(others | F.col("path").isin(paths) | (F.col("what") == UNREADABLE))
    unread = [unread_suite(str(suite), why) for suite, run, why in found.unreadable if run is None]
    _append(rows.unionByName(_frame(session, [*untabled, *unread], STORED_SCHEMA)), folder)


def write_facts(session: SparkSession, found: Folders, folder: Path, step: Step) -> None:
    """Write the facts of all runs as rows of FACT_SCHEMA; call `step` with a few words at each step."""
    step(f"measuring {len(found.small):,} runs from their lines")
    unread = [unread_run(f"{suite}/{run}", why) for suite, run, why in found.unreadable if run is not None]
    rows = _files(session, [run.history for run in found.small], measure_lines, FACT_SCHEMA)
    _append(rows.unionByName(_frame(session, unread, FACT_SCHEMA)), folder)
    for place in range(0, len(found.large), _TOGETHER):
        step(f"measuring large runs from their tables: {place:,} of {len(found.large):,} done")
        _write_large(session, found.large[place : place + _TOGETHER], folder)


def _append(rows: DataFrame, folder: Path) -> None:
    rows.write.mode("append").parquet(str(local_place(folder)))


def _frame(session: SparkSession, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> DataFrame:
    return session.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema=schema))


def _files(
    session: SparkSession, paths: Sequence[Path], work: Callable[[Any], Any], schema: pa.Schema
) -> DataFrame:
    """Have executors read files whole; one that has gone meanwhile is left out."""
    if not paths:
        return _frame(session, [], schema)
    # Some more tasks than cores, so that one with long files does not keep the others waiting.
    tasks = min(len(paths), 4 * session.sparkContext.defaultParallelism)
    session.conf.set("spark.sql.files.minPartitionNum", tasks)
    files = session.read.format("binaryFile").option("ignoreMissingFiles", True)
    contents = files.load([*map(spark_path, paths)]).select("path", "content")
    return contents.mapInArrow(work, from_arrow_schema(schema))


# --- large runs --------------------------------------------------------------------------------------------------
def _write_large(session: SparkSession, runs: Sequence[Run], folder: Path) -> None:
    windows: dict[Run, int] = {}
    unread = []
    for run in runs:
        try:
            windows[run] = _window_ns(run, ensure_tables(run.history))
        except (OSError, TablesError, HistoryError, pa.ArrowException) as error:
            unread.append(unread_run(str(run.path), str(error)))
    if unread:
        _append(_frame(session, unread, FACT_SCHEMA), folder)
    try:
        _append(_from_tables(session, windows), folder)
    except Exception:
        for run, window_ns in windows.items():
            _write_one(session, run, window_ns, folder)


def _write_one(session: SparkSession, run: Run, window_ns: int, folder: Path) -> None:
    try:
        _append(_from_tables(session, {run: window_ns}), folder)
    except Exception as error:
        _append(_frame(session, [unread_run(str(run.path), said(error))], FACT_SCHEMA), folder)


def _window_ns(run: Run, manifest: Manifest) -> int:
    """Return the length of a window of a run, from its first op."""
    for last, index in manifest.skips:
        raise TablesError(f"{run.history.name}: op {index} follows op {last}; expected no op to be missing")
    with pq.ParquetFile(table_path(run.tables, "events")) as events:
        first = next(events.iter_batches(1), None)
    setup = event_of(first.to_pylist()[0]).event if first is not None and first.num_rows else None
    return window_of(virtual=isinstance(setup, Setup) and traits_of(setup).exact_order)


def _from_tables(session: SparkSession, windows: Mapping[Run, int]) -> DataFrame:
    """Return the facts of large runs, each with the length of its windows."""
    if not windows:
        return _frame(session, [], FACT_SCHEMA)
    paths = {number: str(run.path) for number, run in enumerate(windows)}
    schema = from_arrow_schema(MEASURE_SCHEMA)
    produces = (
        _rows(session, "produces", windows)
        .select("run", "acks", "outcome", "invoked_ns", "done_ns")
        .mapInArrow(measure_produces(paths, dict(enumerate(windows.values()))), schema)
        .groupBy("path", "what", "name", "key", "place")
        .agg(F.sum("sum").alias("sum"), F.max("max").alias("max"))
    )
    events = _rows(session, "events", windows).where(_looked_at()).groupBy("run")
    measures = events.applyInArrow(measure_events(paths), schema).unionByName(produces)
    return measures.groupBy("path").applyInArrow(add_up, from_arrow_schema(FACT_SCHEMA))


def _rows(session: SparkSession, name: str, runs: Iterable[Run]) -> DataFrame:
    """Return a table of these runs; `run` is the position of a row's run among them."""
    reader = session.read.schema(from_arrow_schema(SCHEMAS[name]))
    # A number for each run costs nothing a row; a name in each row would have to be hashed for each.
    each = (
        reader.parquet(spark_path(table_path(run.tables, name))).withColumn("run", F.lit(number).cast("int"))
        for number, run in enumerate(runs)
    )
    return reduce(DataFrame.unionByName, each)


def _looked_at() -> Column:
    found = F.col("source") == Source.NEMESIS.value
    for source, names in LOOKED_AT.items():
        found |= (F.col("source") == source.value) & F.col("f").isin(sorted(names))
    return found
