"""What operators do to ZooKeeper by hand, recorded as the faults of schedules that do the same."""

from __future__ import annotations

from typing import Final

from harness.effect import Effect
from targets.broker.core.zookeeper import CONTROLLER, broker_path
from targets.simulator.broker.world import World
from targets.simulator.engine.play_time import note_fault
from targets.simulator.zookeeper import ops

DEPOSE: Final = "depose-controller"
EXPIRE: Final = "expire"


def depose_controller(world: World) -> None:
    """Remove the controller's node, as an operator does; do nothing if there is none."""
    node = world.zookeeper.tree.nodes.get(CONTROLLER)
    name = None if node is None else world.name_of(int(node.data))
    if name is not None:
        note_fault(world, DEPOSE, name, Effect.OFFICE_LOST)
        world.zookeeper.tree.write((ops.Delete(path=CONTROLLER),), ops.OPERATOR)


def end_sessions(world: World, name: str) -> None:
    """End all sessions of a node, as its expiry does; do nothing if it has none."""
    for number in [each.number for each in world.zookeeper.sessions.values() if each.owner == name]:
        note_registration_end(world, name, number)
        world.zookeeper.expire(number)


def note_registration_end(world: World, name: str, session: int) -> None:
    """Record that a registration goes: the node may never hear that it was there, and need not report it."""
    if world.zookeeper.session_of(broker_path(world.ids[name])) == session:
        note_fault(world, EXPIRE, name, Effect.SESSION_ENDED)
