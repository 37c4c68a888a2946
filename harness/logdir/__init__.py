"""
The log scanner and the lineage reader: read Kafka's log directories, of any broker, without writing to them.

    files       which of a partition's files are its log, and whether a broker uses them
    reading     the segments of one log, batch by batch
    scan        a partition's directory -> ReplicaLog, and the history's `snapshot` and `batch` ops
    lineage     several ReplicaLogs -> where they disagree          graph   how their histories fork
    soundness   one ReplicaLog -> disorder, holes, a checkpoint that contradicts the log
"""

from harness.logdir.lineage import behind, differences, holes, lineage
from harness.logdir.scan import BatchSeen, ReplicaLog, find_partitions, scan_partition, snapshot_events
from harness.logdir.soundness import notes

__all__ = [
    "BatchSeen",
    "ReplicaLog",
    "behind",
    "differences",
    "find_partitions",
    "holes",
    "lineage",
    "notes",
    "scan_partition",
    "snapshot_events",
]
