"""
Kill the process of a client of the workload while a request of it is under way.

The fault chooses the client: the one that was killed least often, the first of them by name. The node that a step
names is not touched. What the client had sent may still be done, or never; another process goes on for it.
Source:  Jepsen: a process that crashes leaves its operation open for ever; KIP-98, zombie producers.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError


def inject(cluster: Cluster, name: str) -> str:
    """Kill the process with SIGKILL; the probe is the signal that its parent was told, and counts."""
    if cluster.workload is None:
        raise PreconditionError(f"client-crash {name}: the run has no workload; expected clients at work")
    return cluster.workload.crash()


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note how many clients were killed so far; return what tells that no other was."""
    del name
    before = _kills(cluster)
    return lambda: "" if _kills(cluster) > before else "no client was killed; expected one"


def _kills(cluster: Cluster) -> int:
    return 0 if cluster.workload is None else cluster.workload.kills


FAULT = Fault(
    name="client-crash",
    doc="SIGKILL a client of the workload while a request of it is under way; the node is not touched",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.NONE,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.CLIENT_PROCESSES,),
)
