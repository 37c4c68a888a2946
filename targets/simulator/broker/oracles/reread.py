"""
The states that a controller must have read again: those to whose ISR a broker had come that has just gone, and
those of partitions whose move waits for their ISR. A leader changes it, and tells no controller.

Source:  Kafka Replication Design V3, A.3.1 ("Read the current ISR of P") and F, 3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from targets.broker.core import reading, reassignment
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import AwaitRest, State
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.zookeeper import leader_and_isr_path
from targets.simulator.broker.coordination import state_in
from targets.simulator.broker.world import World


@dataclass(slots=True)
class Reread:
    """
    What one controller has read.

    Attributes:
        live: who was registered, the last time.
        zxid: ZooKeeper's, when the controller had not asked for the states yet.
    """

    live: Collection[int] = ()
    zxid: int = 0

    def wrong(self, world: World, about: Any, state: State, *, void: bool) -> Iterator[tuple[TopicPartition, str]]:
        """
        Yield the ISRs that a controller does not know after a reading.

        Those that were written since it asked need not be known to it, nor those about which it decides.

        Args:
            about: what was answered.
            void: whether that answer decides nothing.
        """
        controller, tree = state.controller, world.zookeeper.tree
        if isinstance(about, reading.AwaitNames):
            self.zxid = tree.zxid
        if void or not isinstance(about, reading.AwaitStates):
            return
        gone, self.live = set(self.live) - controller.live.keys(), frozenset(controller.live)
        moved = reassignment.begun(controller.moves, controller.assignments)
        if not gone and not moved:
            return
        decided = _under_way(state) | controller.uncertain.keys()
        for tp, known in controller.states.items():
            node = tree.nodes.get(leader_and_isr_path(tp))
            if node is None or node.mzxid > self.zxid or tp in decided:
                continue
            there = state_in(node)
            if there.topic_id != known.topic_id:
                continue
            if left := gone & set(there.isr) - set(known.isr):
                yield tp, f"does not know that broker {min(left)}, which it has read to be gone, is in {tp}'s ISR"
            elif tp in moved and there.isr != known.isr:
                yield tp, f"takes {known.isr} for the ISR of {tp}, whose move waits for it; it is {there.isr}"


def _under_way(state: State) -> set[TopicPartition]:
    """Return the partitions about which something is decided and not answered."""
    asked = (each.continuation if isinstance(each, AwaitRest) else each for each in state.pending.values())
    sent = {each.tp for sent in asked if isinstance(sent, AwaitStateWrites) for each in sent.decisions}
    return sent | {each.tp for each in state.controller.writes}
