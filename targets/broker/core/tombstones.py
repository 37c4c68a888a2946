"""
How long compaction keeps a tombstone: a record with a key and no value, which says that its key is deleted.

It stays for a delay, so that whoever has read an older record of its key can read on and learn that it is gone.
From KIP-534 on the delay begins with the first cleaning that keeps the tombstone: no older record of its key is
left then. The cleaning writes the end of the delay into the batch, its delete horizon, which later cleanings and
the replicas that copy the batch find there. Before, and in message formats that have no place for it, the time of
the tombstone's file is held against that of the newest file that is clean: both are those of records, so that the
delay may be over before the first cleaning (KAFKA-4545), and may never be (KAFKA-8522).
Both cleaners ask here, of the files and of the simulator.
Source:  KIP-534; Kafka, Cleaner.cleanInto and shouldRetainRecord, MemoryRecords.filterTo.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class TombstoneDelay(NamedTuple):
    """
    The delay, as it is when a cleaning begins.

    Attributes:
        retention_ms: how long a tombstone stays (delete.retention.ms).
        now_ms: what the wall clock shows, since 1970; negative: nobody knows, so that no delay begins or ends.
        by_horizon: whether batches say when it is over, where their format has a place for it (KIP-534).
    """

    retention_ms: int
    now_ms: int = -1
    by_horizon: bool = False

    def old_files(self, latest_ms: Sequence[int]) -> int:
        """
        Return how many of a log's clean files, from the first one on, are old by their times.

        Args:
            latest_ms: of each clean file the greatest timestamp up to its end.
        """
        return sum(time <= latest_ms[-1] - self.retention_ms for time in latest_ms)

    def is_over(self, horizon_ms: int | None, *, in_old_file: bool) -> bool:
        """Return True if the tombstones of a batch may go; in_old_file decides where batches do not say it."""
        if not self.by_horizon:
            return in_old_file
        return horizon_ms is not None and horizon_ms <= self.now_ms

    def horizon_of(self, horizon_ms: int | None) -> int | None:
        """Return what is to stand in a batch whose tombstones stay: what stands there, or the end from now on."""
        if not self.by_horizon or horizon_ms is not None or self.now_ms < 0:
            return horizon_ms
        return self.now_ms + self.retention_ms
