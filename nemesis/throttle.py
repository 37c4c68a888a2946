"""
Let what is sent to a broker arrive at a low rate: it and who writes to it fall behind, and nothing is lost.

Source:  tc-tbf(8), the token bucket filter; Jepsen, `jepsen.net` (slow!).
"""

from __future__ import annotations

from harness.cluster import packet_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.packets import KBIT_PER_S, NEEDS, Packets
from nemesis import pass_packets


def inject(cluster: Cluster, name: str) -> str:
    """Throttle them; the probe is a packet that the kernel counted as one that had to wait."""
    return packet_fault.begin(cluster, "throttle", name, Packets.THROTTLED)


FAULT = Fault(
    name="throttle",
    doc=f"let the packets that are sent to the node arrive at {KBIT_PER_S} kbit/s",
    inject=inject,
    heal=pass_packets.inject,
    probe=packet_fault.probe_of(Packets.THROTTLED),
    effect=Effect.PACKETS_IMPAIRED,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(NEEDS[Packets.THROTTLED],),
)
