"""
Flip a byte of a batch that a node wrote long ago, in a segment that is closed.

A broker looks at it again only when somebody reads there; Apache Kafka sends it as it is, and leaves the checking
to followers and clients.
Source:  Bairavasundaram et al.: "An Analysis of Data Corruption in the Storage Stack", FAST 2008.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.bit_rot import Where
from harness.cluster.cluster import Cluster
from harness.cluster.damage import flip, watch
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Flip the byte; the probe is a reader of the files that finds the batch's checksum wrong."""
    return flip(cluster, name, Where.CLOSED)


FAULT = Fault(
    name="bit-rot-closed",
    doc="flip a byte of a record in the newest closed segment; the node goes on",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.BIT_ROT,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.BIT_ROT,),
)
