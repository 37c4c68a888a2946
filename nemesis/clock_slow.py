"""
Have both clocks of a node run slowly, the monotonic one too: all its timeouts come late.

At a tenth of the usual rate, as on a virtual machine that gets no time; far from zero, since libfaketime also
stretches what a process waits in the kernel, and it would hang.
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

RATE: Final = 0.1


def inject(cluster: Cluster, name: str) -> str:
    """Set the rate; the probe is how fast the process reads both clocks to run."""
    return clock_fault.wrong(cluster, name, FAULT.name, Setting(which=Which.BOTH, rate=RATE))


FAULT = Fault(
    name="clock-slow",
    doc="both clocks run at a tenth of the rate: its timeouts come late",
    inject=inject,
    heal=clock_right.inject,
    probe=clock_fault.probe,
    effect=Effect.CLOCK_WRONG,
    band=Band.IMPAIRED,
    weight=0.0,
    by_itself=True,
    needs=(Ability.CLOCKS,),
)
