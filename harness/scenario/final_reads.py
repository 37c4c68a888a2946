"""
Reads what is left at the end of a run: each partition as a client sees it, then each replica's log from its files.

Where a running node's files lag behind what it holds, or change by themselves, all nodes are killed before their
logs are read; a step of the history says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from harness.cluster.cluster import Cluster
from harness.cluster.known_epochs import KnownEpochs
from harness.cluster.partition import Partition
from harness.events import SnapshotFailed, Step
from harness.logs.replica import BatchSeen, snapshot_events
from harness.model import FencepostError, OpType
from harness.target.clients import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReads:
    """
    The reads of one run.

    Attributes:
        unhealed: whether a fault is still in force: then a client's read proves nothing about the cluster.
        epochs: what was known of records' epochs before.
        recorded: records a step and does it.
    """

    cluster: Cluster
    client: Client
    unhealed: bool
    epochs: KnownEpochs
    recorded: Callable[[Step, Callable[[], None]], None]

    def read(self) -> None:
        """Read each partition through the client if it has a leader, and each replica's log files."""
        partitions, moving = self.cluster.partitions, self.cluster.traits.files_move
        for partition in partitions:
            self._ask(partition)
            if not moving:
                self._logs_of(partition)
        if moving:
            self._kill()
            for partition in partitions:
                self._logs_of(partition)
        for partition in self.cluster.churned.partitions:
            for name in self.cluster.churned.nodes:
                # Where there is none, none is due: the run has waited for those that are.
                self._read_log(partition, name, may_lack=True)

    def _ask(self, partition: Partition) -> None:
        leader = partition.leader()
        if leader is not None and partition.leads(leader) and not self.unhealed:
            with suppress(FencepostError):  # the history has the failed read, and checkers see it there
                self.client.read_all(*partition.place)

    def _kill(self) -> None:
        cluster = self.cluster
        up = [name for name in cluster.ids if name not in cluster.down]

        def kill() -> None:
            cluster.time.together(cluster.host.kill, up)

        with suppress(FencepostError):  # what is read then is what is there
            self.recorded(Step(line=0, text=f"kill {' '.join(up)}, to read their logs", narrative=""), kill)

    def _logs_of(self, partition: Partition) -> None:
        for name in partition.replicas:
            self._read_log(partition, name)

    def _read_log(self, partition: Partition, name: str, *, may_lack: bool = False) -> None:
        """Read one replica's log files; record that there are none, unless the node may lack them."""
        topic, number = partition.place
        try:
            log, problem, absent = partition.log(name), "no log directory", True
        except (FencepostError, OSError) as error:
            log, problem, absent, may_lack = None, str(error), False, False
        if log is None and may_lack:
            return
        if log is None:
            failed = SnapshotFailed(topic=topic, partition=number, problems=(problem,), absent=absent)
            self.cluster.record(name, OpType.FAIL, failed)
            return
        second: tuple[str, Sequence[BatchSeen]] = "", ()
        with suppress(FencepostError, OSError):  # then there is nothing to compare the log with
            second = partition.second_store(name)
        for event in snapshot_events(self.epochs.filled(log), second):
            self.cluster.record(name, OpType.OK, event)
