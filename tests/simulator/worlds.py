"""Simulated worlds for tests: running brokers, a topic, and sinks for events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.events import Event
from harness.events.codec import key_of
from harness.model import OpType, Source
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import (
    CONTROLLER,
    PartitionState,
    broker_path,
    decode_state,
    leader_and_isr_path,
)
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import World
from tests.events.as_recorded import as_recorded

TOPIC = "log"
TP = TopicPartition(TOPIC, 0)
IDS = {"C": 3, "A": 1, "B": 2}
# Far more virtual time than any test needs.
WAIT_S = 30.0


@dataclass(slots=True)
class Ops:
    """A history sink that keeps every op."""

    found: list[tuple[Source, str, OpType, str, Mapping[str, Any]]] = field(default_factory=list)

    def record(self, process: str, type_: OpType, event: Event) -> None:
        self.record_line(key_of(event)[0], process, type_, *as_recorded(event))

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> None:
        self.found.append((source, process, type_, f, dict(value or {})))

    def of(self, f: str, process: str | None = None) -> list[Mapping[str, Any]]:
        """Return the values of the ops of that name, of that process only if one is given."""
        return [value for _, who, _, told, value in self.found if told == f and process in (None, who)]


def boot(world: World, *names: str) -> None:
    """Start the named nodes, or all, in order; wait until each is registered and there is a controller."""
    for name in names or tuple(world.nodes):
        world.nodes[name].boot()
        assert world.until(partial(registered, world, name), WAIT_S), f"{name} is not registered"
    assert world.until(lambda: CONTROLLER in world.zookeeper.tree.nodes, WAIT_S)


def registered(world: World, name: str) -> bool:
    """Return whether a node's registration belongs to its process's current session."""
    process = world.nodes[name].process
    owner = world.zookeeper.session_of(broker_path(world.ids[name]))
    return process is not None and owner == process.zookeeper.announced != 0


def state(world: World, tp: TopicPartition = TP) -> PartitionState:
    """Return the partition state in ZooKeeper; its leader is -2 if there is none yet."""
    node = world.zookeeper.tree.nodes.get(leader_and_isr_path(tp))
    if node is None:
        return PartitionState(leader=-2, leader_epoch=-1, isr=(), controller_epoch=-1, zk_version=-1)
    return decode_state(node)


def settled(world: World, tp: TopicPartition = TP) -> bool:
    """Return whether the partition's logs end at the same offset on all nodes that have one."""
    ends = {log.end_offset for node in world.nodes.values() if (log := node.disk.logs.get(tp)) is not None}
    return len(ends) == 1


def cluster(protocol: str = "kip101", *, replicas: tuple[str, ...] = ("A", "B"), **settings: Any) -> World:
    """Return a world of three brokers with C as the controller, and a topic on some of them."""
    world = World(**{"protocol": protocol, "ids": IDS, **settings})
    boot(world)
    SimClient(world).create_topic(TOPIC, [world.ids[name] for name in replicas])
    assert world.until(lambda: leads(world, replicas[0]) and all(has(world, name) for name in replicas), WAIT_S)
    return world


def has(world: World, name: str, tp: TopicPartition = TP) -> bool:
    """Return whether a node's broker has a replica of the partition."""
    broker = world.nodes[name].broker
    return broker is not None and tp in broker.state.replicas


def leads(world: World, name: str, tp: TopicPartition = TP) -> bool:
    """Return whether a node's broker acts as the leader."""
    broker = world.nodes[name].broker
    replica = None if broker is None else broker.state.replicas.get(tp)
    return replica is not None and replica.role.value == "leader"


class Steps:
    """Records every event that a node's core handles."""

    def __init__(self, world: World, name: str) -> None:
        self.events: list[Any] = []
        world.watchers.append(lambda who, event, _effects: self.events.append(event) if who == name else None)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def kill(world: World, name: str) -> None:
    """Kill a node's process."""
    world.nodes[name].kill()
