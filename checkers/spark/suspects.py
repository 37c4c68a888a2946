"""
Search a whole suite at once in Spark SQL for partitions in which a rule that reads every record must run.

There are two passes. The survey finds the replicas and readers of each partition. The search then aggregates
everything that is held, shown and acknowledged at an offset into one row. Each search finds at least the offsets
that its rule could report; the pure rule then runs in the partitions that have any.
tests/checkers/spark/test_runs.py compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from checkers.spark.executor import KEY, KEY_FIELDS, Key, key_of_row

# The condition of checkers.checker.partition_of: the op belongs to one partition.
ABOUT: Final = "(source not in ('runner', 'nemesis') and partition is not null)"

_SNAPSHOT: Final = "source = 'log' and type = 'ok' and f = 'snapshot'"
_READ: Final = "source = 'client' and type = 'ok' and f = 'read'"
_PRODUCED: Final = "source = 'client' and type = 'ok' and f = 'produce'"
_BATCH: Final = "source = 'log' and f = 'batch'"
_VALUE: Final = "struct<offset:bigint,value:string,records:array<array<string>>>"

# Checker -> the condition, over the `_records` rows of an offset, under which its rule must run.
SUSPECTS: Final[Mapping[str, str]] = {
    # Acknowledged, but not every replica and every reader has that value there.
    "lost": "bool_or(acked) and (min(value) <> max(value) or size(collect_set(holder)) < max(wanted))",
    # Two replicas hold different records. min <> max needs one pass, at half the cost of counting distinct values.
    "diverged": "min(digest) <> max(digest) and min(replica) <> max(replica)",
}


def survey(ops: DataFrame) -> DataFrame:
    """
    Return one row for each process with ops of a partition.

    Returns:
        (run, topic, partition, process, since, reads): since is the index of its last successful snapshot, null if
        it has none; reads is the number of reads that it finished.
    """
    return (
        ops.where(ABOUT)
        .groupBy(*KEY, "process")
        .agg(
            F.expr(f"max(index) filter (where {_SNAPSHOT})").alias("since"),
            F.expr(f"count(*) filter (where {_READ})").alias("reads"),
        )
    )


def suspicious_offsets(ops: DataFrame, surveyed: Iterable[Mapping[str, Any]]) -> DataFrame:
    """
    Return the offsets at which any search found something.

    Args:
        ops: the ops of all runs.
        surveyed: the rows of the survey.

    Returns:
        (run, topic, partition, offset), and for each entry of SUSPECTS a column of its name: true, false or null.
        Offset -1 is that of records acknowledged without an offset.
    """
    searched = (F.expr(condition).alias(name) for name, condition in SUSPECTS.items())
    return _records(ops, surveyed).groupBy(*KEY, "offset").agg(*searched).where(" or ".join(SUSPECTS))


def _records(ops: DataFrame, surveyed: Iterable[Mapping[str, Any]]) -> DataFrame:
    """
    Return one row for each record that was acknowledged, shown to a reader or is in a final log.

    Only batches after their node's last snapshot count.

    Returns:
        (run, topic, partition, offset, value, acked, holder, replica, digest, wanted): holder is the replica or
        the read that has the record, null for an acknowledgement; replica and digest are set only for logs; wanted
        is the number of holders that there should be.
    """
    # A few rows for each run: broadcasting them avoids a shuffle of the batches.
    witnesses = F.broadcast(ops.sparkSession.createDataFrame(_witnesses(list(surveyed))))
    recorded = (
        ops.where(f"{ABOUT} and ({_BATCH} or {_PRODUCED} or {_READ})")
        .join(witnesses, [*KEY, "process"])
        .where("f <> 'batch' or index > since")
        .withColumn("it", F.from_json("value", _VALUE))
    )
    acked = "array(array(cast(coalesce(it.offset, -1) as string), it.value))"
    return recorded.selectExpr(
        *(*KEY, "wanted", "f", "index", "process"),
        f"explode(if(f = 'produce', {acked}, it.records)) as record",
    ).selectExpr(
        *(*KEY, "wanted"),
        "cast(record[0] as bigint) as offset",
        "element_at(record, -1) as value",
        "f = 'produce' as acked",
        "case f when 'batch' then process when 'read' then concat('read ', index) end as holder",
        "if(f = 'batch', process, null) as replica",
        "if(f = 'batch', record[1], null) as digest",
    )


def _witnesses(surveyed: list[Mapping[str, Any]]) -> pa.Table:
    """Return the surveyed rows, each with the number of replicas and reads that should have each record."""
    wanted: dict[Key, int] = {}
    for row in surveyed:
        wanted[key_of_row(row)] = wanted.get(key_of_row(row), 0) + (row["since"] is not None) + row["reads"]
    rows = [{**row, "wanted": wanted[key_of_row(row)]} for row in surveyed]
    fields = (("process", pa.string()), ("since", pa.int64()), ("wanted", pa.int64()))
    return pa.Table.from_pylist(rows, schema=pa.schema([*KEY_FIELDS, *fields]))
