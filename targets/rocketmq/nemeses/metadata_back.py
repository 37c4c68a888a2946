"""Let a broker reach the services again from which it was cut."""

from __future__ import annotations

from harness.cluster import metadata_fault
from harness.cluster.fault import Fault
from harness.effect import ON_METADATA, Band, Effect

FAULT = Fault(
    name="metadata-back",
    doc="let the broker reach controllers and name servers again",
    inject=metadata_fault.end,
    heal=None,
    effect=Effect.NONE,
    heals=ON_METADATA,
    band=Band.MARK,
    weight=1.5,
)
