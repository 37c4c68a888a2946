"""
End a node's membership from outside, as an expiry does, whether the node runs or not.

The harness also ends the membership of dead nodes in this way instead of waiting for its timeout.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """End it, and wait until the metadata show so; the probe is that it is gone, or of another incarnation."""
    before = cluster.metadata.incarnation(name)
    seen = cluster.operator.expire(name)
    if before:
        cluster.await_(
            lambda: cluster.metadata.incarnation(name) != before, lambda: f"the end of {_of(name, before)}"
        )
    return seen


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note the incarnation; return what shows that it is still the same."""
    before = cluster.metadata.incarnation(name)

    def unchanged() -> str:
        still = cluster.metadata.incarnation(name) == before
        return f"{_of(name, before)} goes on; expected it ended" if still else ""

    return unchanged


def _of(name: str, incarnation: int) -> str:
    return f"{name}'s membership of incarnation 0x{incarnation:x}"


FAULT = Fault(
    name="expire",
    doc="end its membership from outside, as if it had not been heard of for too long",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.SESSION_ENDED,
    band=Band.MARK,
    needs=(Ability.EXPIRE,),
)
