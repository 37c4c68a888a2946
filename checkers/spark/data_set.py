"""
The data set of a summary: what was stored of each run, joined with what was measured in its history.

Spark writes it, table by table (checkers/measures/schema.py). A run whose history cannot be read keeps what was
stored of it, and its outcome is `unreadable`; so has every run one row of `runs`, and is counted once.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.measures.folders import Folders
from checkers.measures.run import FAULT, LATENCY
from checkers.measures.schema import FOLDER, SCHEMAS, UNREADABLE, write_schema
from checkers.measures.stored import ANOMALY, RUN, STORED_SCHEMA
from checkers.spark.measured import FACT_SCHEMA, FAULT_FACTS, LATENCY_FACTS, RUN_FACTS
from checkers.spark.measuring import Step, write_facts, write_stored
from checkers.spark.options import local_place, spark_path

_NO_HISTORY: Final = "history.jsonl: No such file or directory; expected a run's history"
_NO_RESULT: Final = "suite.json: no result of this run; expected one of each run in the folder"


def write_data_set(
    session: SparkSession,
    found: Folders,
    out: Path,
    step: Step = lambda _: None,
    untabled: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """
    Measure all runs and write the data set; return its folder.

    Args:
        session: the Spark session of checkers.spark.session.spark_session.
        found: the suites and runs.
        out: an empty folder, in which the data set's folder is made.
        step: called with a few words at the beginning of each step.
        untabled: the rows of suites without a table (checkers/measures/stored.py).
    """
    session.conf.set("spark.sql.shuffle.partitions", 2 * session.sparkContext.defaultParallelism)
    stage, data = out / "stage", out / FOLDER
    step(f"reading the results of {len(found.suites):,} suites")
    write_stored(session, found, untabled, stage / "stored")
    write_facts(session, found, stage / "facts", step)
    step("writing the data set")
    stored = session.read.schema(from_arrow_schema(STORED_SCHEMA)).parquet(spark_path(stage / "stored"))
    facts = session.read.schema(from_arrow_schema(FACT_SCHEMA)).parquet(spark_path(stage / "facts"))
    for name, rows in _tables(stored, facts).items():
        columns = [F.col(field.name).cast(field.dataType) for field in from_arrow_schema(SCHEMAS[name])]
        sorted_rows = rows.select(columns).coalesce(1).sortWithinPartitions("night", "suite", "run")
        sorted_rows.write.parquet(str(local_place(data / name)), compression="zstd")
    write_schema(data)
    shutil.rmtree(stage)
    return data


def read_data_set(session: SparkSession, data: Path) -> dict[str, DataFrame]:
    """Return the tables of a data set."""
    return {
        name: session.read.schema(from_arrow_schema(schema)).parquet(spark_path(data / name))
        for name, schema in SCHEMAS.items()
    }


def _tables(stored: DataFrame, facts: DataFrame) -> Mapping[str, DataFrame]:
    runs = _runs(stored, facts).cache()  # all tables are joined with it
    keys = runs.select("path", *(each for each in SCHEMAS["faults"].names if each in SCHEMAS["runs"].names))
    about = runs.select("path", "outcome", "release")
    return {
        "runs": runs,
        "anomalies": _of(stored, ANOMALY).drop("release").join(about, "path"),
        "faults": keys.join(_of(facts, FAULT).select("path", *FAULT_FACTS), "path"),
        "latencies": keys.join(_of(facts, LATENCY).select("path", *LATENCY_FACTS), "path"),
        "unreadable": _unreadable(stored, facts, runs),
    }


def _runs(stored: DataFrame, facts: DataFrame) -> DataFrame:
    """Return every run that has a result, with its facts if it could be read, and else the `reason`."""
    seen = facts.where(F.col("what").isin(RUN, UNREADABLE)).select("path", "what", "reason", *RUN_FACTS)
    results = _of(stored, RUN).drop("what", "reason").withColumnRenamed("release", "target")
    joined = results.join(seen, "path", "left")
    return (
        joined.withColumn("reason", F.when(F.col("what").isNull(), _NO_HISTORY).otherwise(F.col("reason")))
        .withColumn("release", F.coalesce("release", "target"))
        .withColumn("outcome", F.when(F.col("reason").isNull(), F.col("verdict")).otherwise(UNREADABLE))
    )


def _unreadable(stored: DataFrame, facts: DataFrame, runs: DataFrame) -> DataFrame:
    """Return the suites and the runs that cannot be read, and the runs of which there is no result."""
    suites = _of(stored, UNREADABLE).select("night", "suite", "run", "reason", "folder")
    seen = facts.where(F.col("what").isin(RUN, UNREADABLE)).select("path", F.col("reason").alias("why"))
    alone = (
        seen.join(runs.select("path"), "path", "left_anti")
        .withColumn("folder", F.regexp_replace("path", "/[^/]*$", ""))
        # The runs of a suite that cannot be read are not counted one by one.
        .join(suites.select("folder"), "folder", "left_anti")
        .withColumn("suite", F.element_at(F.split("folder", "/"), -1))
        .withColumn("run", F.element_at(F.split("path", "/"), -1))
        .withColumn("reason", F.coalesce("why", F.lit(_NO_RESULT)))
    )
    found = suites.unionByName(alone, allowMissingColumns=True)
    return found.unionByName(runs.where(F.col("reason").isNotNull()), allowMissingColumns=True)


def _of(rows: DataFrame, what: str) -> DataFrame:
    return rows.where(F.col("what") == what)
