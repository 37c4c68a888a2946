"""
What a world does of its own while its schedule is played, and how the history hears of it.

Before the first step there is no cluster yet, and after the last one it must be left alone, so that it heals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from harness.effect import Effect, Nature
from harness.events import Injection, Step
from harness.model import Op, OpType
from targets.broker.core.zookeeper import CONTROLLER, ZkDelete, broker_path
from targets.simulator.broker.world import World

# In place of a session: who writes to ZooKeeper by hand. And the faults of the schedules that do the same.
OPERATOR: Final = 0
DEPOSE: Final = "depose-controller"
EXPIRE: Final = "expire"


@dataclass(slots=True)
class PlayTime:
    """
    The time from the end of a schedule's first step to the end of its last one.

    Attributes:
        last_line: the line of the last step.
    """

    last_line: int
    begun: bool = False
    over: bool = False

    def begins(self, op: Op) -> bool:
        """Note an op of the history; return True for the one op with which the time begins."""
        if op.type is OpType.INVOKE or not isinstance(op.event, Step):
            return False
        self.over |= op.event.line == self.last_line
        first = not self.begun and op.type is OpType.OK
        self.begun |= first
        return first and not self.over


def note_fault(world: World, fault: str, name: str, effect: Effect) -> None:
    """Record a fault that no step of the schedule injects, as if one had."""
    about = Injection(name=fault, nodes=(name,), **Nature(effect=effect).as_fields())
    world.observe(about.PROCESS, OpType.INVOKE, about)
    world.observe(about.PROCESS, OpType.OK, replace(about, probe="drawn with the world"))


def depose_controller(world: World) -> None:
    """Remove the controller's node, as an operator does; do nothing if there is none."""
    node = world.zookeeper.tree.nodes.get(CONTROLLER)
    name = None if node is None else world.name_of(int(node.data))
    if name is not None:
        note_fault(world, DEPOSE, name, Effect.OFFICE_LOST)
        world.zookeeper.tree.write((ZkDelete(path=CONTROLLER),), OPERATOR)


def end_sessions(world: World, name: str) -> None:
    """End all sessions of a node, as its expiry does; do nothing if it has none."""
    for number in [each.number for each in world.zookeeper.sessions.values() if each.owner == name]:
        note_registration_end(world, name, number)
        world.zookeeper.expire(number)


def note_registration_end(world: World, name: str, session: int) -> None:
    """Record that a registration goes: the node may never hear that it was there, and need not report it."""
    if world.zookeeper.session_of(broker_path(world.ids[name])) == session:
        note_fault(world, EXPIRE, name, Effect.SESSION_ENDED)
