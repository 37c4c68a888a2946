"""
Faults of packets: what the kernel does to those of one node, below the frames that the fabric sees.

Nothing is reset by them: a connection goes silent or slow, as in a network that loses or queues, and each side
must find out by its own timeouts. A fault without a packet has no effect, so it waits until one was hit,
and is undone if none is. The kernel's own count is the evidence.
Source:  RFC 9293, 3.8.1 (retransmission); Jepsen, `jepsen.net` (drop!, slow!, flaky!).
"""

from __future__ import annotations

from collections.abc import Callable

from harness.cluster.cluster import Cluster
from harness.cluster.in_force import FaultInForce
from harness.cluster.link_fault import BITES_WITHIN_S, refuse_twice
from harness.effect import Effect
from harness.model import PreconditionError
from harness.packets import Packets


def begin(cluster: Cluster, fault: str, node: str, how: Packets) -> str:
    """
    Let this become of the node's packets, and return how many it was done to so far, one at least.

    Raises:
        PreconditionError: the fault is in force on the node already, or no packet was hit in time.
    """
    refuse_twice(cluster, fault, node)
    machines = cluster.host
    machines.impair_packets(node, how)
    found = FaultInForce(fault=fault, effect=Effect.PACKETS_IMPAIRED, node=node, handle=how)
    cluster.in_force.begin(found)
    if not cluster.time.until(lambda: cluster.cancelled or machines.packets_met(node, how) > 0, BITES_WITHIN_S):
        machines.pass_packets(node, how)
        cluster.in_force.remove(found)
        raise PreconditionError(
            f"{fault} {node}: no packet was {how} within {BITES_WITHIN_S:g} s; expected one at least"
        )
    return evidence(cluster, node, how)


def probe_of(how: Packets) -> Callable[[Cluster, str], str]:
    """Return what returns "" while this becomes of a node's packets, as the kernel says, else that they pass."""

    def probe(cluster: Cluster, node: str) -> str:
        return "" if cluster.host.packets_impaired(node, how) else f"its packets pass; expected some to be {how}"

    return probe


def end(cluster: Cluster, node: str) -> str:
    """
    Let all packets of a node pass again; return how many each fault has hit.

    Raises:
        PreconditionError: nothing becomes of them.
    """
    found = [each for each in cluster.in_force if (each.node, each.effect) == (node, Effect.PACKETS_IMPAIRED)]
    if not found:
        raise PreconditionError(f"pass-packets {node}: all its packets pass; expected a fault of them")
    return "; ".join(_lift(cluster, each) for each in found)


def evidence(cluster: Cluster, node: str, how: Packets) -> str:
    """Return how many packets were hit: `packets dropped: 12`."""
    return f"packets {how}: {cluster.host.packets_met(node, how)}"


def _lift(cluster: Cluster, found: FaultInForce) -> str:
    assert isinstance(found.handle, Packets), f"{found.fault} is of packets"
    seen = evidence(cluster, found.node, found.handle)
    cluster.host.pass_packets(found.node, found.handle)
    return f"{found.fault}: {seen}"
