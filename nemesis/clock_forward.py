"""
Set a node's wall clock forward, as an operator or a first answer of NTP does; its monotonic clock runs on.

By 100 s: longer than any lag limit, session or retry of a run, and far beyond what a busy machine could explain.
"""

from __future__ import annotations

from typing import Final

from harness.ability import Ability
from harness.clocks import Setting, Which
from harness.cluster import clock_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import clock_right

AHEAD_S: Final = 100.0


def inject(cluster: Cluster, name: str) -> str:
    """Set the clock; the probe is a wall clock that the process reads as ahead, and a monotonic one as usual."""
    return clock_fault.wrong(cluster, name, FAULT.name, Setting(which=Which.WALL, ahead_s=AHEAD_S))


FAULT = Fault(
    name="clock-forward",
    doc="set the wall clock 100 s forward",
    inject=inject,
    heal=clock_right.inject,
    probe=clock_fault.probe,
    effect=Effect.CLOCK_WRONG,
    band=Band.IMPAIRED,
    weight=0.0,
    by_itself=True,
    needs=(Ability.WALL_CLOCK,),
)
