"""
Set a node's wall clock to and fro, as two sources of time that disagree do; it ends ahead.

Six turns, each of which the process has read before the next, so that whatever it measures by its wall clock
meanwhile is wrong in both directions. By 30 s: beyond what a busy machine could explain, and within a session.
Source:  Jepsen, jepsen.nemesis.time (strobe-time!).
"""

from __future__ import annotations

from typing import Final

from harness.ability import Ability
from harness.clocks import RIGHT, Setting, Which
from harness.cluster import clock_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import clock_right

AHEAD_S: Final = 30.0
TURNS: Final = 6


def inject(cluster: Cluster, name: str) -> str:
    """Set the clock to and fro; the probe is that the process has read each turn, and is ahead after the last."""
    ahead = Setting(which=Which.WALL, ahead_s=AHEAD_S)
    turns = clock_fault.turns(cluster, name, [ahead, RIGHT[Which.WALL]] * (TURNS // 2))
    return f"{turns} turns read; {clock_fault.wrong(cluster, name, FAULT.name, ahead)}"


FAULT = Fault(
    name="clock-strobe",
    doc="set the wall clock 30 s forward and back, six times, and leave it forward",
    inject=inject,
    heal=clock_right.inject,
    probe=clock_fault.probe,
    effect=Effect.CLOCK_WRONG,
    band=Band.IMPAIRED,
    weight=0.0,
    by_itself=True,
    needs=(Ability.WALL_CLOCK,),
)
