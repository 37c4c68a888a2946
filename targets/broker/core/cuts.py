"""
Cuts of a follower's log: the epochs first, then the log, with the event that tells of it.

`truncation` decides where.
Source:  KIP-101 steps 4.4 and 4.5; Kafka Replication Design V3, C (becomeFollower).
"""

from __future__ import annotations

from targets.broker.core import damage, leader, producers
from targets.broker.core.log_port import DamagedError
from targets.broker.core.phases import Turn, move
from targets.broker.core.state import Core, Replica
from targets.broker.core.truncation import Cut, Reason


def cut_log(core: Core, replica: Replica, cut: Cut) -> None:
    """KIP-101 4.4 and 4.5: truncate the epochs, then the log; emit the event even if nothing is removed."""
    before, latest = replica.log.end_offset, replica.epochs.latest
    if cut.reason is Reason.EPOCH_ANSWER and cut.to < before:
        changed = replica.epochs.reset_last_to(cut.to)
    else:
        changed = replica.epochs.truncate_from_end(min(cut.to, before))
    if changed:
        leader.write_epochs(core, replica)
    end = before
    if cut.to < before:
        end = _truncate(core, replica, cut.to)
        damage.was_cut(replica)
        producers.was_cut(core, replica)
        replica.generation += 1  # voids a flush that was requested for the longer log
        if end < cut.to and replica.epochs.truncate_from_end(end):
            leader.write_epochs(core, replica)
        replica.high_watermark = min(replica.high_watermark, end)
        replica.flush_asked = min(replica.flush_asked, end)
    core.observe_replica(
        "truncate",
        replica,
        **{"from": before, "to": cut.to, "end": end},
        reason=cut.reason.value,
        epoch=replica.leader_epoch,
    )
    replica.fallback = min(cut.to, end)
    # A step of the walk that changed nothing ends it: the same question would get the same answer.
    move(replica, Turn.CUT if cut.done or replica.epochs.latest == latest else Turn.CUT_PARTLY)


def start_anew(core: Core, replica: Replica, offset: int) -> None:
    """Remove all batches, so that the log starts where its leader's does."""
    before = replica.log.end_offset
    if replica.epochs.clear():
        leader.write_epochs(core, replica)
    replica.log.truncate_fully(offset)
    damage.was_cut(replica)
    producers.begin_anew(replica)
    replica.generation += 1
    replica.high_watermark = offset
    core.observe_replica(
        "truncate",
        replica,
        **{"from": before, "to": offset, "end": offset},
        reason=Reason.FULL.value,
        epoch=replica.leader_epoch,
    )


def _truncate(core: Core, replica: Replica, to: int) -> int:
    """Truncate the log, further back if a damaged batch hides where; return where it ends."""
    try:
        return replica.log.truncate_to(to, core.rules.leo_after_cut)
    except DamagedError as error:
        damage.found(core, replica, error.damaged)
        return replica.log.truncate_to(error.damaged.offset, core.rules.leo_after_cut)
