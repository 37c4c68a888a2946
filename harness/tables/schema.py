"""
The columns of a run's tables; each is one file, in row groups of ROWS rows, in the order of the history.

A produce and its completion are one row of `produces`, a batch one row of `batches`, and each of its records one
row of `records`. A read is an event, and each record that it showed one row of `reads`. Every other op is one row
of `events`, and so is an op that does not fit; its partition is then `irregular` in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from harness.tables.manifest import VERSION, TablesError

# Rows of one row group: what a writer has in memory of each table.
ROWS: Final = 65_536
_VERSION_KEY: Final = b"fencepost.tables"


# Columns that are made of the others: of the value, and of the partition with the offset or the base.
DERIVED: Final = ("hash", "place")


_INT: Final = pa.int64()
_TEXT: Final = pa.string()
# Column -> its type and what it is; a name that ends with an underscore is that of a column that may be null.
_Columns: TypeAlias = Mapping[str, tuple[pa.DataType, str]]

_PART_DOC: Final = "the place of the partition in the manifest's `parts`"
_PLACE: Final[_Columns] = {
    "topic": (_TEXT, ""),
    "partition": (pa.int32(), ""),
    "part": (pa.int32(), f"{_PART_DOC}: quicker to group by than a name"),
}
_NEAR_DOC: Final = "where it lies, to read few row groups: `part << 40 | offset >> 12`"
_NEAR: Final[_Columns] = {"place": (_INT, _NEAR_DOC)}
_LOG: Final[_Columns] = {
    "replica": (_TEXT, "the node"),
    "log": (pa.int32(), "the place in the manifest's `logs`"),
}
_VALUE: Final[_Columns] = {
    "hash": (_INT, "64 bits of the value's text"),
    "value": (_TEXT, ""),
}

COLUMNS: Final[Mapping[str, _Columns]] = {
    "events": {
        "index": (_INT, ""),
        "time_ns": (_INT, ""),
        "source": (_TEXT, ""),
        "process": (_TEXT, ""),
        "type": (_TEXT, ""),
        "f": (_TEXT, ""),
        "topic_": (_TEXT, ""),
        "partition_": (pa.int32(), ""),
        "part_": (pa.int32(), f"{_PART_DOC}; null for what is about the whole run, whatever partition it names"),
        "floor_": (
            _INT,
            "of a fetch or a read: the highest offset acknowledged with acks=all before it, -1 for none",
        ),
        "value": (_TEXT, "JSON, as in the history's line; without the records that a read showed"),
    },
    "produces": {
        **_PLACE,
        "process": (_TEXT, "the client"),
        "name": (_TEXT, "of the group of records"),
        "acks": (_INT, ""),
        "codec": (_TEXT, ""),
        **_VALUE,
        "digest_": (_INT, "of what was sent; null if the client did not say"),
        "invoked": (_INT, "the index of its invoke"),
        "invoked_ns": (_INT, ""),
        "done": (_INT, "the index of its completion"),
        "done_ns": (_INT, ""),
        "outcome": (_TEXT, "`ok`, `info` or `fail`"),
        "offset_": (_INT, "on ok, if the answer has one"),
        "place_": (_INT, f"{_NEAR_DOC}; null without an offset"),
        "error": (_TEXT, ""),
        "floor": (_INT, "the highest offset acknowledged, to anyone, before it was sent; -1 for none"),
        "behind": (_INT, "the highest offset acknowledged to its process before it was itself; -1 for none"),
        "rising": (pa.bool_(), "its number is above those of all values that begin alike, so that it is unique"),
    },
    "batches": {
        **_PLACE,
        **_LOG,
        "number": (_INT, "0 for the first batch of its log"),
        "stretch": (_INT, "how often its log went back before, or its epoch, format or codec changed"),
        "index": (_INT, "the index of its op"),
        "time_ns": (_INT, ""),
        "base": (_INT, ""),
        **_NEAR,
        "before_": (_INT, "the base of the batch before it in its log"),
        "last": (_INT, "inclusive"),
        "epoch": (_INT, "-1 for none"),
        "magic": (_INT, ""),
        "crc": (_INT, ""),
        "codec": (_TEXT, ""),
        "position": (_INT, "in the segment, in bytes"),
        "segment": (_TEXT, ""),
        "control_": (pa.bool_(), "true for a control batch"),
        "problem": (_TEXT, ""),
        "odd": (pa.bool_(), "a rule may have something to say of it, or of the step from the batch before"),
    },
    "records": {
        **_PLACE,
        **_LOG,
        "batch": (_INT, "the index of its batch's op"),
        "offset": (_INT, ""),
        **_NEAR,
        "digest": (_INT, "the 64 bits of the digest's 16 hexadecimal digits"),
        **_VALUE,
    },
    "reads": {
        **_PLACE,
        "read": (_INT, "the index of the read's op"),
        "rank": (_INT, "0 for the first record that it showed"),
        "offset": (_INT, ""),
        **_NEAR,
        **_VALUE,
    },
}


def _schema(columns: _Columns) -> pa.Schema:
    fields = [pa.field(name.rstrip("_"), kind, nullable=name.endswith("_")) for name, (kind, _) in columns.items()]
    return pa.schema(fields, metadata={_VERSION_KEY: str(VERSION).encode()})


SCHEMAS: Final[Mapping[str, pa.Schema]] = {name: _schema(columns) for name, columns in COLUMNS.items()}


def check_schema(path: Path, name: str, found: pa.Schema) -> None:
    """Raise TablesError if a file's columns are not those of the table, or its version is another."""
    version = (found.metadata or {}).get(_VERSION_KEY, b"none").decode(errors="replace")
    if version != str(VERSION):
        raise TablesError(f"{path}: version {version:.20} of the tables; expected {VERSION}")
    wrong = _difference(SCHEMAS[name], found)
    if wrong:
        raise TablesError(f"{path}: {wrong}")


def _difference(expected: pa.Schema, found: pa.Schema) -> str:
    here: dict[str, Any] = {column.name: column.type for column in found}
    for column in expected:
        if here.get(column.name) != column.type:
            return f"column {column.name} is {here.get(column.name, 'not there')}; expected {column.type}"
    return ""
