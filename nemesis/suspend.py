"""
Suspend a node as a virtual machine is suspended: it stops, and after it wakes all its clocks have moved on.

A pause alone stops the process for as long as the run lets it; a machine that was suspended has missed any time at
once, and every timeout that it had set is over when it wakes.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster import clock_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.in_force import FaultInForce
from harness.effect import Band, Effect
from nemesis import pause, wake


def inject(cluster: Cluster, name: str) -> str:
    """Read the clocks, then pause the process; the probe is that the kernel or the engine reports it so."""
    before = clock_fault.look(cluster, name)
    stopped = cluster.host.pause(name)
    suspended = FaultInForce(fault="suspend", effect=Effect.PAUSED, node=name, handle=before.last)
    cluster.in_force.begin(suspended)
    return f"{before} before; {stopped}"


FAULT = Fault(
    name="suspend",
    doc="stop the process as a suspended virtual machine's: when it wakes, all its clocks have moved on",
    inject=inject,
    heal=wake.inject,
    probe=pause.probe,
    effect=Effect.PAUSED,
    band=Band.PAUSED,
    weight=0.0,
    by_itself=True,
    needs=(Ability.CLOCKS,),
)
