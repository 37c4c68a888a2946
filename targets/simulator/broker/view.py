"""The metadata and the operator of a simulated world: what its ZooKeeper holds, past the links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.events import ControllerNamed, Event, Members
from harness.metadata.recorder import Recorder
from harness.model import OpType, PreconditionError
from harness.target.metadata import Metadata, Office, PartitionTruth, Place
from harness.target.operator import Operator
from targets.kafka_family.zookeeper.layout import Layout
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops

NO_SESSION = 0


class SimZooKeeperView(Metadata, Operator):
    """Read one world's ZooKeeper; see harness/target/metadata.py and operator.py for every call."""

    exact = True

    def __init__(self, world: World, layout: Layout) -> None:
        """View this world, whose broker has its state there by this layout."""
        self._world = world
        self._layout = layout
        self._tree = world.zookeeper.tree
        self._paths: dict[Place, str] = {}
        self._read: dict[str, tuple[ops.Node | None, PartitionTruth | None]] = {}

    def watch(self, places: Sequence[Place]) -> None:
        """Record every change of the partitions, the controller and the registrations from now on."""
        states = {self._layout.partition_path(*place): place for place in places}
        topics = {self._layout.topic_path(topic): topic for topic, _ in places}
        recorder = Recorder(self._record, places)
        controller = self._layout.controller_path()
        registrations = self._layout.registration_path(0).rpartition("/")[0] + "/"

        def changed(path: str) -> None:
            if path in states:
                if (truth := self.truth(*states[path])) is not None:
                    recorder.note(truth.event(*states[path]))
            elif path in topics:
                recorder.note_placed(topics[path], self.assignment(topics[path]))
            elif path == controller:
                recorder.note(ControllerNamed(node=self.controller()))
            elif path.startswith(registrations):
                recorder.note(Members(nodes=tuple(sorted(filter(self.incarnation, self._world.ids)))))

        self._tree.changed.append(changed)
        for path in (*topics, *states, controller, registrations):
            changed(path)

    def _record(self, event: Event) -> None:
        self._world.observe("metadata", OpType.INFO, event)

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """Return ZooKeeper's state of the partition; None when there is none yet."""
        path = self._paths.get((topic, partition))
        if path is None:
            path = self._paths[topic, partition] = self._layout.partition_path(topic, partition)
        node, read = self._tree.nodes.get(path), self._read.get(path)
        if read is None or node is not read[0]:
            # Cache path and decoding: waits read this after every step, and a node rarely changes.
            read = node, None if node is None else self._truth_in(node)
            self._read[path] = read
        return read[1]

    def _truth_in(self, node: ops.Node) -> PartitionTruth:
        return self._layout.partition_state(node.data, node.version).named(self._world.name_of)

    def assignment(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        """Return the nodes of each partition of a topic; {} if there is no such topic."""
        data = self.read(self._layout.topic_path(topic))
        found = {} if data is None else self._layout.assignment(data)
        return {partition: tuple(map(self._world.name_of, ids)) for partition, ids in found.items()}

    def controller(self) -> str | None:
        """Return the current controller."""
        node = self._tree.nodes.get(self._layout.controller_path())
        return None if node is None else self._world.name_of(self._layout.controller_id(node.data))

    def office(self) -> Office | None:
        """Return who made the controller's node, in which session, and by which transaction; None without it."""
        node = self._tree.nodes.get(self._layout.controller_path())
        return None if node is None else Office(node=self.controller(), member=node.owner, incarnation=node.czxid)

    def elections_asked(self) -> tuple[int, int]:
        """Return the newest transaction: a request is one, and nothing else is written at the same moment."""
        return self._tree.zxid, 0

    def incarnation(self, name: str) -> int:
        """Return the session that holds a node's registration, 0 when it is not registered."""
        return self._world.zookeeper.session_of(self._layout.registration_path(self._world.ids[name]))

    def expire(self, name: str) -> str:
        """End the session that holds a node's registration."""
        self._require_answer("expire")
        session = self.incarnation(name)
        if not session:
            raise PreconditionError(f"expire {name}: it is not registered; expected a registration to end")
        self._world.zookeeper.expire(session)
        return f"session 0x{session:x} closed, {self._layout.registration_path(self._world.ids[name])} gone"

    def depose(self) -> str:
        """Delete the controller's node, so that it loses office without failing."""
        self._require_answer("depose")
        path, holder = self._layout.controller_path(), self.controller()
        session = self._world.zookeeper.session_of(path)
        if not isinstance(self._tree.write((ops.Delete(path=path),), NO_SESSION), ops.Done):
            raise PreconditionError(f"depose: there is no {path}; expected a controller to depose")
        return f"{path} of {holder} deleted, which session 0x{session:x} had made"

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Request the election of an ISR member from the controller, without a failure."""
        self._require_answer("elect")
        return self._layout.elect(self, topic, partition, self._world.ids[name])

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        """Ask the controller to move a partition to these nodes; return what was asked."""
        self._require_answer("move")
        return self._layout.move(self, topic, partition, [self._world.ids[name] for name in names])

    def remove(self, topic: str, partitions: Sequence[int]) -> str:
        """Ask the controller to take these partitions, its highest, out of a topic; return what was asked."""
        self._require_answer("remove")
        return self._layout.remove(self, topic, partitions)

    def wanted(self, topic: str, partition: int) -> tuple[str | None, ...]:
        """Return the nodes that a partition is to be on: those asked for last, else those that it is on."""
        return tuple(map(self._world.name_of, self._layout.wanted(self, topic, partition)))

    def _require_answer(self, what: str) -> None:
        """Raise PreconditionError while ZooKeeper answers nobody, an operator neither."""
        if self._world.zookeeper.out or self._world.zookeeper.electing:
            raise PreconditionError(f"{what}: ZooKeeper answers nobody; expected one that serves")

    def close(self) -> None:
        """Do nothing: it has no connection."""

    # --- actions of ZooKeeper's operator (`Port` of the family's layout.py) -----------------------------
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
                self._tree.write((ops.Create(path=above),), NO_SESSION)
        self._tree.write((ops.Set(path=path, data=data, version=ops.ANY_VERSION),), NO_SESSION)
