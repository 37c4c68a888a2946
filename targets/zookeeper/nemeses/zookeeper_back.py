"""
Undo what parts a broker from ZooKeeper: its link is healed; servers that serve nobody serve all again.

Another broker that is cut from ZooKeeper by itself stays so.
"""

from __future__ import annotations

from harness.cluster import metadata_fault
from harness.cluster.fault import Fault
from harness.effect import ON_METADATA, Band, Effect

FAULT = Fault(
    name="zookeeper-back",
    doc="let ZooKeeper's servers serve again, and heal the link of the node if it was cut from them",
    inject=metadata_fault.end,
    heal=None,
    effect=Effect.NONE,
    heals=ON_METADATA,
    band=Band.MARK,
    weight=0.0,
)
