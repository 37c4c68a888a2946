"""
Flip a byte of a batch in the segment that a node writes to, while it runs or while it is down.

A broker that was killed checks this segment when it starts again, and cuts its log there.
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
    return flip(cluster, name, Where.ACTIVE)


FAULT = Fault(
    name="bit-rot-active",
    doc="flip a byte of a record in the active segment; the node goes on",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.BIT_ROT,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.BIT_ROT,),
)
