"""
Errors that a node's disk may report, and the fault that has it report one: it lasts until the broker has met it.

A broker must not go on after either: what it acknowledged may never become durable. So the fault waits until the
process has ended by itself, and does not take effect if the broker writes nothing in that time.
Source:  Kafka Replication Design V3, 4 (a disk error ends the broker); KAFKA-10778; "fsyncgate" (PostgreSQL,
2018), for what a failed fsync leaves.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError

# Longer than the time between two checkpoints of the high watermarks, which every broker at work writes.
MET_WITHIN_S: Final = 0.12


class DiskError(StrEnum):
    """
    What fails.

    FULL: a write, for lack of space; a part of it may be in the file. FLUSH: an fsync, of a log or a checkpoint;
    what it was to make durable may be gone, and no later fsync says so.
    """

    FULL = "full"
    FLUSH = "flush"


def fail(cluster: Cluster, name: str, error: DiskError) -> str:
    """
    Have a node's disk report an error until its process has ended; return what was seen.

    Raises:
        PreconditionError: the process goes on; it met no error, or does not stop at one.
    """

    def how(name: str) -> str:
        cluster.host.break_disk(name, error)
        ended = cluster.time.until(lambda: cluster.cancelled or not cluster.host.alive(name), MET_WITHIN_S)
        met = cluster.host.mend_disk(name)
        if not ended:
            raise PreconditionError(f"{name} goes on after {MET_WITHIN_S:g} s; it met {met or 'no error'}")
        return f"it met {met}; {cluster.last_words(name)}"

    return cluster.take_down(name, how)
