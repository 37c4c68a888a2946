"""
Records as the commit log of a broker has them, byte for byte, and folders of brokers with such logs.

What a record says of its own lengths can be a lie.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.beneath import Folder
from harness.launch import Address
from harness.logs.replica import ReplicaLog
from harness.logs.stream import read_whole
from harness.target.logs import NodeFiles
from targets.rocketmq.logs.reader import LOGS

MAGIC: Final = 0xDAA320A7
MAGIC_LONG_TOPIC: Final = 0xDAA320AB
BLANK: Final = 0xCBD43194  # CommitLog.BLANK_MAGIC_CODE, -875286124
BORN_V6: Final = 1 << 4
STORED_V6: Final = 1 << 5
TIME_MS: Final = 1_796_074_966_888
PROPERTIES: Final = b"CLUSTER\x01fencepost\x02"

# What release 5.5.0 wrote for the value `m1.1`: the second record of the queue and of the log, at byte 221.
REAL: Final = bytes.fromhex(
    "000000dddaa320a7177876730000000000000000000000000000000100000000000000dd00000000000001a22e68d6a9"
    "7f0000010000e9ba000001a22e68d7277f0000010000533a000000000000000000000000000000046d312e31036c6f67"
    "007b4d53475f524547494f4e0144656661756c74526567696f6e02554e49515f4b455901464430303030303030303030"
    "303030303030303030303030303030303030303233324438344530453246324139413030454542393030303102434c55"
    "535445520166656e6365706f73740254524143455f4f4e017472756502"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What a record says of itself where it is not so; None for the truth."""

    size: int | None = None
    crc: int | None = None
    position: int | None = None
    body: int | None = None
    topic: int | None = None
    properties: int | None = None


TRUTH: Final = Says()


def record(
    value: bytes,
    position: int = 0,
    offset: int = 0,
    *,
    topic: str = "log",
    queue: int = 0,
    magic: int = MAGIC,
    flags: int = 0,
    properties: bytes = PROPERTIES,
    says: Says = TRUTH,
) -> bytes:
    """
    Return a record that begins at a byte of the log.

    Args:
        offset: in its queue.
        flags: with BORN_V6 and STORED_V6 its hosts have addresses of 16 bytes.
    """
    name = topic.encode()
    born, stored = (bytes(16 if flags & v6 else 4) + bytes(4) for v6 in (BORN_V6, STORED_V6))
    rest = b"".join(
        (
            struct.pack(">q", TIME_MS),
            born,
            struct.pack(">q", TIME_MS + 1),
            stored,
            struct.pack(">iq", 0, 0),
            struct.pack(">i", _or(says.body, len(value))),
            value,
            _or(says.topic, len(name)).to_bytes(1 if magic == MAGIC else 2),
            name,
            _or(says.properties, len(properties)).to_bytes(2),
            properties,
        )
    )
    head = struct.pack(
        ">iIIiiqqi",
        _or(says.size, 40 + len(rest)),
        magic,
        _or(says.crc, zlib.crc32(value) & 0x7FFFFFFF),
        queue,
        0,
        offset,
        _or(says.position, position),
        flags,
    )
    return head + rest


def _or(said: int | None, truth: int) -> int:
    return truth if said is None else said


def log_of(*values: bytes, at: int = 0, offset: int = 0, topic: str = "log", queue: int = 0) -> bytes:
    """Return records of one queue, one after the other, the first at a byte of the log."""
    found = b""
    for number, value in enumerate(values, start=offset):
        found += record(value, at + len(found), number, topic=topic, queue=queue)
    return found


def blank(size: int) -> bytes:
    """Return the end of a file of which so many bytes are left."""
    return struct.pack(">iI", size, BLANK) + bytes(size - 8)


# --- folders of brokers ----------------------------------------------------------------------------------------
def path_of(data: Path, start: int = 0) -> Path:
    """Return the file of the log that begins at a byte."""
    return data / "commitlog" / f"{start:020d}"


def commit_log(data: Path, *files: tuple[int, bytes]) -> Path:
    """Write files of a broker's commit log, each with the byte at which it begins; return the broker's folder."""
    (data / "commitlog").mkdir(parents=True, exist_ok=True)
    for start, written in files:
        path_of(data, start).write_bytes(written)
    return data


def topics(data: Path, queues: Mapping[str, object]) -> Path:
    """Write a broker's file of topics: topic -> how many queues it has; return the file."""
    file = data / "config" / "topics.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    table = {topic: {"topicName": topic, "readQueueNums": count, "perm": 6} for topic, count in queues.items()}
    file.write_text(json.dumps({"dataVersion": {"counter": 1}, "topicConfigTable": table}))
    return file


def epochs(data: Path, *starts: tuple[int, int]) -> Path:
    """Write a broker's file of epochs; return the file."""
    lines = "".join(f"{epoch}-{start}\n" for epoch, start in starts)
    file = data / "epochFileCheckpoint"
    file.write_text(f"{len(starts)}\n{zlib.crc32(lines.encode()) & 0x7FFFFFFF}\n{lines}")
    return file


# --- what is read of them --------------------------------------------------------------------------------------
def scan(data: Path, topic: str = "log", queue: int = 0, address: Address | None = None) -> ReplicaLog:
    """Read the log of a queue, of a broker that is down if there is no address."""
    with Folder.at(data) as folder:
        return read_whole(lambda: LOGS.reading(NodeFiles(folder=folder, address=address), topic, queue))


def end_of(data: Path, topic: str = "log", queue: int = 0, address: Address | None = None) -> int | None:
    """Return where the log of a queue ends, without a reading of it."""
    with Folder.at(data) as folder:
        return LOGS.end(NodeFiles(folder=folder, address=address), topic, queue)


def replicas(data: Path) -> list[tuple[str, int]]:
    """Return the queues that a broker's folder has."""
    with Folder.at(data) as folder:
        return list(LOGS.partitions(NodeFiles(folder=folder)))


def newest(data: Path) -> list[str]:
    """Return the files of the newest piece of a broker's log."""
    with Folder.at(data) as folder:
        return list(LOGS.newest_segment(NodeFiles(folder=folder), "log", 0))


def values(log: ReplicaLog) -> list[str | None]:
    """Return the values of all records."""
    return [value for batch in log.batches for _, _, value in batch.records]
