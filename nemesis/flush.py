"""Flush a node's disk from outside, as the operating system may at any time."""

from __future__ import annotations

from collections.abc import Callable

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Call syncfs on the node's filesystem; the probe is that what was not durable before is now."""
    late = len(cluster.host.unflushed(name))
    seen = cluster.host.flush(name)
    return f"{late} files were not durable; {seen}" if late else seen


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """
    Note which files are not durable; return what tells that one still is not.

    A file that the node has written to meanwhile tells nothing.
    """
    before = set(cluster.host.unflushed(name))

    def unchanged() -> str:
        left = sorted(before.intersection(cluster.host.unflushed(name)))
        return f"{left[0]} is not durable; expected it flushed" if left else ""

    return unchanged


FAULT = Fault(
    name="flush",
    doc="syncfs the disk",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.NONE,
    band=Band.MARK,
)
