"""Read Kafka's directories by their paths, as the harness does by a node and its replicas."""

from __future__ import annotations

from pathlib import Path

from harness.beneath import Folder
from harness.logs.replica import ReplicaLog
from harness.logs.stream import read_whole
from targets.kafka_family.logs.data import DataFolder
from targets.kafka_family.logs.scan import Scan


def scan_partition(directory: Path) -> ReplicaLog:
    """Read one partition's directory."""
    with Folder.at(directory.parent) as data:
        return read_whole(lambda: Scan(DataFolder(data), directory.name))


def find_partitions(directory: Path) -> list[Path]:
    """Return the partitions' directories: the directory itself if it is one, else those in it."""
    with Folder.at(directory) as data:
        names = DataFolder(data).partitions()
    return [directory] if names is None else [directory / name for name in names]
