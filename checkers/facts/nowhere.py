"""A log of which no member of a group has a file any more: nothing of it is left to be read, and that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.facts.fact import fact
from checkers.facts.quorum import is_quorum
from checkers.facts.view import FinalLog, ever_assigned, final_logs, is_churned, key_of, traits
from harness.events import MetadataState, Snapshot, SnapshotFailed
from harness.model import Op, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Nowhere:
    """
    What a run ends with when no member has a log.

    Attributes:
        members: those whose files were looked at; none has any of the partition's.
        log: what is left, which is nothing, as the log of the member that led last.
    """

    members: tuple[str, ...]
    log: FinalLog


@fact
def nowhere(ops: Sequence[Op]) -> Nowhere | None:
    """
    Return what a group ends with that has no log at all; None if it has one, or may have.

    It may if a member's files could not be looked at. Nothing is concluded of a group that an operator deletes,
    nor where an in-sync set has what is committed: there a leader makes its folder anew.
    """
    members = tuple(sorted(ever_assigned(ops)))
    if not members or not is_quorum(ops) or is_churned(ops) or final_logs(ops):
        return None
    looked = {op.process: (op, failed) for op, failed in events_of(ops, SnapshotFailed)}
    if not all(node in looked and looked[node][1].absent for node in members):
        return None
    led = [state.leader for _, state in events_of(ops, MetadataState) if state.leader in looked]
    node = led[-1] if led else members[0]
    topic, partition = key_of(ops)
    first = traits(ops).first_offset
    snapshot = Snapshot(
        topic=topic,
        partition=partition,
        log_start_offset=first,
        log_end_offset=first,
        high_watermark=None,
        epochs=None,
        problems=(),
        batches=0,
    )
    log = FinalLog(node=node, index=looked[node][0].index, snapshot=snapshot, batches=())
    return Nowhere(members=members, log=log)
