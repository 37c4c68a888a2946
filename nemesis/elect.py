"""
Elect a member of the ISR although no node failed: leadership moves without a restart that truncates a log.

Source:  KAFKA-6361 and Kafka's preferred replica election; the specification's ControllerElectLeader.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError


def inject(cluster: Cluster, name: str) -> str:
    """Ask the controller; the probe is a request that stands, or that was taken by now."""
    partition = cluster.named
    isr = partition.isr()
    if name not in isr:
        raise PreconditionError(f"elect {name}: not in the ISR {sorted(map(str, isr))}; expected a member of it")
    if partition.leader() == name:
        raise PreconditionError(f"elect {name}: it leads already; expected another to lead")
    return cluster.zookeeper_view.elect(*partition.place, name)


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note the requests for elections so far; return what tells that there was no other."""
    del name
    view = cluster.zookeeper_view
    before = view.elections_asked()
    return lambda: "no election was asked for; expected a request" if view.elections_asked() == before else ""


FAULT = Fault(
    name="elect",
    doc="ask the controller to elect an ISR member although no node failed",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.LEADER_MOVED,
    band=Band.MARK,
)
