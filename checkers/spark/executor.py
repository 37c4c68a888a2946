"""
The work of executors: check all rows of one partition of one run. This module imports nothing of Spark.

Each executor's Python imports this module first; to import PySpark would take longer than the check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from checkers.checker import Checker, check
from checkers.facts.sequence import in_order
from harness.history.file import unreadable
from harness.model import Op, OpType, Source

Key = tuple[str, str, int]

KEY: Final = ("run", "topic", "partition")
KEY_FIELDS: Final = (("run", pa.string()), ("topic", pa.string()), ("partition", pa.int32()))
ANOMALY_SCHEMA: Final = pa.schema([("run", pa.string()), ("place", pa.int64()), ("anomaly", pa.string())])


def judge_of(
    checkers: Mapping[str, Checker], clean: Mapping[Key, frozenset[str]]
) -> Callable[[pa.Table], pa.Table]:
    """
    Return the function that executors call with all rows of one partition.

    The function returns one row of ANOMALY_SCHEMA for each anomaly; place is its position among the anomalies of
    its partition.

    Args:
        checkers: the checkers by name.
        clean: for each partition, the names of the checkers whose search found nothing in it.
    """
    table = dict(checkers)

    def judge(rows: pa.Table) -> pa.Table:
        raw = rows.to_pylist()
        key = key_of_row(raw[0])
        anomalies = check(in_order(map(op_of, raw)), table, clean.get(key, frozenset()))
        found = [
            {"run": key[0], "place": place, "anomaly": json.dumps(anomaly.to_dict())}
            for place, anomaly in enumerate(anomalies)
        ]
        return pa.Table.from_pylist(found, schema=ANOMALY_SCHEMA)

    return judge


def key_of_row(row: Mapping[str, Any]) -> Key:
    """Return the (run, topic, partition) of a row."""
    return row["run"], row["topic"], row["partition"]


def op_of(row: Mapping[str, Any]) -> Op:
    """Return the op in a row of a run's Parquet file; a row that is no op makes its own run unknown, no other."""
    try:
        value = json.loads(row["value"])
        if type(value) is not dict:
            raise TypeError(f"value is {value!r:.80}")
        return Op(
            index=row["index"],
            time_ns=row["time_ns"],
            source=Source(row["source"]),
            process=row["process"],
            type=OpType(row["type"]),
            f=row["f"],
            value=value,
        )
    except (ValueError, TypeError, RecursionError) as error:
        return unreadable(f"row {row['index']}: {error!r}; expected an op", None, row["index"])
