"""
Wake a suspended node: its process runs, and both its clocks have moved on by 100 s more than the run waited.

100 s: longer than any lag limit, session or retry of a run.
"""

from __future__ import annotations

from typing import Final

from harness.ability import Ability
from harness.clocks import Reading, Setting, Which
from harness.cluster import clock_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError

AHEAD_S: Final = 100.0
# Less than that, by what two readings can be wrong.
SEEN_S_MIN: Final = 98.0


def inject(cluster: Cluster, name: str) -> str:
    """Move the clocks on, then resume; the probe is the time that the process reads as passed meanwhile."""
    before = _suspended(cluster, name)
    if before is None:
        raise PreconditionError(f"wake {name}: it is not suspended; expected a suspend before")
    rate = clock_fault.rate_of(cluster, name)
    cluster.host.set_clocks(name, Setting(which=Which.BOTH, ahead_s=AHEAD_S, rate=rate), before)
    runs = cluster.host.resume(name)
    now = clock_fault.look(cluster, name)
    least, most = clock_fault.moved_on_s(before, now.last, rate)
    if least < SEEN_S_MIN:
        raise PreconditionError(
            f"wake {name}: its clocks moved on by {least:.2f} s; expected {AHEAD_S:g} s ({now})"
        )
    return (
        f"{runs}; its monotonic clock moved on by {(least + most) / 2:.2f} s more than the run waited; {now} now"
    )


def why_not(cluster: Cluster, name: str) -> str:
    """Return that the node is not suspended; "" if it is."""
    return f"{name} is not suspended" if _suspended(cluster, name) is None else ""


def _suspended(cluster: Cluster, name: str) -> Reading | None:
    """Return what the process read of its clocks before it was suspended, None if it was not."""
    found = cluster.in_force.of(name, Effect.PAUSED)
    return found.handle if found is not None and isinstance(found.handle, Reading) else None


FAULT = Fault(
    name="wake",
    doc="resume a suspended process; both its clocks have moved on by 100 s",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=frozenset({Effect.PAUSED}),
    band=Band.MARK,
    weight=0.0,
    why_not=why_not,
    needs=(Ability.CLOCKS,),
)
