"""
Elect a member of the ISR although no node failed: leadership moves without a restart that truncates a log.

Source:  KAFKA-6361 and Kafka's preferred replica election; the specification's ControllerElectLeader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError

# How long a controller that took the request may take to write what it decided.
DECIDED_WITHIN_S: Final = 5.0


def inject(cluster: Cluster, name: str) -> str:
    """Ask the controller; the probe is a request that stands, or a state that the controller has written."""
    partition = cluster.named
    isr = partition.isr()
    if name not in isr:
        raise PreconditionError(f"elect {name}: not in the ISR {sorted(map(str, isr))}; expected a member of it")
    if partition.leader() == name:
        raise PreconditionError(f"elect {name}: it leads already; expected another to lead")
    return cluster.zookeeper_view.elect(*partition.place, name)


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """
    Note the partition's state; return what tells that it stays as it is, and that no request stands.

    A controller that takes the request writes the state afterwards.
    """
    del name
    partition, view = cluster.named, cluster.zookeeper_view
    before = partition.truth()

    def moved() -> bool:
        return cluster.cancelled or view.asked_to_elect() or partition.truth() != before

    def unchanged() -> str:
        seen = cluster.time.until(moved, DECIDED_WITHIN_S)
        return "" if seen else "no election is asked for, and no state was written; expected one of them"

    return unchanged


FAULT = Fault(
    name="elect",
    doc="ask the controller to elect an ISR member although no node failed",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.LEADER_MOVED,
    band=Band.MARK,
)
