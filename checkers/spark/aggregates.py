"""
What a summary says of many runs: aggregates of its data set, each one query of Spark.

Only aggregates are collected: their rows grow with protocols, workloads and nights, not with runs. Latencies are
those of produces that were acknowledged by an answer that says so; a quantile is the end of the bucket in which it
lies, 1/16 too high at most. Virtual and real time are never added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from checkers.measures.schema import UNREADABLE
from harness.model import Verdict
from harness.run.result import Status

# The name of a table -> the column by which it counts runs.
BY: Final[Mapping[str, str]] = {
    "protocols": "family",
    "releases": "release",
    "workloads": "workload",
    "nights": "night",
}
OUTCOMES: Final = (*(verdict.name.lower() for verdict in Verdict), UNREADABLE)
QUANTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
# What a script needs to read about; the data set has all.
_UNREADABLE_MAX: Final = 200
_RUNS_MAX: Final = 5_000

Rows = Mapping[str, DataFrame]


def aggregates(tables: Rows) -> dict[str, pd.DataFrame]:
    """
    Return all aggregates of a data set by name, rows in a fixed order.

    Args:
        tables: of checkers.spark.data_set.read_data_set.
    """
    by = _counted(tables)
    parts = {name: by[by["by"] == name].drop(columns="by").reset_index(drop=True) for name in BY}
    runs = tables["runs"]
    rest = {
        "anomalies": _collected(_anomalies(tables), "kind", "family"),
        "faults": _collected(_faults(tables), "kind").sort_values(
            "bit", ascending=False, kind="stable", ignore_index=True
        ),
        "latencies": _collected(_latencies(tables), "clock", "family", "outcome", "acks", "bucket"),
        "availability": _collected(_available(runs, "family", "night", "clock"), "family", "night", "clock"),
        "unreadable": _collected(tables["unreadable"].orderBy("night", "suite", "run").limit(_UNREADABLE_MAX)),
        "suites": _collected(_suites(runs), "night", "suite"),
        "links": _collected(_links(runs)),
        "totals": _collected(_totals(tables)),
    }
    return parts | rest


def _collected(rows: DataFrame, *order: str) -> pd.DataFrame:
    """Return a few rows, in this order."""
    found = rows.toArrow().to_pandas()
    return found.sort_values([*order], ignore_index=True) if order else found


def _counted(tables: Rows) -> pd.DataFrame:
    """Return a row for each table of BY, each value of its column and each clock: what there is of each."""
    keys = ["by", "value", "clock"]
    runs, anomalies, faults, latencies = (
        tables[name].withColumn("each", F.explode(_each())).select("*", "each.by", "each.value")
        for name in ("runs", "anomalies", "faults", "latencies")
    )
    counts = runs.groupBy(*keys).agg(F.count("*").alias("runs"), *_outcomes(), *_statuses(), *_produces())
    found = anomalies.groupBy(*keys).agg(F.count("*").alias("anomalies"))
    bit = faults.groupBy(*keys).agg(F.sum("asked").alias("asked"), F.sum("bit").alias("bit"))
    beside = [found, bit, _quantiles(latencies, keys), _available(runs, *keys)]
    # A few rows each: pandas joins them in no time, and Spark would shuffle all of them again.
    parts = [_collected(rows) for rows in (counts, *beside)]
    joined = reduce(lambda one, other: one.merge(other, on=keys, how="left"), parts)
    counted = joined.fillna(dict.fromkeys(("anomalies", "asked", "bit"), 0))
    return counted.astype(dict.fromkeys(("anomalies", "asked", "bit"), "int64")).sort_values(
        keys, ignore_index=True
    )


def _each() -> Column:
    """Return what a row counts for: one value in each table of BY."""
    return F.array(
        *(
            F.struct(F.lit(by).alias("by"), F.col(column).cast("string").alias("value"))
            for by, column in BY.items()
        )
    )


def _outcomes() -> list[Column]:
    return [F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in OUTCOMES]


def _statuses() -> list[Column]:
    """Return how many runs compare how with their expectation; what cannot be read is none of them."""
    readable = F.col("outcome") != UNREADABLE
    return [
        F.count_if(readable & (F.col("status") == status.value)).alias(f"status_{status.name.lower()}")
        for status in Status
    ]


def _produces() -> list[Column]:
    return [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("ok", "fail", "info", "open")]


def _quantiles(latencies: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the quantiles of merged histograms in milliseconds."""
    acked = latencies.where((F.col("outcome") == "ok") & (F.col("acks") != 0))
    merged = acked.groupBy(*keys, "bucket", "to_ns").agg(
        F.sum("count").alias("count"), F.max("max_ns").alias("max_ns")
    )
    group = Window.partitionBy(*keys)
    upto = group.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = merged.withColumn("seen", F.sum("count").over(upto)).withColumn("all", F.sum("count").over(group))
    most = F.max("max_ns")
    bounds = {
        name: F.least(F.min(F.when(F.col("seen") >= share * F.col("all"), F.col("to_ns"))), most)
        for name, share in QUANTILES.items()
    }
    return ranked.groupBy(*keys).agg(
        *((bound / 1e6).alias(f"{name}_ms") for name, bound in bounds.items()), (most / 1e6).alias("max_ms")
    )


def _available(runs: DataFrame, *keys: str) -> DataFrame:
    """Return the share of windows that were available, and the longest stretch in which none was."""
    counted = runs.where(F.col("outcome") != UNREADABLE).groupBy(*keys)
    longest = F.max_by("around", F.struct("unavailable_s", "suite", "run"))
    worst = F.max_by(F.concat_ws("/", "suite", "run"), F.struct("unavailable_s", "suite", "run"))
    found = counted.agg(
        F.sum("windows").alias("windows"),
        F.sum("available").alias("available_windows"),
        F.max("unavailable_s").alias("unavailable_s"),
        worst.alias("unavailable_in"),
        longest.alias("around"),
    )
    share = F.when(F.col("windows") > 0, F.col("available_windows") / F.col("windows"))
    none = F.col("unavailable_s") == 0
    return (
        found.withColumn("available_share", share)
        .withColumn("around", F.concat_ws(", ", "around"))
        .withColumn("unavailable_in", F.when(none, "").otherwise(F.col("unavailable_in")))
    )


def _anomalies(tables: Rows) -> DataFrame:
    """Return how many anomalies of each kind there are under each protocol, in how many runs."""
    return (
        tables["anomalies"]
        .groupBy("kind", "verdict", "family")
        .agg(
            F.count("*").alias("anomalies"),
            F.count_distinct("suite", "run").alias("runs"),
            F.sum("offsets").alias("offsets"),
        )
    )


def _faults(tables: Rows) -> DataFrame:
    """Return how many faults of each kind were asked and took effect."""
    bit = F.col("bit") > 0
    return (
        tables["faults"]
        .groupBy("kind")
        .agg(
            F.sum("asked").alias("asked"),
            F.sum("bit").alias("bit"),
            F.count("*").alias("runs"),
            F.count_if(bit).alias("runs_bit"),
        )
    )


def _latencies(tables: Rows) -> DataFrame:
    """Return the merged histograms of each protocol, outcome and clock."""
    return (
        tables["latencies"]
        .groupBy("clock", "family", "outcome", "acks", "bucket", "from_ns", "to_ns")
        .agg(F.sum("count").alias("count"), F.max("max_ns").alias("max_ns"))
    )


def _suites(runs: DataFrame) -> DataFrame:
    keys = ("night", "suite", "host", "clock")
    return runs.groupBy(*keys).agg(F.count("*").alias("runs"), *_outcomes(), *_statuses())


def _links(runs: DataFrame) -> DataFrame:
    """Return the runs of which a page has a link: those that are not as expected first."""
    odd = (F.col("outcome") == UNREADABLE) | (F.col("status") != Status.AS_EXPECTED.value)
    named = runs.withColumn("odd", odd).orderBy(F.desc("odd"), "night", "suite", "place").limit(_RUNS_MAX)
    return named.select(
        "night", "suite", "run", "path", "workload", "protocol", "place", "status", "outcome", "odd"
    )


def _totals(tables: Rows) -> DataFrame:
    """Return one row: how much there is in all."""
    runs = tables["runs"].agg(
        F.count("*").alias("runs"),
        F.count_distinct(F.regexp_replace("path", "/[^/]*$", "")).alias("suites"),
        F.count_distinct("night").alias("nights"),
        *_outcomes(),
        *_statuses(),
        *_produces(),
    )
    unreadable = tables["unreadable"].agg(
        F.count("*").alias("unreadable_rows"), F.count_if(F.col("run").isNull()).alias("unreadable_suites")
    )
    return runs.crossJoin(unreadable)
