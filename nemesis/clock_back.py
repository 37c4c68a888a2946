"""
Set a node's wall clock back, as an operator or a first answer of NTP does; its monotonic clock runs on.

By 100 s: longer than any lag limit, session or retry of a run, and far beyond what a busy machine could explain.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.clocks import Setting, Which
from harness.cluster import clock_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import clock_right
from nemesis.clock_forward import AHEAD_S


def inject(cluster: Cluster, name: str) -> str:
    """Set the clock; the probe is a wall clock that the process reads as behind, and a monotonic one as usual."""
    return clock_fault.wrong(cluster, name, FAULT.name, Setting(which=Which.WALL, ahead_s=-AHEAD_S))


FAULT = Fault(
    name="clock-back",
    doc="set the wall clock 100 s back",
    inject=inject,
    heal=clock_right.inject,
    probe=clock_fault.probe,
    effect=Effect.CLOCK_WRONG,
    band=Band.IMPAIRED,
    weight=0.0,
    by_itself=True,
    needs=(Ability.WALL_CLOCK,),
)
