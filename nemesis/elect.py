"""
Elect a member of the ISR although no node failed: leadership moves without a restart that truncates a log.

Source:  KAFKA-6361 and Kafka's preferred replica election; the specification's ControllerElectLeader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError

# Where a system does not show requests, an election itself is the proof.
GRANTED_S_MAX: Final = 5.0


def inject(cluster: Cluster, name: str) -> str:
    """Ask the controller; the probe is a request that stands, or that was taken by now."""
    partition = cluster.named
    isr = partition.isr()
    if name not in isr:
        raise PreconditionError(f"elect {name}: not in the ISR {sorted(map(str, isr))}; expected a member of it")
    if partition.leader() == name:
        raise PreconditionError(f"elect {name}: it leads already; expected another to lead")
    return cluster.operator.elect(*partition.place, name)


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note the requests for elections so far; return what shows that there was no other, or that it leads not."""
    operator, partition = cluster.operator, cluster.named
    before = operator.elections_asked()

    def unchanged() -> str:
        if before is not None:
            return "no election was asked for; expected a request" if operator.elections_asked() == before else ""
        leads = cluster.time.until(lambda: cluster.cancelled or partition.leader() == name, GRANTED_S_MAX)
        return "" if leads else f"{partition.leader()} leads; expected {name} within {GRANTED_S_MAX:g} s"

    return unchanged


FAULT = Fault(
    name="elect",
    doc="ask the controller to elect an ISR member although no node failed",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.LEADER_MOVED,
    band=Band.MARK,
    needs=(Ability.ELECT,),
)
