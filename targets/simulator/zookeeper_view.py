"""The ZooKeeper view of a simulated world, past the links; and the actions of ZooKeeper's operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.cluster.placements import Placements
from harness.events import ControllerNamed, Event, Members, OfPartition
from harness.model import OpType, PreconditionError
from harness.target.target import PartitionTruth, Target
from targets.broker.core.zookeeper import BROKER_IDS, ZkCreate, ZkDelete, ZkDone, ZkNode, ZkSet
from targets.simulator.tree import ANY_VERSION
from targets.simulator.world import World

NO_SESSION = 0


class SimZooKeeperView:
    """Read one world's ZooKeeper; see harness.cluster.interfaces.ZooKeeperView for every call."""

    def __init__(self, world: World, target: Target) -> None:
        """View this world, with a target that decodes its nodes."""
        self._world = world
        self._target = target
        self._tree = world.zookeeper.tree
        # The last event of each kind, and of each partition.
        self._seen: dict[tuple[type[Event], tuple[str, int] | None], Event] = {}
        self._paths: dict[tuple[str, int], str] = {}
        self._read: dict[str, tuple[ZkNode | None, PartitionTruth | None]] = {}

    def watch(self, places: Sequence[tuple[str, int]]) -> None:
        """Record every change of the partitions, the controller and the registrations from now on."""
        states = {self._target.partition_path(*place): place for place in places}
        topics = {self._target.topic_path(topic): topic for topic, _ in places}
        placements = Placements(places)
        controller = self._target.controller_path()

        def changed(path: str) -> None:
            if path in states:
                self._record_state(*states[path])
            elif path in topics:
                for event in placements.moved(topics[path], self.assignment(topics[path])):
                    self._record(event)
            elif path == controller:
                self._record(ControllerNamed(node=self.controller()))
            elif path.startswith(f"{BROKER_IDS}/"):
                self._record(Members(nodes=self._registered()))

        self._tree.changed.append(changed)
        for path in (*topics, *states, controller, f"{BROKER_IDS}/"):
            changed(path)

    def _record_state(self, topic: str, partition: int) -> None:
        truth = self.truth(topic, partition)
        if truth is not None:
            self._record(truth.event(topic, partition, self.name_of))

    def _registered(self) -> tuple[str, ...]:
        return tuple(sorted(name for name in self._world.ids if self.registered(name)))

    def _record(self, event: Event) -> None:
        about = type(event), (event.topic, event.partition) if isinstance(event, OfPartition) else None
        if self._seen.get(about) != event:
            self._seen[about] = event
            self._world.observe("metadata", OpType.INFO, event)

    def name_of(self, broker_id: int) -> str | None:
        """Return a node's name, None if no node has this id."""
        return self._world.name_of(broker_id)

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """Return ZooKeeper's state of the partition; None when there is none yet."""
        path = self._paths.get((topic, partition))
        if path is None:
            path = self._paths[topic, partition] = self._target.partition_path(topic, partition)
        node, read = self._tree.nodes.get(path), self._read.get(path)
        if read is None or node is not read[0]:
            # Cache path and decoding: waits read this after every step, and a node rarely changes.
            read = node, None if node is None else self._target.partition_truth(node.data, node.version)
            self._read[path] = read
        return read[1]

    def assignment(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        """Return the nodes of each partition of a topic; {} if there is no such topic."""
        data = self.read(self._target.topic_path(topic))
        found = {} if data is None else self._target.assignment(data)
        return {partition: tuple(map(self.name_of, ids)) for partition, ids in found.items()}

    def controller(self) -> str | None:
        """Return the current controller."""
        node = self._tree.nodes.get(self._target.controller_path())
        return None if node is None else self.name_of(self._target.controller_id(node.data))

    def office(self) -> int:
        """Return the session that holds the controller's node, 0 when there is none."""
        return self._world.zookeeper.session_of(self._target.controller_path())

    def office_made(self) -> int:
        """Return the transaction that made the controller's node, 0 when there is none."""
        node = self._tree.nodes.get(self._target.controller_path())
        return 0 if node is None else node.czxid

    def elections_asked(self) -> tuple[int, int]:
        """Return the newest transaction: a request is one, and nothing else is written at the same moment."""
        return self._tree.zxid, 0

    def registered(self, name: str) -> int:
        """Return the session that holds a node's registration, 0 when it is not registered."""
        return self._world.zookeeper.session_of(self._target.registration_path(self._world.ids[name]))

    def expire(self, name: str) -> str:
        """End the session that holds a node's registration."""
        self._require_answer("expire")
        session = self.registered(name)
        if not session:
            raise PreconditionError(f"expire {name}: it is not registered; expected a registration to end")
        self._world.zookeeper.expire(session)
        return f"session 0x{session:x} closed, {self._target.registration_path(self._world.ids[name])} gone"

    def depose(self) -> str:
        """Delete the controller's node, so that it loses office without failing."""
        self._require_answer("depose")
        path, holder = self._target.controller_path(), self.controller()
        session = self._world.zookeeper.session_of(path)
        if not isinstance(self._tree.write((ZkDelete(path=path),), NO_SESSION), ZkDone):
            raise PreconditionError(f"depose: there is no {path}; expected a controller to depose")
        return f"{path} of {holder} deleted, which session 0x{session:x} had made"

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Request the election of an ISR member from the controller, without a failure."""
        self._require_answer("elect")
        return self._target.elect(self, topic, partition, self._world.ids[name])

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        """Ask the controller to move a partition to these nodes; return what was asked."""
        self._require_answer("move")
        return self._target.move(self, topic, partition, [self._world.ids[name] for name in names])

    def remove(self, topic: str, partitions: Sequence[int]) -> str:
        """Ask the controller to take these partitions, its highest, out of a topic; return what was asked."""
        self._require_answer("remove")
        return self._target.remove(self, topic, partitions)

    def wanted(self, topic: str, partition: int) -> tuple[str | None, ...]:
        """Return the nodes that a partition is to be on: those asked for last, else those that it is on."""
        return tuple(map(self.name_of, self._target.wanted(self, topic, partition)))

    def _require_answer(self, what: str) -> None:
        """Raise PreconditionError while ZooKeeper answers nobody, an operator neither."""
        if self._world.zookeeper.out or self._world.zookeeper.electing:
            raise PreconditionError(f"{what}: ZooKeeper answers nobody; expected one that serves")

    def close(self) -> None:
        """Do nothing: it has no connection."""

    # --- actions of ZooKeeper's operator (harness.target.target.ZooKeeperPort) -----------------------------
    def read(self, path: str) -> bytes | None:
        """Return a node's data, None when there is no such node."""
        node = self._tree.nodes.get(path)
        return None if node is None else node.data

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        """Write what `change` makes of a node's data; nothing else happens in between."""
        node = self._tree.nodes.get(path)
        data = change(None if node is None else node.data)
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            above = "/" + "/".join(parts[:depth])
            if above not in self._tree.nodes:
                self._tree.write((ZkCreate(path=above),), NO_SESSION)
        self._tree.write((ZkSet(path=path, data=data, version=ANY_VERSION),), NO_SESSION)
