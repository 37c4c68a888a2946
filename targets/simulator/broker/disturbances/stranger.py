"""
Another machine that is started by mistake with the id of a broker, while that broker is down.

It registers when the broker's last session has ended. The broker, when it starts, must find it and end (Kafka's
NODE_EXISTS); then the other machine is stopped, and the broker is started again, as a supervisor does.
Source:  Kafka's KafkaZkClient.registerBroker; V3 E.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.effect import Effect
from harness.model import Op
from targets.broker.core import events
from targets.broker.core.zookeeper import broker_path, encode_registration
from targets.simulator.broker.world import World, registration
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime, note_fault
from targets.simulator.zookeeper import ops

CALL: Final = "stranger"
NODE: Final = "stranger"
# How often one is there when a process starts, and for how long if the process does not find it.
SHARE: Final = 0.06
STAYS_NS: Final = 60 * NS_PER_MS


class Stranger:
    """The other machine of one wide world; there is one at a time, and all else is drawn as without it."""

    def __init__(self, world: World, seed: int, last_line: int) -> None:
        """Wait for the first step of a schedule whose last one is at this line."""
        self._world = world
        self._time = PlayTime(last_line)
        self._chance = Random(f"stranger {seed}")
        self._there = ""
        self._met: dict[str, None] = {}  # the nodes under whose ids it was
        world.watchers.append(self._on_step)
        world.on_call(CALL, self._leave)

    def listen(self, op: Op) -> None:
        """Start with the first step, and be gone after the last one."""
        self._time.begins(op)
        if self._time.over:
            self._leave()

    def _on_step(self, name: str, event: events.Event, effects: Sequence[events.Effect]) -> None:
        if isinstance(event, events.Start) and self._time.begun and not self._time.over and not self._there:
            if self._chance.random() < SHARE:
                self._come(name)
        elif name in self._met and any(isinstance(effect, events.Exit) for effect in effects):
            # The step that started it is still waiting for its registration. The other machine may be gone by now.
            note_fault(self._world, "kill", name, Effect.DOWN)
            self._leave()
            self._world.nodes[name].boot()

    def _come(self, name: str) -> None:
        """Register under the id of a node, none of whose sessions is left."""
        zookeeper = self._world.zookeeper
        for number in [each.number for each in zookeeper.sessions.values() if each.owner == name]:
            note_fault(self._world, "expire", name, Effect.SESSION_ENDED)
            zookeeper.expire(number)
        data = encode_registration(registration(NODE))
        zookeeper.tree.write((ops.Create(path=broker_path(self._world.ids[name]), data=data),), ops.OPERATOR)
        self._there = name
        self._met[name] = None
        self._world.clock.after(STAYS_NS, ("call", CALL))

    def _leave(self) -> None:
        path = broker_path(self._world.ids.get(self._there, -1))
        node = self._world.zookeeper.tree.nodes.get(path)
        if self._there and node is not None and node.owner == ops.OPERATOR:
            self._world.zookeeper.tree.write((ops.Delete(path=path),), ops.OPERATOR)
        self._there = ""
