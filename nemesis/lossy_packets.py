"""
Let what is sent to a broker arrive late, by as much as chance says, and lose one packet in ten.

TCP sends a lost packet again, so all of it arrives, in order, after more time than any wait was made for.
Source:  tc-netem(8); RFC 6298 (the time until a packet is sent again); Jepsen, `jepsen.net` (flaky!).
"""

from __future__ import annotations

from harness.cluster import packet_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.packets import LATE_MS, LOST_PERCENT, NEEDS, Packets
from nemesis import pass_packets


def inject(cluster: Cluster, name: str) -> str:
    """Impair them; the probe is a packet that the kernel counted on its way through."""
    return packet_fault.begin(cluster, "lossy-packets", name, Packets.LOSSY)


FAULT = Fault(
    name="lossy-packets",
    doc=f"delay packets that are sent to the node by up to {2 * LATE_MS} ms, and lose {LOST_PERCENT} in a hundred",
    inject=inject,
    heal=pass_packets.inject,
    probe=packet_fault.probe_of(Packets.LOSSY),
    effect=Effect.PACKETS_IMPAIRED,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(NEEDS[Packets.LOSSY],),
)
