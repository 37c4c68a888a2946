"""
A broker whose write or flush failed ends in that very step, and says why: what it did next would rest on it.

What such a step answered, asked or sent is not performed, so that nobody is told of what is not there.
Source:  Kafka Replication Design V3, 4 (a disk error ends the broker); KAFKA-10778 (an append after an IO error).
"""

from __future__ import annotations

from collections.abc import Sequence

from targets.broker.core.events import Effect, Event
from targets.simulator.broker.world import World


class FailStop:
    """Watches the disks' errors, and which processes ended by themselves."""

    def __init__(self, world: World) -> None:
        """Start with what has failed and ended so far."""
        self._world = world
        self._seen = {name: self._state(name) for name in world.nodes}

    def wrong(self, name: str, event: Event, effects: Sequence[Effect]) -> str:
        """
        Return what is wrong after a step of a node, "" if nothing is.

        Args:
            effects: those that were performed.
        """
        state, before = self._state(name), self._seen[name]
        if state == before:
            return ""
        self._seen[name] = state
        node = self._world.nodes[name]
        met = node.disk.errors.met
        if state[0] == before[0]:
            return ""  # it ended for another reason
        if state[1] == before[1]:
            done = ", ".join(dict.fromkeys(type(effect).__name__ for effect in effects)) or "nothing"
            return f"{name} met {met} and goes on: its step after {type(event).__name__} had the effects {done}"
        if "OSError" not in node.ends[-1]:
            return f"{name} met {met}, and the reason of its end is {node.ends[-1]!r}"
        return ""

    def _state(self, name: str) -> tuple[int, int]:
        """Return how many of a node's writes and flushes have failed, and how many of its processes have ended."""
        node = self._world.nodes[name]
        return node.disk.errors.failed, len(node.ends)
