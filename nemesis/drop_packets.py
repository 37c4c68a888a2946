"""
Drop every packet from and to a broker's listeners, in the kernel: no connection ends, and none goes on.

Who waits for the broker learns nothing but by a timeout of its own. What the broker itself asks of others passes,
and so does ZooKeeper.
Source:  Jepsen, `jepsen.net/iptables` (drop!); iptables(8).
"""

from __future__ import annotations

from harness.cluster import packet_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.packets import NEEDS, Packets
from nemesis import pass_packets


def inject(cluster: Cluster, name: str) -> str:
    """Drop them; the probe is a packet that the kernel counted as dropped."""
    return packet_fault.begin(cluster, "drop-packets", name, Packets.DROPPED)


FAULT = Fault(
    name="drop-packets",
    doc="drop every packet from and to the node's listeners, so that its connections go silent",
    inject=inject,
    heal=pass_packets.inject,
    probe=packet_fault.probe_of(Packets.DROPPED),
    effect=Effect.PACKETS_IMPAIRED,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(NEEDS[Packets.DROPPED],),
    of_services=True,
)
