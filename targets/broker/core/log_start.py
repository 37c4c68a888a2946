"""
The start of a log: records below it are deleted, from the oldest on; it only moves up while a replica is there.

The log goes first, durably, then the epochs: recovery trims them again after a crash in between.
Source:  Kafka, UnifiedLog.maybeIncrementLogStartOffset, LeaderEpochFileCache.truncateFromStart; KIP-107; KIP-101,
         Maintaining the LeaderEpochSequenceFile; KAFKA-5634.
"""

from __future__ import annotations

from enum import StrEnum

from targets.broker.core import damage, fetches, leader
from targets.broker.core.state import Core, Replica


class StartReason(StrEnum):
    """Why a log's start moved; histories contain these words."""

    LEADER = "leader"
    DELETE_RECORDS = "delete-records"
    RETENTION_TIME = "retention-time"
    RETENTION_SIZE = "retention-size"


def advance_start(core: Core, replica: Replica, to: int, reason: StartReason) -> None:
    """
    Move a log's start up, never past its high watermark: what is not committed may still be truncated.

    Where delete_past_high_watermark says so, retention moves it past that.

    Source:  KAFKA-5634 (a start past the high watermark); UnifiedLogTest, testCannotIncrementLogStartOffsetPast-
             HighWatermark.
    """
    retained = reason in (StartReason.RETENTION_TIME, StartReason.RETENTION_SIZE)
    past = retained and core.rules.delete_past_high_watermark
    before, moved = replica.log.start_offset, to if past else min(to, replica.high_watermark)
    if moved <= before:
        return
    replica.log.advance_start(moved)
    core.observe_replica("log-start", replica, **{"from": before, "to": moved}, reason=reason.value)
    if replica.epochs.truncate_from_start(moved):
        leader.write_epochs(core, replica)
    damage.start_moved(replica)
    fetches.wake(core, replica.tp)  # who waits below the start waits in vain


def follow_leader(core: Core, replica: Replica, leaders: int) -> None:
    """Start a follower's log where its leader's starts, as the answer to a fetch says (-1: it does not)."""
    advance_start(core, replica, leaders, StartReason.LEADER)
