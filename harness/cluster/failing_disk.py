"""
Faults of disks: one that has a disk report an error until the broker has met it, and one that makes it slow.

A broker must not go on after an error: what it acknowledged may never become durable. So the fault waits until the
process has ended by itself, and does not take effect if the broker meets nothing in that time. A process that says
that it serves no more, and goes on, is killed: its operator has to start it again.
Source:  Kafka Replication Design V3, 4 (a disk error ends the broker); KAFKA-10778; "fsyncgate" (PostgreSQL,
2018), for what a failed fsync leaves.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import DiskError
from harness.model import PreconditionError


def fail(cluster: Cluster, name: str, error: DiskError) -> str:
    """
    Have a node's disk report an error until its process has ended, or serves no more; return what was seen.

    Raises:
        PreconditionError: the process goes on; it met no error, or does not stop at one.
    """

    def serves_no_more() -> bool:
        return not cluster.host.alive(name) or name in cluster.given_up.failed

    def how(name: str) -> str:
        patience_s = cluster.host.disk_error_s
        cluster.given_up.failed.discard(name)  # of an earlier error, printed late
        cluster.host.break_disk(name, error)
        ended = cluster.time.until(lambda: cluster.cancelled or serves_no_more(), patience_s)
        if ended and cluster.host.alive(name):
            cluster.host.kill(name)
        try:
            met = cluster.host.mend_disk(name) or "no error"
        except PreconditionError as in_use:
            if ended:
                raise
            met = str(in_use)  # a disk in use may not be mended; that the node uses it is what counts
        if not ended:
            raise PreconditionError(f"{name} goes on after {patience_s:g} s; it met {met}")
        return f"it met {met}; {cluster.last_words(name)}"

    return cluster.take_down(name, how)


def is_slow(cluster: Cluster, name: str) -> str:
    """Return what the disk says of itself instead of being slow, "" if it is."""
    wrong = cluster.host.disk_state(name)
    return "" if wrong == DiskError.SLOW else f"its disk is {wrong or 'as it should be'}; expected it to be slow"
