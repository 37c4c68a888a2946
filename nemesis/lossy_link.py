"""
Let the links of a broker lose one frame in ten, each with its connection.

TCP sends a lost packet again, so a network that loses frames is seen by brokers as connections that are reset with
what was under way on them: a request that did not arrive, or an answer to one that was done.
Source:  RFC 9293, 3.8.1 (retransmission); docs/architecture.md, Links (cut).
"""

from __future__ import annotations

from typing import Final

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import LinkRules, around, begin, probe, refuse_twice
from harness.effect import Band, Effect
from nemesis import reconnect

LOST_OF_1000: Final = 100


def inject(cluster: Cluster, name: str) -> str:
    """Lose a tenth of the frames, by the node's id; the probe is a frame that was lost."""
    refuse_twice(cluster, "lossy-link", name)
    cut = cluster.fabric.cut_links(around(cluster, name), of_1000=LOST_OF_1000, seed=cluster.ids[name])
    return begin(cluster, "lossy-link", Effect.LINKS_IMPAIRED, name, LinkRules(word="lost", rules=(cut,)))


FAULT = Fault(
    name="lossy-link",
    doc="lose one in ten frames that the node and other brokers send each other, each with its connection",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.LINKS_IMPAIRED,
    band=Band.IMPAIRED,
    weight=0.0,
)
