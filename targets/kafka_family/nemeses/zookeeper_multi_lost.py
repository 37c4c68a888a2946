"""
Lose ZooKeeper's answer to a multi, with its connection: the controller's write is done, and it cannot know that.

The controller is asked for an election, since it writes one as a multi. It must read again before it believes
anything: one that takes a lost answer for a refusal decides twice.
Source:  Apache ZooKeeper's programmer's guide, on connection loss; KAFKA-6082; KAFKA-5642 (multis of controllers).
"""

from __future__ import annotations

from typing import Final

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError
from harness.target.wire import METADATA, Word
from nemesis import elect

WITHIN_S: Final = 5.0


def inject(cluster: Cluster, name: str) -> str:
    """Hold the answer to its next multi, then drop it; the probe is that it was held, and who leads since."""
    partition, controller = cluster.named, cluster.metadata.controller()
    if controller != name:
        raise PreconditionError(f"zookeeper-multi-lost {name}: not the controller; expected {controller}")
    leader = partition.leader()
    others = sorted(str(member) for member in partition.isr() if member != leader)
    if not others:
        raise PreconditionError(f"zookeeper-multi-lost {name}: nobody else is in the ISR; expected one to elect")
    hold = cluster.fabric.hold(Word.METADATA_REQUEST, name, METADATA, "answer", multi=True)
    try:
        asked = cluster.operator.elect(*partition.place, others[0])
        held = cluster.time.until(lambda: cluster.cancelled or bool(hold.held), WITHIN_S)
    finally:
        # Whatever was held is lost with its connection; a hold of nothing just ends.
        cluster.fabric.drop(hold)
    if not held:
        raise PreconditionError(f"zookeeper-multi-lost {name}: no multi within {WITHIN_S:g} s ({asked})")
    # The write behind the one whose answer was lost may have been lost itself: then the controller decides again.
    cluster.time.until(lambda: cluster.cancelled or partition.leader() == others[0], WITHIN_S)
    return f"{asked}; the answer to a multi of {name} was lost with its connection; {partition.leader()} leads"


FAULT = Fault(
    name="zookeeper-multi-lost",
    doc="ask the controller for an election, and lose ZooKeeper's answer to its write, which is done",
    inject=inject,
    heal=None,
    watch=elect.watch,
    effect=Effect.ANSWER_LOST,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.ELECT,),
)
