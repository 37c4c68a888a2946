"""Let all packets of a broker pass again."""

from __future__ import annotations

from harness.cluster import packet_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Undo what was done to them; the probe is the kernel, which has no rule for them any more."""
    return packet_fault.end(cluster, name)


FAULT = Fault(
    name="pass-packets",
    doc="let all packets of the node pass again, and say how many were dropped, late or lost",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=frozenset({Effect.PACKETS_IMPAIRED}),
    band=Band.MARK,
    weight=0.0,
    of_services=True,
)
