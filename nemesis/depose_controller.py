"""
Depose a controller that has not failed; another node, or the same one again, becomes controller.

Source:  Kafka Replication Design V3, controller failover; KAFKA-6082.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError


def inject(cluster: Cluster, name: str) -> str:
    """Ask for it; the probe is that its office is gone, or was taken anew."""
    holder = cluster.metadata.controller()
    if holder != name:
        raise PreconditionError(f"depose-controller {name}: the controller is {holder}; expected {name}")
    return cluster.operator.depose()


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note the office that it holds; return what shows that it still does."""
    before = cluster.metadata.office()

    def unchanged() -> str:
        still = cluster.metadata.office() == before
        return f"{name} still holds the office that it had; expected it gone, or taken anew" if still else ""

    return unchanged


FAULT = Fault(
    name="depose-controller",
    doc="take its office from the controller, so that another node, or the same one again, becomes controller",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.OFFICE_LOST,
    band=Band.MARK,
    needs=(Ability.DEPOSE,),
)
