"""Read store directories by their paths, as the harness does by a node and its replicas."""

from __future__ import annotations

from pathlib import Path

from harness.beneath import Folder
from harness.logs.record import Record
from harness.logs.replica import ReplicaLog
from harness.logs.stream import Unread, read_whole
from harness.target.logs import NodeFiles
from targets.nats.logs.reader import NatsLogs

# data/README.md says how they were made.
GOLDEN = Path(__file__).parent / "data" / "2.15.3"
N1, N2 = GOLDEN / "n1", GOLDEN / "n2"
OLDER = GOLDEN.parent / "2.12.1" / "n1"


def scan(data: Path, topic: str = "t", partition: int = 0) -> ReplicaLog:
    """Read one replica's log."""
    with Folder.at(data) as folder:
        return read_whole(lambda: NatsLogs().reading(NodeFiles(folder=folder), topic, partition))


def beside(data: Path, topic: str = "t", partition: int = 0) -> list[Record | Unread]:
    """Read what a replica's Raft log holds."""
    with Folder.at(data) as folder:
        return list(NatsLogs().beside(NodeFiles(folder=folder), topic, partition))


def replicas(data: Path) -> list[tuple[str, int]]:
    """Return the replicas of a store directory."""
    with Folder.at(data) as folder:
        return list(NatsLogs().partitions(NodeFiles(folder=folder)))


def values(log: ReplicaLog) -> list[str | None]:
    """Return the values of all records."""
    return [value for batch in log.batches for _, _, value in batch.records]


def offsets(log: ReplicaLog) -> list[int]:
    """Return the offsets of all records."""
    return [batch.base for batch in log.batches]
