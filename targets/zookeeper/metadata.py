"""
The metadata of a system that keeps them in ZooKeeper: what its znodes hold, as events, by watches and by reads.

A target derives from it, and says which znodes there are and what stands in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from kazoo.protocol.states import ZnodeStat

from harness.events import Members
from harness.metadata.recorder import Recorder
from harness.model import TargetError
from harness.target.metadata import Metadata, PartitionTruth, Place, TargetRun
from targets.zookeeper.session import ZooKeeperSession, owner

# What reads a partition's state, and a topic's replicas by their numbers, in a znode's data.
ReadTruth = Callable[[bytes, ZnodeStat], PartitionTruth]
ReadPlacement = Callable[[bytes], Mapping[int, tuple[int, ...]]]


class ZooKeeperMetadata(ZooKeeperSession, Metadata):
    """The metadata of one run; see harness/target/metadata.py for every call of a target's."""

    exact = True

    def __init__(self, run: TargetRun) -> None:
        super().__init__(run)
        self.names = {number: name for name, number in run.ids.items()}
        self.recorder = Recorder(run.record, ())
        # Of each watched partition, the transaction that wrote the newest state recorded.
        self._newest: dict[Place, int] = {}

    def begin(self, places: Sequence[Place]) -> None:
        """Be about these partitions from now on."""
        self.recorder = Recorder(self.run.record, places)
        self._newest = dict.fromkeys(places, 0)

    # Each watch uses the data that it passes: another read could fail while ZooKeeper is being stopped.
    def watch_state(self, place: Place, path: str, read: ReadTruth) -> None:
        """Record a partition's state in a znode now, and every change of it."""

        def changed(data: bytes | None, stat: ZnodeStat | None) -> None:
            with self.observing():
                if data is not None and stat is not None:
                    self.record_state(place, read(data, stat), stat)

        self.client.DataWatch(path, changed)

    def watch_placement(self, topic: str, path: str, read: ReadPlacement) -> None:
        """Record a topic's replicas in a znode now, and every change of them."""

        def changed(data: bytes | None, _stat: ZnodeStat | None) -> None:
            with self.observing():
                found: Mapping[int, tuple[int, ...]] = {}
                with suppress(ValueError, TargetError):  # what else somebody wrote there is for nodes to name
                    found = read(data or b"")
                self.recorder.note_placed(topic, self.by_name(found))

        self.client.DataWatch(path, changed)

    def watch_members(self, parent: str) -> None:
        """Record the nodes whose numbers are the names of a znode's children now, and every change of them."""

        def changed(children: list[str]) -> None:
            with self.observing():
                names = (self.name_of(int(child)) for child in children)
                self.recorder.note(Members(nodes=tuple(sorted(names, key=str))))

        self.client.ensure_path(parent)
        self.client.ChildrenWatch(parent, changed)

    def record_state(self, place: Place, truth: PartitionTruth, stat: ZnodeStat) -> None:
        """Record a partition's state, from a watch or from a read, unless a newer one is recorded."""
        with self.lock:
            if place in self._newest and stat.mzxid >= self._newest[place]:
                self._newest[place] = stat.mzxid
                self.recorder.note(truth.event(*place))

    def state_at(self, place: Place, path: str, read: ReadTruth) -> PartitionTruth | None:
        """
        Return the partition's state in a znode now; None while there is none.

        A state that the run acts on is in the history before that, though its watch may fire later.
        """
        found = self.look(path)
        if found is None:
            return None
        truth = read(*found)
        self.record_state(place, truth, found[1])
        return truth

    def member_at(self, path: str) -> int:
        """Return the session that owns a node's registration now; 0 if it is not registered."""
        found = self.look(path)
        return 0 if found is None else owner(found[1])

    def name_of(self, number: int) -> str | None:
        """Return the node of a number; None for a stranger's."""
        return self.names.get(number)

    def by_name(self, found: Mapping[int, tuple[int, ...]]) -> Mapping[int, tuple[str | None, ...]]:
        """Return partition -> names of its nodes."""
        return {partition: tuple(map(self.name_of, ids)) for partition, ids in found.items()}
