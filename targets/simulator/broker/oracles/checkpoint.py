"""
The epoch checkpoint agrees with its log, at every step.

Entries rise, none begins past the log's end, and the last entry at or below a batch is of the batch's epoch.
Without newest_epoch_wins a new epoch that contradicts older entries is ignored: the rules then promise this only
if an epoch is recorded with its first batch. By the letter of KIP-101 (epoch_trim) they do not promise it either.
Where brokers write epochs one after another, a batch without one clears the checkpoint: what lies before it needs
no entry, and no entry may answer for it.
Source:  KIP-101, steps 3, 4.4 and 4.7.1; KAFKA-7897.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from targets.broker.core.log_port import WITH_EPOCHS
from targets.broker.core.messages import Batch
from targets.broker.core.rules import EpochTrim
from targets.broker.core.state import Config
from targets.simulator.broker.oracles.partition import PartitionOracle
from targets.simulator.broker.oracles.violation import Rule
from targets.simulator.broker.storage.log import Entries, SimLog
from targets.simulator.broker.storage.segment import Segment


def is_promised(config: Config) -> bool:
    """Return True if the checkpoint must agree with the log under these rules and this message format."""
    rules = config.rules
    trimmed = rules.epoch_trim is EpochTrim.UP_TO_START  # then the first records of a log need have no entry
    ignored = rules.epoch_assigned_on_lead and not rules.newest_epoch_wins
    return rules.epochs and config.message_format >= WITH_EPOCHS and not trimmed and not ignored


@dataclass(slots=True)
class _Mark:
    """How far a log was checked: what is before this batch of this segment cannot have changed."""

    entries: Entries | None = None
    segment: Segment | None = None
    index: int = 0
    count: int = 0
    last: Batch | None = None

    def since(self, log: SimLog) -> list[Batch] | None:
        """Return what the log has grown by since, under the same entries; None if it did not only grow."""
        if self.entries is not log.epochs or self.index >= len(log.segments):
            return None
        segment = log.segments[self.index]
        if self.segment is not segment or self.count > len(segment.batches):
            return None
        if self.last is not None and segment.batches[self.count - 1] is not self.last:
            return None
        new = segment.batches[self.count :]
        for later in log.segments[self.index + 1 :]:
            new += later.batches
        return new


class Checkpoints:
    """The checkpoint of one partition on one node."""

    def __init__(self, oracle: PartitionOracle, name: str) -> None:
        """Start with nothing checked."""
        self._oracle = oracle
        self._name = name
        self._mark = _Mark()

    def judge(self, config: Config, *, mixed: bool) -> None:
        """
        Check the replica, after a look found it changed.

        Args:
            config: of the node, as it runs now.
            mixed: brokers that write no epochs lead too.
        """
        if not is_promised(config):
            return
        seen, mark = self._oracle.replicas.seen[self._name], self._mark
        log = seen.log
        if seen.replica is None or log is None or not log.segments:
            return
        since, segment = mark.since(log), log.segments[-1]
        if since is None or since:
            batches = log.batches if since is None else since
            ends = log.epochs or (), batches, log.start_offset, log.end_offset
            wrong = contradiction(*ends, strictly=config.rules.newest_epoch_wins, mixed=mixed)
            if wrong is not None:
                text = f"the epoch checkpoint of {self._oracle.replicas.place(self._name)} {wrong[1]}"
                self._oracle.violated(Rule.CHECKPOINT, (self._name,), wrong[0], text)
        mark.entries, mark.segment, mark.index = log.epochs, segment, len(log.segments) - 1
        mark.count, mark.last = len(segment.batches), segment.batches[-1] if segment.batches else None


def contradiction(
    entries: Entries,
    batches: Sequence[Batch],
    start: int,
    end: int,
    *,
    strictly: bool = False,
    mixed: bool = False,
) -> tuple[int, str] | None:
    """
    Return the first offset at which entries contradict each other, a batch or the log's end, and how.

    Args:
        batches: some or all of the log's files, in order; those below its start count no more.
        strictly: no two epochs begin at one offset: of an epoch without a record no entry stays.
        mixed: brokers of the older message format lead too.
    """
    for (epoch, begun), (after, its_start) in pairwise(entries):
        if after <= epoch or its_start < begun or (strictly and its_start == begun):
            return its_start, f"does not rise: {after}@{its_start} follows {epoch}@{begun}"
    if entries and entries[-1][1] > end:
        return end, f"has {entries[-1][0]}@{entries[-1][1]}, past the end of its log, {end}"
    at, epoch = 0, -1
    for batch in batches:
        if batch.last_offset < start:
            continue
        while at < len(entries) and entries[at][1] <= max(batch.base_offset, start):
            epoch = entries[at][0]
            at += 1
        if batch.leader_epoch < 0 <= epoch and mixed:
            return batch.base_offset, f"has epoch {epoch} at {batch.base_offset}, where a batch without one is"
        if 0 <= batch.leader_epoch != epoch and not (mixed and epoch < 0):
            says = f"epoch {epoch}" if epoch >= 0 else "no epoch"
            return (
                batch.base_offset,
                f"has {says} at {batch.base_offset}, where a batch of {batch.leader_epoch} is",
            )
    return None
