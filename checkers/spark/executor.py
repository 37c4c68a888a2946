"""
The work of executors: judge runs from their lines, and partitions from their rows. This module imports nothing of
Spark.

Each executor's Python imports this module first; to import PySpark would take longer than the check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final

import pyarrow as pa

from checkers.checker import Checker, check
from checkers.facts.sequence import in_order
from checkers.facts.view import unchecked
from checkers.judge import check_in_process
from checkers.spark.assemble import EVENT, Context, assemble, event_of
from checkers.spark.doubts import Finding
from checkers.spark.head import Part, head_of
from harness.history.file import ops_in
from harness.model import Anomaly, HistoryError, PartOps

LINES_SCHEMA: Final = pa.schema([("path", pa.string()), ("place", pa.int64()), ("anomaly", pa.string())])
# What a partition is grouped by: the number of its run, and its place in the manifest of the run.
PART_FIELDS: Final = (("run", pa.int32()), ("part", pa.int32()))
HEAD_SCHEMA: Final = pa.schema([*PART_FIELDS, ("head", pa.string())])
FINDING_SCHEMA: Final = pa.schema(
    [*PART_FIELDS, ("what", pa.string()), ("first", pa.int64()), ("end", pa.int64())]
)
ANOMALY_SCHEMA: Final = pa.schema([*PART_FIELDS, ("place", pa.int64()), ("anomaly", pa.string())])

# The place of the row that says that a run or a partition was judged: nothing that Spark left out is valid.
JUDGED: Final = -1


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
    floors = {row["index"]: row["floor"] for row in raw if row["floor"] is not None}
    head = head_of(PartOps(in_order(map(event_of, raw))), floors)
    return pa.Table.from_pylist([{**_key_of(rows), "head": head.to_json()}], schema=HEAD_SCHEMA)


def finder(
    parts: Mapping[tuple[int, int], Part], look: Callable[[pa.Table, Part], list[Finding]]
) -> Callable[[pa.Table], pa.Table]:
    """Return the function that executors call with folded rows of one partition (checkers/spark/fold.py)."""

    def find(rows: pa.Table) -> pa.Table:
        key = _key_of(rows)
        part = parts.get((key["run"], key["part"]))
        findings = look(rows, part) if part else []
        found = [{**key, "what": what, "first": first, "end": end} for what, first, end in findings]
        return pa.Table.from_pylist(found, schema=FINDING_SCHEMA)

    return find


def rows_judge(
    checkers: Mapping[str, Checker], parts: Mapping[tuple[int, int], Context]
) -> Callable[[pa.Table], pa.Table]:
    """Return the function that executors call with the rows of one partition (checkers/spark/pieces.py)."""
    table = dict(checkers)

    def judge(rows: pa.Table) -> pa.Table:
        key = _key_of(rows)
        found = _found(key, _judged(rows.to_pylist(), parts[key["run"], key["part"]], table))
        return pa.Table.from_pylist(found, schema=ANOMALY_SCHEMA)

    return judge


def _key_of(rows: pa.Table) -> dict[str, int]:
    return {name: rows.column(name)[0].as_py() for name, _ in PART_FIELDS}


def _found(key: Mapping[str, Any], anomalies: Sequence[Anomaly]) -> list[dict[str, Any]]:
    """Return a row that says that it was judged, and a row for each anomaly."""
    rows = [{**key, "place": JUDGED, "anomaly": ""}]
    return rows + [
        {**key, "place": place, "anomaly": json.dumps(anomaly.to_dict())}
        for place, anomaly in enumerate(anomalies)
    ]


def _judged(rows: Sequence[Mapping[str, Any]], part: Context, checkers: Mapping[str, Checker]) -> list[Anomaly]:
    beyond = part.beyond
    try:
        ops: PartOps = assemble(rows, part)
    except HistoryError as error:
        ops = PartOps(in_order(event_of(row) for row in rows if row["piece"] == EVENT))
        beyond = str(error)
    found = check(ops, checkers)
    if not beyond:
        return found
    topic, partition = part.place
    return [unchecked(part.place, f"{topic}-{partition} could not be judged: {beyond}.", "unchecked"), *found]
