"""
The work of executors for a summary: measure runs from their lines or their tables, and read stored results. This
module imports nothing of Spark.

Whatever of one run cannot be read is one row that says so, and touches no other run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.measures.run import NAMES, Measure, RunMeasures, facts_of, is_looked_at, produce_measures
from checkers.measures.run import UNREADABLE as NOT_READ
from checkers.measures.schema import SCHEMAS
from checkers.measures.stored import STORED_SCHEMA, stored_rows, unread_suite
from checkers.spark.assemble import event_of
from harness.history.file import ops_in
from harness.history.sequence import Breaks
from harness.model import HistoryError

_TEXT: Final = pa.string()
_INT: Final = pa.int64()
# What of a run's row comes from its history, and is null if that cannot be read.
_NOT_MEASURED: Final = frozenset({"clock", "seconds", "elections"})
RUN_FACTS: Final = tuple(
    field.name for field in SCHEMAS["runs"] if field.nullable and field.name not in _NOT_MEASURED
)
FAULT_FACTS: Final = ("kind", "asked", "bit")
LATENCY_FACTS: Final = ("outcome", "acks", "bucket", "from_ns", "to_ns", "count", "max_ns")

MEASURE_SCHEMA: Final = pa.schema(
    [("path", _TEXT), *((name, _TEXT if name in ("what", "name") else _INT) for name in NAMES)]
)
FACT_SCHEMA: Final = pa.schema(
    [
        ("path", _TEXT),
        ("what", _TEXT),
        *(SCHEMAS["runs"].field(name) for name in RUN_FACTS),
        *(SCHEMAS["faults"].field(name).with_nullable(True) for name in FAULT_FACTS),
        *(SCHEMAS["latencies"].field(name).with_nullable(True) for name in LATENCY_FACTS),
        ("reason", _TEXT),
    ]
)

Batches = Iterator[pa.RecordBatch]


def read_stored(batches: Batches) -> Batches:
    """Yield the rows of suites, from rows of path and content of each suite.json."""
    for batch in batches:
        for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
            folder = local_path(path.as_py()).rpartition("/")[0]
            yield _stored(folder, content.as_py())


def _stored(folder: str, content: bytes) -> pa.RecordBatch:
    try:
        return pa.RecordBatch.from_pylist([*stored_rows(folder, content)], schema=STORED_SCHEMA)
    except Exception as error:  # as a number that no table can hold: this suite alone is unreadable
        row = unread_suite(folder, f"suite.json: {_shown(error)}; expected the table of a suite that ended")
        return pa.RecordBatch.from_pylist([row], schema=STORED_SCHEMA)


def _shown(error: Exception) -> str:
    """Return an error as text that a table can hold."""
    return f"{error!r:.200}".encode("ascii", "backslashreplace").decode()


def measure_lines(batches: Batches) -> Batches:
    """Yield the facts of small runs, from rows of path and content of each history."""
    for batch in batches:
        for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
            folder = local_path(path.as_py()).rpartition("/")[0]
            yield _small(folder, content.as_py())


def _small(folder: str, content: bytes) -> pa.RecordBatch:
    try:
        return _facts(folder, measures_in(content))
    except Exception as error:  # as a text that no table can hold: this run alone is unreadable
        row = unread_run(folder, f"history.jsonl: {_shown(error)}; expected a run's history")
        return pa.RecordBatch.from_pylist([row], schema=FACT_SCHEMA)


def measures_in(content: bytes) -> Iterable[Measure]:
    """Return the measures of a whole history; if it lacks a line, or has one that is no op, only what is wrong."""
    if not content.endswith(b"\n"):
        return [(NOT_READ, "the last line is torn; expected a whole history", 0, 0, 1, 0)]
    breaks = Breaks()

    def ops() -> Iterator[Any]:
        for op in ops_in(BytesIO(content), "history.jsonl"):
            breaks.add(op.index, op.time_ns)
            yield op

    found = _measures_of(op for op in ops() if is_looked_at(op.source, op.f))
    if breaks.skips and found[0][0] != NOT_READ:
        last, index = breaks.skips[0]
        return [(NOT_READ, f"op {index} follows op {last}; expected no op to be missing", 0, 0, 1, 0)]
    return found


def measure_events(paths: Mapping[int, str]) -> Callable[[pa.Table], pa.Table]:
    """Return the function that executors call with the events of one large run, in any order."""

    def measure(rows: pa.Table) -> pa.Table:
        path = paths[rows.column("run")[0].as_py()]
        found = _measures_of(event_of(row) for row in rows.sort_by("index").to_pylist())
        return pa.Table.from_batches([_measures(path, found)], schema=MEASURE_SCHEMA)

    return measure


def measure_produces(paths: Mapping[int, str], windows_ns: Mapping[int, int]) -> Callable[[Batches], Batches]:
    """Return the function that executors call with any rows of produces of large runs."""

    def measure(batches: Batches) -> Batches:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for run in table.column("run").unique().to_pylist():
                rows = table.filter(pc.equal(table.column("run"), run))
                columns = [rows.column(name).to_numpy() for name in ("invoked_ns", "done_ns", "outcome", "acks")]
                sent_ns, ended_ns, outcomes, acks = columns
                try:
                    found = [*produce_measures(sent_ns, ended_ns, outcomes.astype(str), acks, windows_ns[run])]
                except HistoryError as error:
                    found = [(NOT_READ, str(error), 0, 0, 1, 0)]
                yield _measures(paths[run], found)

    return measure


def add_up(rows: pa.Table) -> pa.Table:
    """Return the facts of one large run, from all its measures."""
    measures = zip(*(rows.column(name).to_pylist() for name in NAMES), strict=True)
    return pa.Table.from_batches([_facts(rows.column("path")[0].as_py(), measures)], schema=FACT_SCHEMA)


def unread_run(path: str, reason: str) -> dict[str, Any]:
    """Return the fact that a run cannot be read."""
    return {"path": path, "what": NOT_READ, "reason": reason[:1000]}


def local_path(uri: str) -> str:
    """Return the path of a file that Spark names."""
    return uri.removeprefix("file://").removeprefix("file:")


def _measures_of(ops: Iterable[Any]) -> list[Measure]:
    measured = RunMeasures()
    try:
        for op in ops:
            measured.add(op)
        return [*measured.measures()]
    except HistoryError as error:
        return [(NOT_READ, str(error), 0, 0, 1, 0)]


def _facts(path: str, measures: Iterable[Measure]) -> pa.RecordBatch:
    facts = facts_of(measures)
    return pa.RecordBatch.from_pylist([{**fact, "path": path} for fact in facts], schema=FACT_SCHEMA)


def _measures(path: str, measures: Iterable[Measure]) -> pa.RecordBatch:
    rows = [{"path": path, **dict(zip(NAMES, measure, strict=True))} for measure in measures]
    return pa.RecordBatch.from_pylist(rows, schema=MEASURE_SCHEMA)
