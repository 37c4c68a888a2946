"""
The data set of a summary: its tables, their columns and what they mean.

    OUT/data/NAME/*.parquet     a folder for each table, written by Spark
    OUT/data/schema.json        the version and the columns; written last, so that a folder without it is not whole
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

VERSION: Final = 1
FOLDER: Final = "data"
SCHEMA_FILE: Final = "schema.json"

# The outcome of a run that cannot be read. The other outcomes are the verdicts, in small letters.
UNREADABLE: Final = "unreadable"

_INT: Final = pa.int64()
_TEXT: Final = pa.string()
_FLOAT: Final = pa.float64()
# Column -> its type and what it is; a name that ends with an underscore is that of a column that may be null.
_Columns: TypeAlias = Mapping[str, tuple[pa.DataType, str]]

_RUN: Final[_Columns] = {
    "night": (pa.date32(), "from noon to noon in UTC, by the date on which it begins"),
    "suite": (_TEXT, "the suite's folder"),
    "run": (_TEXT, "the run's folder below it"),
    "workload": (_TEXT, "the scenario, or what the random runs of one suite are called"),
    "protocol": (_TEXT, "with the changed rules of a mutant"),
    "family": (_TEXT, "the protocol; all its mutants are one family more"),
    "release_": (_TEXT, "the target, and its version if it has several; null if the history cannot be read"),
    "host": (_TEXT, "where the nodes ran"),
    "clock_": (_TEXT, "`real`, or `virtual` in the simulator; times of the two are never mixed"),
}

COLUMNS: Final[Mapping[str, _Columns]] = {
    "runs": {
        **_RUN,
        "path": (_TEXT, "the run's folder, where it was read"),
        "started": (pa.timestamp("us", tz="UTC"), "of the suite"),
        "place": (_INT, "in the suite's table, from 0; without a table, by name"),
        "seed": (_INT, ""),
        "expected": (_TEXT, ""),
        "found": (_TEXT, ""),
        "status": (_TEXT, "how it compares with its expectation, as stored"),
        "verdict": (_TEXT, "as stored"),
        "outcome": (_TEXT, f"the verdict, or `{UNREADABLE}`: a run that cannot be read now is never valid"),
        "seconds_": (_FLOAT, "that the run took, as stored; null without a table"),
        "elections_": (_INT, "leader epochs after the first, as stored; null without a table"),
        "lasted_s_": (_FLOAT, "the time of the last op, by the run's clock"),
        "ok_": (_INT, "produces that were acknowledged; with acks=0, sent"),
        "fail_": (_INT, "produces that surely appended nothing"),
        "info_": (_INT, "produces of which nobody knows: they may be in the log"),
        "open_": (_INT, "produces that never ended; they may be in the log too"),
        "window_s_": (_FLOAT, "the length of a window"),
        "windows_": (_INT, "windows in which a produce was tried"),
        "available_": (_INT, "those in which one was acknowledged"),
        "unavailable_s_": (_FLOAT, "the longest unavailable stretch; 0 for none"),
        "unavailable_from_s_": (_FLOAT, "where it begins, since the run began; null if there is none"),
        "around_": (pa.list_(_TEXT), "the faults that were in force in it, or in the window before it"),
    },
    "anomalies": {
        **_RUN,
        "outcome": (_TEXT, "of its run"),
        "kind": (_TEXT, ""),
        "verdict": (_TEXT, "of its kind"),
        "topic": (_TEXT, ""),
        "partition": (_INT, ""),
        "first": (pa.list_(_INT), "the first offset of each range"),
        "end": (pa.list_(_INT), "the end of each range, exclusive"),
        "offsets": (_INT, "how many offsets are in the ranges"),
        "nodes": (pa.list_(_TEXT), ""),
        "epoch_": (_INT, ""),
        "checker": (_TEXT, "that proved it"),
    },
    "faults": {
        **_RUN,
        "kind": (_TEXT, "of a nemesis or of a rule for links"),
        "asked": (_INT, "how often it was tried"),
        "bit": (_INT, "how often it took effect"),
    },
    "latencies": {
        **_RUN,
        "outcome": (_TEXT, "`ok`, `info` or `fail`; a produce that never ended has no latency"),
        "acks": (_INT, "0, 1, or -1 for all"),
        "bucket": (_INT, "its number: sixteen to each doubling, each nanosecond alone below 16"),
        "from_ns": (_INT, "the least latency of the bucket"),
        "to_ns": (_INT, "the greatest, inclusive"),
        "count": (_INT, "produces of the run in it"),
        "max_ns": (_INT, "the greatest latency that was seen in it, exactly"),
    },
    "unreadable": {
        "night_": (pa.date32(), "null if the suite's table cannot be read"),
        "suite": (_TEXT, "the suite's folder"),
        "run_": (_TEXT, "null if it is the suite's table that cannot be read"),
        "reason": (_TEXT, "what was found, and what was expected"),
    },
}


def _schema(columns: _Columns) -> pa.Schema:
    return pa.schema(
        [pa.field(name.rstrip("_"), kind, nullable=name.endswith("_")) for name, (kind, _) in columns.items()]
    )


SCHEMAS: Final[Mapping[str, pa.Schema]] = {name: _schema(columns) for name, columns in COLUMNS.items()}


def write_schema(folder: Path) -> None:
    """Write the version and the columns to the folder of the tables."""
    tables = {name: {field.name: str(field.type) for field in schema} for name, schema in SCHEMAS.items()}
    raw: dict[str, Any] = {"version": VERSION, "tables": tables}
    (folder / SCHEMA_FILE).write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
