"""
Delete the newest segment of a replica's log while its node is down: a workaround that operators used.

Source:  KAFKA-6361: "delete the active log segment on the follower and restart".
"""

from __future__ import annotations

from collections.abc import Callable

from harness.ability import Ability
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
    return f"{seen}; its log ended at {before}, and ends at {cluster.log_end(name)}"


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note where the log ends; return what tells that it ends no lower."""
    before = cluster.log_end(name)

    def unchanged() -> str:
        after = cluster.log_end(name)
        return "" if after < before else f"its log ends at {after}; expected below {before}"

    return unchanged


FAULT = Fault(
    name="delete-active-segment",
    doc="delete the newest segment of a node that is down",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.LOG_CUT,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.SEGMENTS,),
)
