"""
The search of a whole suite at once, in Spark SQL: where a rule that looks at every record is worth calling.

Two passes: the survey says which replicas and readers there are, the search then folds all that is held, shown
and acknowledged at an offset into one row. Each search finds the offsets that its rule could find, or more, never
fewer; the pure rule then judges, in the partitions that have any. tests/checkers/spark/test_runs.py holds both
against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from checkers.spark.executor import KEY, KEY_FIELDS, Key, key_of_row

# The ops that belong to one partition, by the rule of checkers.checker.partition_of.
ABOUT: Final = "(source not in ('runner', 'nemesis') and partition is not null)"

_SNAPSHOT: Final = "source = 'log' and type = 'ok' and f = 'snapshot'"
_READ: Final = "source = 'client' and type = 'ok' and f = 'read'"
_PRODUCED: Final = "source = 'client' and type = 'ok' and f = 'produce'"
_BATCH: Final = "source = 'log' and f = 'batch'"
_VALUE: Final = "struct<offset:bigint,value:string,records:array<array<string>>>"

# By the name of the checker whose rule it spares: whether an offset is suspicious, over its rows of `_records`.
SUSPECTS: Final[Mapping[str, str]] = {
    # Acknowledged, and not every replica and every reader holds that very value there.
    "lost": "bool_or(acked) and (min(value) <> max(value) or size(collect_set(holder)) < max(wanted))",
    # Two replicas hold different records. min <> max tells in one pass, at half the cost of counting the distinct.
    "diverged": "min(digest) <> max(digest) and min(replica) <> max(replica)",
}


def survey(ops: DataFrame) -> DataFrame:
    """
    Give everybody who has a say in a partition, one row each.

    Shapes:  (run, topic, partition, process, since, reads): the index of its last good snapshot, null when it has
             none, and how many reads it finished.
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
    Give the offsets at which any search found something.

    Shapes:  surveyed are the survey's rows. Gives (run, topic, partition, offset) and for every entry of SUSPECTS
             a column of its name, true, false or null. Offset -1 is that of records acknowledged without one.
    """
    searched = (F.expr(condition).alias(name) for name, condition in SUSPECTS.items())
    return _records(ops, surveyed).groupBy(*KEY, "offset").agg(*searched).where(" or ".join(SUSPECTS))


def _records(ops: DataFrame, surveyed: Iterable[Mapping[str, Any]]) -> DataFrame:
    """
    Give every record that was acknowledged, shown to a reader or stands in a final log, one row each.

    Shapes:  (run, topic, partition, offset, value, acked, holder, replica, digest, wanted): holder is the replica
             or the read that has it, null where it was acknowledged; replica and digest are set in logs alone;
             wanted is how many holders there should be. Of a log only what follows its node's last snapshot.
    """
    # A few rows a run: sent to every task, they spare the batches a shuffle.
    witnesses = F.broadcast(ops.sparkSession.createDataFrame(_witnesses(list(surveyed))))
    told = (
        ops.where(f"{ABOUT} and ({_BATCH} or {_PRODUCED} or {_READ})")
        .join(witnesses, [*KEY, "process"])
        .where("f <> 'batch' or index > since")
        .withColumn("it", F.from_json("value", _VALUE))
    )
    acked = "array(array(cast(coalesce(it.offset, -1) as string), it.value))"
    return told.selectExpr(
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
    """Tell since when a node's log counts, and how many replicas and reads should hold what was acknowledged."""
    wanted: dict[Key, int] = {}
    for row in surveyed:
        wanted[key_of_row(row)] = wanted.get(key_of_row(row), 0) + (row["since"] is not None) + row["reads"]
    rows = [{**row, "wanted": wanted[key_of_row(row)]} for row in surveyed]
    fields = (("process", pa.string()), ("since", pa.int64()), ("wanted", pa.int64()))
    return pa.Table.from_pylist(rows, schema=pa.schema([*KEY_FIELDS, *fields]))
