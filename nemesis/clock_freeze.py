"""
Freeze a node's wall clock: it stands still, while the process and its monotonic clock run on.

A wall clock that is stepped back all the time, or whose source is lost in a virtual machine, looks like that.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.clocks import Setting, Which
from harness.cluster import clock_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import clock_right


def inject(cluster: Cluster, name: str) -> str:
    """Freeze it; the probe is a wall clock that the process reads as still, and a monotonic one as usual."""
    return clock_fault.wrong(cluster, name, FAULT.name, Setting(which=Which.WALL, frozen=True))


FAULT = Fault(
    name="clock-freeze",
    doc="the wall clock stands still; the process and its monotonic clock run on",
    inject=inject,
    heal=clock_right.inject,
    probe=clock_fault.probe,
    effect=Effect.CLOCK_WRONG,
    band=Band.IMPAIRED,
    weight=0.0,
    by_itself=True,
    needs=(Ability.WALL_CLOCK,),
)
