"""
Cut a node's power while its disk writes: some pages that were not flushed are there, and zeros in place of others.

Source:  Pillai et al.: "All File Systems Are Not Created Equal", OSDI 2014, for the states that a crash may leave;
docs/power-loss.md for how they are made here.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import kill, restart


def inject(cluster: Cluster, name: str) -> str:
    """Cut the power after some pages are written; the probe counts the bytes that are gone and those now zeros."""
    return cluster.take_down(name, cluster.host.torn_power_loss)


FAULT = Fault(
    name="power-loss-torn",
    doc="kill the process, and lose a part of what was not flushed: torn and zero-filled tails",
    inject=inject,
    heal=restart.inject,
    probe=kill.probe,
    effect=Effect.POWER_LOST,
    band=Band.DOWN,
    weight=0.0,
    needs=(Ability.TORN_POWER_LOSS,),
    of_services=True,
)
