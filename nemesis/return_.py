"""Reconnect a zombie to ZooKeeper: it learns that its session has ended, and registers in a new one."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError


def inject(cluster: Cluster, name: str) -> str:
    """Heal the node's link; the probe is a registration in a new session, unless the node is down."""
    cut = cluster.in_force.of(name, Effect.CUT_OFF)
    if cut is None:
        raise PreconditionError(f"return {name}: it is not a zombie; expected one of {sorted(cluster.zombies)}")
    cluster.fabric.heal(cut.handle)
    if name in cluster.down:
        return "its link is healed; it is down"
    cluster.await_(lambda: cluster.metadata.incarnation(name) != 0, lambda: f"{name} is registered again")
    return f"registered in session 0x{cluster.metadata.incarnation(name):x}"


FAULT = Fault(
    name="return",
    doc="reconnect a zombie to ZooKeeper",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=frozenset({Effect.CUT_OFF}),
    band=Band.MARK,
)
