"""
The epochs that second stores had of records while a run was played.

Where a record's epoch stands beside the log, in a store that is compacted sooner than the log, the end of a run is
too late to read it. So the stores are read meanwhile, between two steps, one replica of each partition in turn.
What the last reading knows of a record counts; the rest is filled in from what was read before.

Source:  nats-server 2.15.3, raft.go, InstallSnapshot: a Raft log is compacted, and the stream's store is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from harness import limits
from harness.cluster.cluster import Cluster
from harness.cluster.partition import Partition
from harness.events.log import WITH_EPOCHS
from harness.logs.record import NO_EPOCH
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.model import FencepostError
from harness.target.traits import Epochs
from harness.workload.plan import Place

# A look takes a second for some ten thousand records: the run is to have ten times as long without one.
_EVERY_S: Final = 5.0
_SHARE: Final = 10
# Of all partitions together; some 80 MB.
RECORDS_MAX: Final = 300_000


@dataclass(slots=True, kw_only=True)
class KnownEpochs:
    """What one run has read of its second stores so far."""

    cluster: Cluster
    clock: Callable[[], float] = time.monotonic
    # Offset and digest -> the epoch; NO_EPOCH if stores had two.
    _known: dict[Place, dict[tuple[int, str], int]] = field(default_factory=dict)
    _next_s: float = 0.0
    _turn: int = 0

    @property
    def is_full(self) -> bool:
        """Whether more was found than is kept."""
        return sum(map(len, self._known.values())) >= RECORDS_MAX

    def look(self) -> None:
        """
        Read the second store of one replica of each partition, unless that was done a moment ago.

        No step may go on meanwhile: a store that is open keeps its disk from being taken away.
        """
        cluster = self.cluster
        if cluster.traits.epochs is not Epochs.BESIDE or self.is_full:
            return
        began = self.clock()
        if began < self._next_s:
            return
        hit = {found.node for found in cluster.in_force}
        for partition in cluster.partitions:
            if sound := [name for name in partition.replicas if name not in hit]:
                self._read(partition, sound[self._turn % len(sound)])
        self._turn += 1
        ended = self.clock()
        self._next_s = ended + max(_EVERY_S, _SHARE * (ended - began))

    def _read(self, partition: Partition, name: str) -> None:
        try:
            _, batches = partition.second_store(name)
        except (FencepostError, OSError):
            return  # another one is read the next time
        known = self._known.setdefault(partition.place, {})
        for batch in batches:
            for offset, digest, _ in batch.records:
                if batch.epoch != known.setdefault((offset, digest), batch.epoch):
                    known[offset, digest] = NO_EPOCH

    def filled(self, log: ReplicaLog) -> ReplicaLog:
        """Return a log in which each record that has no epoch has the one that was known of it, if one was."""
        known = self._known.get(Place(log.topic, log.partition))
        if not known or all(batch.epoch >= 0 for batch in log.batches):
            return log
        batches = tuple(_filled(batch, known) for batch in log.batches)
        return replace(log, batches=batches, epochs=_starts(batches) or log.epochs)


def _filled(batch: BatchSeen, known: dict[tuple[int, str], int]) -> BatchSeen:
    if batch.epoch >= 0 or len(batch.records) != 1:
        return batch
    offset, digest, _ = batch.records[0]
    epoch = known.get((offset, digest), NO_EPOCH)
    return batch if epoch < 0 else replace(batch, epoch=epoch, magic=WITH_EPOCHS)


def _starts(batches: Sequence[BatchSeen]) -> tuple[tuple[int, int], ...]:
    """Return the (epoch, first offset) of the records whose epoch is known, as a reader of such a log does."""
    found: list[tuple[int, int]] = []
    for batch in batches:
        if batch.epoch > (found[-1][0] if found else NO_EPOCH) and len(found) < limits.EPOCHS_MAX:
            found.append((batch.epoch, batch.base))
    return tuple(found)
