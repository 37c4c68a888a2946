"""Read Fluss's data directories by their paths, as the harness does by a node and its replicas."""

from __future__ import annotations

from pathlib import Path

from harness.beneath import Folder
from harness.logs.replica import ReplicaLog
from harness.logs.stream import read_whole
from harness.target.logs import NodeFiles
from targets.fluss.logs.reader import FlussLogs

# What two tablet servers of release 0.9.1 had when they were stopped, without indexes and the files of keys. The
# client for Python wrote it, idempotent, with segments of 4 kB: three batches of 300 records and some of one into
# `records`, which has two buckets; 300 with LZ4 into `lz4`; two columns into `other.events`; keys into `keyed`, of
# two columns, and `keys`, of one, last a delete of a key that was never there. `parted` has a partition.
GOLDEN = Path(__file__).parent.parent / "data" / "0.9.1"


def scan(data: Path, topic: str = "t", bucket: int = 0) -> ReplicaLog:
    """Read one replica's log."""
    with Folder.at(data) as folder:
        return read_whole(lambda: FlussLogs().reading(NodeFiles(folder=folder), topic, bucket))


def replicas(data: Path) -> list[tuple[str, int]]:
    """Return the replicas of a data directory."""
    with Folder.at(data) as folder:
        return list(FlussLogs().partitions(NodeFiles(folder=folder)))


def values(log: ReplicaLog) -> list[str | None]:
    """Return the values of all records."""
    return [value for batch in log.batches for _, _, value in batch.records]
