"""Faults of ZooKeeper: whose servers they may touch, and how they are undone where they are named."""

from __future__ import annotations

from harness.cluster import link_fault
from harness.cluster.cluster import Cluster
from harness.cluster.interfaces import ZooKeeperServers
from harness.effect import ON_METADATA
from harness.model import PreconditionError

METADATA = "metadata"


def servers_of(cluster: Cluster, what: str) -> ZooKeeperServers:
    """
    Return the servers of the run's own ZooKeeper.

    Raises:
        PreconditionError: the run shares its ZooKeeper with others, which a fault of it would hit too.
    """
    if cluster.zookeeper is None:
        raise PreconditionError(f"{what}: the run shares its ZooKeeper with others; expected servers of its own")
    return cluster.zookeeper


def end(cluster: Cluster, name: str) -> str:
    """
    Let ZooKeeper's servers serve again, and heal the link of a node that was cut from it; return what was seen.

    Raises:
        PreconditionError: there is nothing to undo, or a node that runs does not reach ZooKeeper in time.
    """
    faults = [found for found in cluster.in_force if found.effect in ON_METADATA and found.node == name]
    if not faults:
        raise PreconditionError(f"zookeeper-back {name}: ZooKeeper is there for {name}; expected a fault of it")
    seen: list[str] = []
    cut = [found for found in faults if isinstance(found.handle, link_fault.LinkRules)]
    if len(cut) < len(faults) and cluster.zookeeper is not None and cluster.zookeeper.lacking():
        seen.append(cluster.zookeeper.mend())
    seen += (link_fault.lift(cluster, found) for found in cut)
    still = cluster.down | cluster.paused | cluster.zombies
    seen += (_registered(cluster, found.node) for found in cut if found.node not in still)
    return "; ".join(seen)


def _registered(cluster: Cluster, name: str) -> str:
    """Wait until a node that was cut from ZooKeeper has a connection and a registration; return its session."""
    view = cluster.metadata
    cluster.await_(
        lambda: cluster.fabric.connections(name, METADATA) > 0 and view.incarnation(name) != 0,
        lambda: f"{name} is connected to ZooKeeper and registered",
    )
    return f"{name} is registered in session 0x{view.incarnation(name):x}"
