"""
The work of executors: judge runs from their lines, and partitions from their rows.

Whatever executors call stands in such modules. This module imports nothing of Spark: to import PySpark would take
an executor's Python longer than most checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final

import pyarrow as pa

from checkers.checker import Checker, check
from checkers.facts.sequence import in_order
from checkers.facts.view import unchecked
from checkers.judge import check_in_process
from checkers.spark.assemble import EVENT, Context, assemble, event_of
from checkers.spark.doubts import Finding
from checkers.spark.fold import together
from checkers.spark.head import Part, head_of
from checkers.spark.reading import Grouped, Key, settle
from checkers.spark.room import lacking
from harness.history.file import ops_in
from harness.model import Anomaly, HistoryError, PartOps

LINES_SCHEMA: Final = pa.schema([("path", pa.string()), ("place", pa.int64()), ("anomaly", pa.string())])

# Rows that are Python's at once.
_ROWS: Final = 4_096
# The place of the row that says that a run or a partition was judged: nothing that Spark left out is valid.
JUDGED: Final = -1


def lines_judge(
    checkers: Mapping[str, Checker],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that executors call with whole histories: rows of path and content."""
    table = dict(checkers)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
                ops = [*ops_in(BytesIO(content.as_py()), path.as_py())]
                rows = _found({"path": path.as_py()}, check_in_process(ops, table))
                yield pa.RecordBatch.from_pylist(rows, schema=LINES_SCHEMA)

    return judge


def head_of_rows(item: Grouped) -> list[tuple[Key, str]]:
    """Return the head of one partition as text, from the rows of its events."""
    key, tables = item
    rows = [row for table in tables for row in table.to_pylist()]
    floors = {row["index"]: row["floor"] for row in rows if row["floor"] is not None}
    return [(key, head_of(PartOps(in_order(map(event_of, rows))), floors).to_json())]


def finder(
    parts: Mapping[Key, Part], look: Callable[[pa.Table, Part], list[Finding]], *, single: bool
) -> Callable[[Grouped], list[tuple[Key, Finding]]]:
    """Return the function that executors call with rows of one partition: folded, or single ones."""

    def find(item: Grouped) -> list[tuple[Key, Finding]]:
        key, tables = item
        part = parts.get(key)
        return [(key, finding) for finding in look(together(tables, single=single), part)] if part else []

    return find


def rows_judge(
    checkers: Mapping[str, Checker], parts: Mapping[Key, Context]
) -> Callable[[Grouped], list[tuple[Key, dict[str, Any]]]]:
    """Return the function that executors call with the rows of one partition (checkers/spark/pieces.py)."""
    checks = dict(checkers)

    def judge(item: Grouped) -> list[tuple[Key, dict[str, Any]]]:
        key, tables = item
        part = parts[key]
        why = lacking(sum(map(len, tables)))
        if why:
            return [(key, row) for row in _found({}, [_unjudged(part, why)])]
        return [(key, row) for row in _found({}, _judged(tables, part, checks))]

    return judge


def _found(key: Mapping[str, Any], anomalies: Sequence[Anomaly]) -> list[dict[str, Any]]:
    """Return a row that says that it was judged, and a row for each anomaly."""
    rows = [{**key, "place": JUDGED, "anomaly": ""}]
    return rows + [
        {**key, "place": place, "anomaly": json.dumps(anomaly.to_dict())}
        for place, anomaly in enumerate(anomalies)
    ]


def _judged(tables: Sequence[pa.Table], part: Context, checkers: Mapping[str, Checker]) -> list[Anomaly]:
    beyond = part.beyond
    try:
        ops: PartOps = assemble(_rows(tables), part)
    except HistoryError as error:
        ops = PartOps(in_order(event_of(row) for row in _rows(tables) if row["piece"] == EVENT))
        beyond = str(error)
    found = check(ops, checkers)
    if not beyond:
        return found
    return [_unjudged(part, beyond), *found]


def _rows(tables: Iterable[pa.Table]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for batch in table.to_batches(_ROWS):
            yield from batch.to_pylist()


def _unjudged(part: Context, why: str) -> Anomaly:
    topic, partition = part.place
    return unchecked(part.place, f"{topic}-{partition} could not be judged: {why}.", "unchecked")
