"""The metadata and the operator of a cluster of Kafka's family: what stands in ZooKeeper, and is asked there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kazoo.protocol.states import ZnodeStat

from harness.events import ControllerNamed
from harness.model import PreconditionError
from harness.target.metadata import Office, PartitionTruth, Place, TargetRun
from harness.target.operator import Operator
from targets.kafka_family.zookeeper.layout import Layout
from targets.zookeeper.metadata import ZooKeeperMetadata
from targets.zookeeper.session import owner


class RealZooKeeperView(ZooKeeperMetadata, Operator):
    """
    The view of one cluster, below its chroot; see harness/target/metadata.py and operator.py for every call.

    Args:
        run: its services are ZooKeeper's servers.

    Raises:
        PreconditionError: ZooKeeper does not answer in time.
    """

    def __init__(self, *, run: TargetRun, layout: Layout) -> None:
        super().__init__(run)
        self._layout = layout
        self._ids = run.ids

    def watch(self, places: Sequence[Place]) -> None:
        """Record every change of the partitions' nodes, the controller's and the registrations from now on."""
        self.begin(places)
        for place in places:
            self.watch_state(place, self._layout.partition_path(*place), self._truth_in)
        for topic in dict.fromkeys(topic for topic, _ in places):
            self.watch_placement(topic, self._layout.topic_path(topic), self._layout.assignment)
        self.client.DataWatch(self._layout.controller_path(), self._controller_changed)
        self.watch_members(self._layout.registration_path(0).rpartition("/")[0])

    def _controller_changed(self, data: bytes | None, _stat: ZnodeStat | None) -> None:
        with self.observing():
            node = None if data is None else self.name_of(self._layout.controller_id(data))
            self.recorder.note(ControllerNamed(node=node))

    def _truth_in(self, data: bytes, stat: ZnodeStat) -> PartitionTruth:
        return self._layout.partition_state(data, stat.version).named(self.name_of)

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """Return the partition's state in ZooKeeper now; None while there is none."""
        return self.state_at((topic, partition), self._layout.partition_path(topic, partition), self._truth_in)

    def assignment(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        """Return the nodes of each partition of a topic now; {} if there is no such topic."""
        data = self.read(self._layout.topic_path(topic))
        return self.by_name({} if data is None else self._layout.assignment(data))

    def controller(self) -> str | None:
        """Return the current controller's node name; None if there is no controller."""
        office = self.office()
        return None if office is None else office.node

    def office(self) -> Office | None:
        """Return who made the controller's node, in which session, and by which transaction; None without it."""
        found = self.look(self._layout.controller_path())
        if found is None:
            return None
        node = self.name_of(self._layout.controller_id(found[0]))
        return Office(node=node, member=owner(found[1]), incarnation=int(found[1].czxid))

    def incarnation(self, name: str) -> int:
        """Return the session that owns the node's registration now; 0 if it is not registered."""
        return self.member_at(self._layout.registration_path(self._ids[name]))

    def elections_asked(self) -> tuple[int, int]:
        """Return how often children of the request's parent came or went, and what wrote the one that is there."""
        path = self._layout.elections_path()
        parent, request = self.look(path.rpartition("/")[0]), self.look(path)
        return 0 if parent is None else int(parent[1].cversion), 0 if request is None else int(request[1].mzxid)

    def expire(self, name: str) -> str:
        """End the session that owns the node's registration; return what was observed, as one line."""
        try:
            return self.end_session(self._layout.registration_path(self._ids[name]))
        except PreconditionError as error:
            raise PreconditionError(f"expire {name}: {error}") from error

    def depose(self) -> str:
        """Delete the controller's node, so that the controller loses its role without failing."""
        path = self._layout.controller_path()
        found = self.look(path)
        if found is None:
            raise PreconditionError(f"depose: there is no {path}; expected a controller to depose")
        holder = self.name_of(self._layout.controller_id(found[0]))
        self.delete(path)
        now = self.controller()
        return f"{path} of {holder} deleted; {'there is no controller' if now is None else f'{now} is controller'}"

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Ask the controller to make an ISR member the leader, although no broker failed; return the request."""
        return self._layout.elect(self, topic, partition, self._ids[name])

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        """Ask the controller to move a partition to these nodes; return what was asked."""
        return self._layout.move(self, topic, partition, [self._ids[name] for name in names])

    def remove(self, topic: str, partitions: Sequence[int]) -> str:
        """Ask the controller to take these partitions, its highest, out of a topic; return what was asked."""
        return self._layout.remove(self, topic, partitions)

    def wanted(self, topic: str, partition: int) -> tuple[str | None, ...]:
        """Return the nodes that a partition is to be on: those asked for last, else those that it is on."""
        return tuple(map(self.name_of, self._layout.wanted(self, topic, partition)))
