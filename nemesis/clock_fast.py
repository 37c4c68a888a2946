"""
Have both clocks of a node run fast, the monotonic one too: all its timeouts come early.

Ten times as fast: what it waits a second for is over in a tenth, which no scheduling delay can hide. A clock that
is off by so much is a broken one, or that of a virtual machine that catches up.
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

RATE: Final = 10.0


def inject(cluster: Cluster, name: str) -> str:
    """Set the rate; the probe is how fast the process reads both clocks to run."""
    return clock_fault.wrong(cluster, name, FAULT.name, Setting(which=Which.BOTH, rate=RATE))


FAULT = Fault(
    name="clock-fast",
    doc="both clocks run ten times as fast: its timeouts come early",
    inject=inject,
    heal=clock_right.inject,
    probe=clock_fault.probe,
    effect=Effect.CLOCK_WRONG,
    band=Band.IMPAIRED,
    weight=0.0,
    by_itself=True,
    needs=(Ability.CLOCKS,),
)
