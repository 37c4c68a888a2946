"""
A topic is a log table of Fluss: its name, its number, and what stands of it in ZooKeeper.

A table's number is the bytes of its name, as what a server prints and sends names a table by its number alone.
The operator makes tables as a coordinator does, by the znodes that it writes for one: a coordinator that is asked
for a table draws its replicas at random.
A coordinator takes up a table when it sees data come into an empty znode. If they are there when it first looks it
takes up nothing, whoever wrote them (mended upstream after 0.9.1): then they are written once more.

    /metadata/databases/fencepost/tables/TOPIC            the table: its number, and how many buckets it has
    /metadata/databases/fencepost/tables/TOPIC/schemas/1  its columns: one, `v`, a text
    /tabletservers/tables/NUMBER                          the replicas of each bucket, the preferred leader first
    /tabletservers/tables/NUMBER/buckets/N/leader_isr     leader, ISR and epochs; written by the coordinator

Source:  ZkData.java and MetadataManager.createTable of Fluss 0.9.1; the znodes that it wrote were read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.model import TargetError, UsageError
from harness.target.metadata import PartitionTruth

DATABASE: Final = "fencepost"
COLUMN: Final = "v"
_BYTES_MAX: Final = 7  # of a name, so that its number is a positive long
SERVERS: Final = "/tabletservers/ids"
COORDINATORS: Final = "/coordinators/active"
_SCHEMA: Final = {"version": 1, "columns": [{"name": COLUMN, "data_type": {"type": "STRING"}, "id": 0}]}


def number_of(topic: str) -> int:
    """Return a table's number; raise UsageError for a name that is too long for one."""
    name = topic.encode()
    if not 0 < len(name) <= _BYTES_MAX or not name.isascii() or not topic.isprintable():
        raise UsageError(f"topic {topic!r}: expected 1 to {_BYTES_MAX} printable ASCII characters on Apache Fluss")
    return int.from_bytes(name)


def topic_of(number: int) -> str:
    """Return the topic of a table's number; `table-N` for a table that the harness did not make."""
    try:
        name = number.to_bytes(_BYTES_MAX).lstrip(b"\0").decode("ascii")
    except (OverflowError, UnicodeDecodeError):
        name = ""
    return name if name and name.isprintable() else f"table-{number}"


def arrow_schema() -> Any:
    """Return the columns of a table, as Arrow has them in batches."""
    # Every command imports the targets, and starts faster without it.
    import pyarrow as pa

    return pa.schema([(COLUMN, pa.string())])


def table_path(topic: str) -> str:
    """Return the path of a table."""
    return f"/metadata/databases/{DATABASE}/tables/{topic}"


def assignment_path(topic: str) -> str:
    """Return the path of a table's replicas."""
    return f"/tabletservers/tables/{number_of(topic)}"


def state_path(topic: str, bucket: int) -> str:
    """Return the path of a bucket's leader and ISR."""
    return f"{assignment_path(topic)}/buckets/{bucket}/leader_isr"


def znodes_of(topic: str, assignments: Sequence[Sequence[int]], now_ms: int) -> list[tuple[str, bytes]]:
    """Return the znodes that make a table, in the order in which they are written; the last one is the table's."""
    table = {
        "version": 1,
        "table_id": number_of(topic),
        "bucket_count": len(assignments),
        "properties": {"table.replication.factor": str(max(map(len, assignments)))},
        "custom_properties": {},
        "created_time": now_ms,
        "modified_time": now_ms,
    }
    buckets = {str(bucket): list(ids) for bucket, ids in enumerate(assignments)}
    return [
        # It makes the table's znode, without data.
        (f"{table_path(topic)}/schemas/1", _spelled({**_SCHEMA, "highest_field_id": 0})),
        (assignment_path(topic), _spelled({"version": 1, "buckets": buckets})),
        (table_path(topic), _spelled(table)),
    ]


def database_znode(now_ms: int) -> tuple[str, bytes]:
    """Return the znode that makes the database."""
    text = {"version": 1, "custom_properties": {}, "created_time": now_ms, "modified_time": now_ms}
    return f"/metadata/databases/{DATABASE}", _spelled(text)


def assignment(data: bytes) -> Mapping[int, tuple[int, ...]]:
    """Read a table's replicas: bucket -> server ids; raise TargetError for what no coordinator writes."""
    found = _json("a table's replicas", data)
    try:
        return {int(bucket): tuple(map(int, ids)) for bucket, ids in found["buckets"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _nonsense("a table's replicas", data) from error


def state(data: bytes, version: int, name_of: Mapping[int, str]) -> PartitionTruth:
    """Read a bucket's leader and ISR; raise TargetError for what no coordinator writes."""
    found = _json("a bucket's state", data)
    try:
        return PartitionTruth(
            leader=name_of.get(int(found["leader"])),
            epoch=int(found["leader_epoch"]),
            in_sync=tuple(name_of.get(int(each)) for each in found["isr"]),
            version=version,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _nonsense("a bucket's state", data) from error


def _json(what: str, data: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise _nonsense(what, data) from error
    if not isinstance(found, dict):
        raise _nonsense(what, data)
    return found


def _nonsense(what: str, data: bytes) -> TargetError:
    return TargetError(f"{what}: {data[:120]!r}; expected JSON as a coordinator writes it")


def _spelled(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
