"""
Delete the newest segment of a replica's log while its node is down: a workaround that operators used.

Source:  KAFKA-6361: "delete the active log segment on the follower and restart".
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError


def inject(cluster: Cluster, name: str) -> str:
    """Delete the segment; the probe is that the log ends at a lower offset."""
    if name not in cluster.down:
        raise PreconditionError(f"delete-active-segment {name}: it runs; expected it to be down")
    before = cluster.log_end(name)
    seen = cluster.host.delete_active_segment(name, cluster.topic, cluster.partition)
    after = cluster.log_end(name)
    if after >= before:
        raise PreconditionError(f"delete-active-segment {name}: its log ends at {after}; expected below {before}")
    return f"{seen}; its log ended at {before}, and ends at {after}"


FAULT = Fault(
    name="delete-active-segment",
    doc="delete the newest segment of a node that is down",
    inject=inject,
    heal=None,
    effect=Effect.LOG_CUT,
    band=Band.MARK,
    weight=0.0,
)
