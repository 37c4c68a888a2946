"""
Faults of nodes' connections to ZooKeeper, drawn by a world's own seed.

One loses a node's next write with its connection, performed or not, and the node cannot know which; or it resets
the connection between two requests. Faults begin once the cluster is set up, within one second.
Source:  Apache ZooKeeper's programmer's guide: after connection loss a client cannot know if a write was done.
"""

from __future__ import annotations

from typing import Any, Final

from harness.events import Step
from harness.fabric.core.rules import METADATA
from harness.model import Op, OpType
from targets.simulator.engine.clock import NS_PER_S
from targets.simulator.engine.simulation import Simulation
from targets.simulator.zookeeper.server import ZooKeeper

FAULTY_SHARE: Final = 0.4
FAULTS_MAX: Final = 5
CALL: Final = "zookeeper faults"


class ZooKeeperFaults:
    """
    Faults of one world's connections to ZooKeeper, if its seed draws any.

    Attributes:
        asked: the number of faults tried.
        bit: the number that took effect: a write that was lost, a connection that was reset.
    """

    def __init__(self, world: Simulation[Any], zookeeper: ZooKeeper) -> None:
        """Wait for the set-up to end: `listen` starts the faults at the history's first step."""
        self.asked = 0
        self._resets = 0
        self._writes = 0
        self._begun = False
        self._world = world
        self._zookeeper = zookeeper
        world.on_call(CALL, self._inject)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        if not self._begun and op.type is OpType.OK and isinstance(op.event, Step):
            self._begun = True
            self._plan()

    def _plan(self) -> None:
        chance, clock = self._world.clock.random, self._world.clock
        if chance.random() < FAULTY_SHARE:
            for _ in range(chance.randint(1, FAULTS_MAX)):
                clock.after(int(chance.random() * NS_PER_S), ("call", CALL))

    @property
    def bit(self) -> int:
        """Return how many took effect so far."""
        return self._resets + self._writes - len(self._zookeeper.losing)

    def _inject(self) -> None:
        chance, world = self._world.clock.random, self._world
        name = chance.choice(list(world.nodes))
        self.asked += 1
        if chance.random() < 0.7:
            if name not in self._zookeeper.losing:
                self._writes += 1
            self._zookeeper.losing[name] = chance.random() < 0.5
        elif world.links.close_links(name, METADATA):
            self._resets += 1
