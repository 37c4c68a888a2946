"""
The work of executors: judge runs from their lines, and partitions from their rows. This module imports nothing of
Spark.

Each executor's Python imports this module first; to import PySpark would take longer than the check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final, TypeAlias

import pyarrow as pa

from checkers.checker import Checker, check
from checkers.judge import check_in_process
from checkers.spark.assemble import DOUBTS, EVENT, assemble, event_of
from checkers.spark.head import head_of
from harness.history.file import ops_in
from harness.model import Anomaly, HistoryError, Kind, PartOps

LINES_SCHEMA: Final = pa.schema([("path", pa.string()), ("place", pa.int64()), ("anomaly", pa.string())])
_KEY: Final = (("run", pa.int32()), ("part", pa.int32()))
HEAD_SCHEMA: Final = pa.schema([*_KEY, ("head", pa.string())])
ANOMALY_SCHEMA: Final = pa.schema([*_KEY, ("place", pa.int64()), ("anomaly", pa.string())])

# The place of the row that says that a run or a partition was judged: nothing that Spark left out is valid.
JUDGED: Final = -1
# The topic and partition of (run, part).
Places: TypeAlias = Mapping[tuple[int, int], tuple[str, int]]


def lines_judge(
    checkers: Mapping[str, Checker],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that executors call with whole histories: rows of path and content."""
    table = dict(checkers)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
                ops = [*ops_in(BytesIO(content.as_py()), path.as_py())]
                rows = _found({"path": path.as_py()}, check_in_process(ops, table))
                yield pa.RecordBatch.from_pylist(rows, schema=LINES_SCHEMA)

    return judge


def head_of_rows(rows: pa.Table) -> pa.Table:
    """Return the head of one partition, from the rows of its events."""
    raw = rows.to_pylist()
    ops = PartOps(sorted(map(event_of, raw), key=lambda op: op.index))
    floors = {row["index"]: row["floor"] for row in raw if row["floor"] is not None}
    key = {name: raw[0][name] for name, _ in _KEY}
    head = json.dumps(head_of(ops, floors).to_dict())
    return pa.Table.from_pylist([{**key, "head": head}], schema=HEAD_SCHEMA)


def rows_judge(checkers: Mapping[str, Checker], places: Places) -> Callable[[pa.Table], pa.Table]:
    """Return the function that executors call with the rows of one partition (checkers/spark/pieces.py)."""
    table = dict(checkers)

    def judge(rows: pa.Table) -> pa.Table:
        raw = rows.to_pylist()
        key = {name: raw[0][name] for name, _ in _KEY}
        found = _found(key, _judged(raw, places[key["run"], key["part"]], table))
        return pa.Table.from_pylist(found, schema=ANOMALY_SCHEMA)

    return judge


def _found(key: Mapping[str, Any], anomalies: Sequence[Anomaly]) -> list[dict[str, Any]]:
    """Return a row that says that it was judged, and a row for each anomaly."""
    rows = [{**key, "place": JUDGED, "anomaly": ""}]
    return rows + [
        {**key, "place": place, "anomaly": json.dumps(anomaly.to_dict())}
        for place, anomaly in enumerate(anomalies)
    ]


def _judged(
    rows: Sequence[Mapping[str, Any]], place: tuple[str, int], checkers: Mapping[str, Checker]
) -> list[Anomaly]:
    beyond = [row["count"] for row in rows if row["piece"] == DOUBTS]
    try:
        ops: PartOps = assemble(rows, place)
    except HistoryError as error:
        events = (event_of(row) for row in rows if row["piece"] == EVENT)
        ops, beyond = PartOps(sorted(events, key=lambda op: op.index)), []
        return [_unchecked(place, str(error)), *check(ops, checkers)]
    found = check(ops, checkers)
    if not beyond:
        return found
    text = f"evidence differs at {beyond[0]} offsets or more; the lowest of them were judged, and the others not"
    return [_unchecked(place, text), *found]


def _unchecked(place: tuple[str, int], why: str) -> Anomaly:
    topic, partition = place
    return Anomaly(
        kind=Kind.UNCHECKED,
        topic=topic,
        partition=partition,
        sentence=f"{topic}-{partition} could not be judged: {why}.",
        checker="unchecked",
    )
