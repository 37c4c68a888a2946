"""
The metadata of a cluster of Fluss, as they stand in ZooKeeper, and who can be asked for what.

A coordinator has no request for an election. It elects when a server's registration goes: the first replica in
the order of the assignment that is alive and in the ISR. So a leader is elected by ending sessions; each server
registers again by itself within a second.

Source:  CoordinatorEventProcessor.processDeadTabletServer and ReplicaLeaderElection of Fluss 0.9.1; played.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from kazoo.protocol.states import ZnodeStat

from harness.cleanup.process import until
from harness.model import PreconditionError
from harness.target.metadata import Office, PartitionTruth, Place, TargetRun
from harness.target.operator import Operator
from targets.fluss import tables
from targets.zookeeper.metadata import ZooKeeperMetadata

# How often a table's data are written, how long its znode is empty before, and how long it takes to have leaders.
_WRITES_MAX: Final = 10
_EMPTY_S: Final = 0.1
_TAKEN_UP_S: Final = 4.0


class FlussView(ZooKeeperMetadata, Operator):
    """The view of one cluster; see harness/target/metadata.py and operator.py for every call."""

    def __init__(self, run: TargetRun) -> None:
        super().__init__(run)
        self._ids = run.ids

    # --- metadata --------------------------------------------------------------------------------------------
    def watch(self, places: Sequence[Place]) -> None:
        """Record every change of the buckets' states, the tables' replicas and the registrations from now on."""
        self.begin(places)
        for topic, bucket in places:
            self.watch_state((topic, bucket), tables.state_path(topic, bucket), self._truth_in)
        for topic in dict.fromkeys(topic for topic, _ in places):
            self.watch_placement(topic, tables.assignment_path(topic), tables.assignment)
        self.watch_members(tables.SERVERS)

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """Return the bucket's state in ZooKeeper now; None while there is none."""
        return self.state_at((topic, partition), tables.state_path(topic, partition), self._truth_in)

    def _truth_in(self, data: bytes, stat: ZnodeStat) -> PartitionTruth:
        return tables.state(data, stat.version, self.names)

    def assignment(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        """Return the nodes of each bucket of a table now; {} if there is no such table."""
        data = self.read(tables.assignment_path(topic))
        return self.by_name({} if data is None else tables.assignment(data))

    def incarnation(self, name: str) -> int:
        """Return the session that owns the server's registration now; 0 if it is not registered."""
        return self.member_at(self._registration(name))

    def controller(self) -> str | None:
        """Return None: the coordinator is no node of the cluster."""
        return None

    def office(self) -> Office | None:
        """Return None: the coordinator is no node of the cluster."""
        return None

    def _registration(self, name: str) -> str:
        return f"{tables.SERVERS}/{self._ids[name]}"

    # --- operator --------------------------------------------------------------------------------------------
    def create(self, topic: str, assignments: Sequence[Sequence[str]]) -> str:
        """Make a table by the znodes of one; return once the coordinator has given each bucket a leader."""
        now_ms = time.time_ns() // 1_000_000
        ids = [[self._ids[name] for name in names] for names in assignments]
        database, of_database = tables.database_znode(now_ms)
        *first, (table, of_table) = tables.znodes_of(topic, ids, now_ms)
        if self.read(database) is None:
            self._write(database, of_database)
        for path, data in first:
            self._write(path, data)

        def taken_up() -> bool:
            return all(self.truth(topic, bucket) is not None for bucket in range(len(ids)))

        for _ in range(_WRITES_MAX):
            if until(taken_up, _EMPTY_S):
                break
            self._write(table, of_table)
            if until(taken_up, _TAKEN_UP_S):
                break
            self._write(table, b"")
        else:
            raise PreconditionError(f"create {topic}: no leaders; expected a coordinator that takes up the table")
        return f"table {topic} with replicas {ids}"

    def _write(self, path: str, data: bytes) -> None:
        self.update(path, lambda _: data)

    def expire(self, name: str) -> str:
        """End the session that owns the server's registration; return what was observed, as one line."""
        try:
            return self.end_session(self._registration(name))
        except PreconditionError as error:
            raise PreconditionError(f"expire {name}: {error}") from error

    def elect(self, topic: str, partition: int, name: str) -> str:
        """End the sessions of all that the coordinator would elect before this one, the leader's last."""
        where = f"elect {name} for {topic}-{partition}"
        truth, order = self.truth(topic, partition), self.assignment(topic).get(partition, ())
        if truth is None or name not in order or name not in truth.in_sync or truth.leader in (None, name):
            raise PreconditionError(f"{where}: {truth}; expected it in the ISR, and another leader")
        before = [each for each in order[: order.index(name)] if each is not None and each != truth.leader]
        gone = [each for each in (*before, truth.leader) if each and self.incarnation(each)]
        if not gone or not self.incarnation(name):
            raise PreconditionError(f"{where}: {truth}; expected it registered, and somebody before it")
        for each in gone:
            self.expire(each)
        return f"sessions of {', '.join(gone)} ended, so that {name} is the first that may lead"
