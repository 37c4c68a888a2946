"""
Set a node's clocks right: the wall clock shows the right time, or both clocks run at the usual rate again.

A monotonic clock never goes back, so that both clocks keep what they gained or lost at another rate.
"""

from __future__ import annotations

from harness.cluster import clock_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Set the clocks; the probe is what the process reads of them, unless the node is down."""
    return clock_fault.right(cluster, name)


FAULT = Fault(
    name="clock-right",
    doc="set the wall clock right, or have both clocks run at the usual rate again",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=frozenset({Effect.CLOCK_WRONG}),
    band=Band.MARK,
    weight=0.0,
    by_itself=True,
)
