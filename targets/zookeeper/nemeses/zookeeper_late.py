"""
Let ZooKeeper's answers and watches reach a broker late, while its requests arrive at once.

The broker acts on what was true a while ago: it may write with a version that is old, and must see that.
Source:  Apache ZooKeeper's programmer's guide: "Consistency Guarantees" (timeliness is bounded, not immediate).
"""

from __future__ import annotations

from typing import Final

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import LinkRules, impose, probe, refuse_twice
from harness.effect import Band, Effect
from harness.target.wire import METADATA, Word
from nemesis import reconnect

LATE_S: Final = 0.3


def inject(cluster: Cluster, name: str) -> str:
    """Delay ZooKeeper's answers to the node; the probe is the fabric, which has the rule in force."""
    refuse_twice(cluster, "zookeeper-late", name)
    delay = cluster.fabric.delay(Word.METADATA_REQUEST, name, METADATA, "answer", LATE_S)
    rules = LinkRules(word="late", rules=(delay,))
    return impose(cluster, "zookeeper-late", Effect.LINKS_IMPAIRED, name, rules)


FAULT = Fault(
    name="zookeeper-late",
    doc="deliver 0.3 s later what ZooKeeper tells the node",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.LINKS_IMPAIRED,
    band=Band.IMPAIRED,
    weight=0.0,
)
