"""
Check many runs at once with PySpark: one session for each command, one DataFrame for all runs.

Spark reads the Parquet files, finds the suspicious offsets of the whole suite, groups the ops by partition and
calls the pure rules in its executors. Only the rules decide what is a violation.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.checker import Checker, check, unproven
from checkers.facts.sequence import breaks_in
from checkers.facts.view import NO_KEY
from checkers.spark.executor import ANOMALY_SCHEMA, KEY, KEY_FIELDS, Key, judge_of, key_of_row
from checkers.spark.suspects import ABOUT, SUSPECTS, survey, suspicious_offsets
from harness.model import Anomaly
from harness.run.store import PARQUET_SCHEMA

# One more task for each so many ops; a suite of small runs has one task for each core.
_TASK_OPS: Final = 250_000


def check_runs(
    session: SparkSession, parquet_paths: Sequence[Path], checkers: Mapping[str, Checker]
) -> dict[str, list[Anomaly]]:
    """
    Apply the checkers to every run, and return each run's anomalies.

    Nothing in one run touches another: what cannot be read makes its own run unknown, and two runs of one name in
    two suites are two runs.

    Args:
        session: the Spark session of checkers.spark.session.spark_session.
        parquet_paths: histories as harness/run/store.py writes them, each once.
        checkers: the checkers by name.

    Returns:
        An entry for each run by its name, or by its folder's path if two runs have one name; [] if nothing was
        found. Breaks in the order of the ops come first, then anomalies by partition, in the checkers' order.
    """
    if not parquet_paths:
        return {}
    cores = session.sparkContext.defaultParallelism
    runs = _keys(parquet_paths)
    counts = {runs[path]: pq.read_metadata(path).num_rows for path in parquet_paths}
    session.conf.set("spark.sql.shuffle.partitions", cores + sum(counts.values()) // _TASK_OPS)
    with _few_files(runs, cores) as files:
        ops = session.read.schema(from_arrow_schema(PARQUET_SCHEMA)).parquet(*map(str, files))
        surveyed = survey(ops).toArrow().to_pylist()
        keys = sorted({key_of_row(row) for row in surveyed})
        judge = judge_of(checkers, _clean(ops, surveyed, keys, checkers))
        rows = _parts(ops, keys, counts).groupBy(*KEY).applyInArrow(judge, from_arrow_schema(ANOMALY_SCHEMA))
        judged = rows.toArrow().to_pylist()
    # An empty history has no row to check, but its missing evidence must be reported.
    found = {run: [] if counts[run] else check([], checkers, frozenset()) for run in sorted(counts)}
    for row in sorted(judged, key=lambda row: (row["run"], row["place"])):
        found[row["run"]].append(Anomaly.from_dict(json.loads(row["anomaly"])))
    for anomalies in found.values():
        anomalies.sort(key=lambda anomaly: (anomaly.topic, anomaly.partition))
    breaks = {run: _breaks(path) for path, run in runs.items()}
    return {run: [*broken, *(unproven(found[run]) if broken else found[run])] for run, broken in breaks.items()}


def _keys(paths: Sequence[Path]) -> dict[Path, str]:
    """Return each run's key in Spark's tables: its name, or its folder's path if two runs have one name."""
    names = {path: path.parent.name for path in paths}
    if len({*names.values()}) == len(names):
        return names
    return {path: str(path.parent) for path in paths}


def _breaks(path: Path) -> list[Anomaly]:
    """Return the breaks in the order of a run's ops; its rows are in the order of the history's lines."""
    table = pq.read_table(path, columns=["index", "time_ns"])
    return breaks_in(table.column("index").to_pylist(), table.column("time_ns").to_pylist())


@contextmanager
def _few_files(runs: Mapping[Path, str], cores: int) -> Iterator[Sequence[Path]]:
    """
    Yield files with the runs' ops: one for each core if there are more runs than cores, else the runs' own.

    Rows in the new files have their run's key, which need not be the run's name.

    Each pass over 200 files opens 200 files, which takes longer than all other work on them.
    """
    paths = [*runs]
    if len(paths) <= cores and all(run == path.parent.name for path, run in runs.items()):
        yield paths
        return
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{n}.parquet" for n in range(cores)]
        for n, file in enumerate(files):
            with pq.ParquetWriter(file, PARQUET_SCHEMA) as writer:
                for tables in _in_groups({path: runs[path] for path in paths[n::cores]}):
                    writer.write_table(pa.concat_tables(tables))
        yield files


def _in_groups(runs: Mapping[Path, str]) -> Iterator[list[pa.Table]]:
    """Yield the runs' tables in groups of about _TASK_OPS rows, one group for each row group."""
    group: list[pa.Table] = []
    for path, run in runs.items():
        with pq.ParquetFile(path) as file:
            for n in range(file.num_row_groups):
                table = file.read_row_group(n)
                keys = pa.repeat(pa.scalar(run), table.num_rows)
                group.append(table.set_column(0, PARQUET_SCHEMA.field("run"), keys))
                if sum(table.num_rows for table in group) >= _TASK_OPS:
                    yield group
                    group = []
    if group:
        yield group


def _clean(
    ops: DataFrame, surveyed: Iterable[Mapping[str, Any]], keys: Iterable[Key], checkers: Mapping[str, Checker]
) -> dict[Key, frozenset[str]]:
    """Return, for each partition, the checkers whose search found nothing in it."""
    searched = frozenset(name for name in checkers if name in SUSPECTS)
    if not searched:
        return {}
    found = suspicious_offsets(ops, surveyed).groupBy(*KEY).agg(*(F.max(name).alias(name) for name in SUSPECTS))
    clean = dict.fromkeys(keys, searched)
    for row in found.toArrow().to_pylist():
        clean[key_of_row(row)] = frozenset(name for name in searched if not row[name])
    return clean


def _parts(ops: DataFrame, keys: Sequence[Key], runs: Iterable[str]) -> DataFrame:
    """Return every partition's ops, each with the ops of its run that are about no partition."""
    found = {run for run, _, _ in keys}
    parts = [*keys, *((run, *NO_KEY) for run in runs if run not in found)]
    columns = [
        pa.array(column, field) for column, (_, field) in zip(zip(*parts, strict=True), KEY_FIELDS, strict=True)
    ]
    table = pa.table(columns, names=["run", "its_topic", "its_partition"])
    return (
        ops.join(F.broadcast(ops.sparkSession.createDataFrame(table)), "run")
        .where(f"not {ABOUT} or (topic = its_topic and partition = its_partition)")
        .drop("topic", "partition")
        .withColumnsRenamed({"its_topic": "topic", "its_partition": "partition"})
    )
