"""
What a leader answers about its log: where an epoch ends, which offset is first, last, or of a time.

Source:  KIP-101 step 4.3; KIP-320 (the fences).
"""

from __future__ import annotations

from targets.broker.core import damage
from targets.broker.core.events import Answer, Caller
from targets.broker.core.fences import fence, is_same_topic
from targets.broker.core.log_port import NEVER_YET, DamagedError
from targets.broker.core.messages import (
    EpochAnswer,
    ErrorCode,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from targets.broker.core.state import Core, Role

LATEST = -1
EARLIEST = -2


def on_offset_for_leader_epoch(core: Core, caller: Caller, request: OffsetForLeaderEpochRequest) -> None:
    """Answer where epochs end, for partitions that this broker leads (KIP-101 4.3, Request Semantics 2)."""
    answers: list[EpochAnswer] = []
    for question in request.questions:
        replica = core.state.replicas.get(question.tp)
        fenced = ErrorCode.NONE
        if replica is not None and core.rules.fence_truncation_query:
            # Check the epoch before the role: a request from an old epoch must get the epoch's error (KIP-320).
            fenced = fence(replica, question.current_leader_epoch)
        if replica is None:
            answers.append(EpochAnswer(tp=question.tp, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif not is_same_topic(replica.topic_id, question.topic_id):
            answers.append(EpochAnswer(tp=question.tp, error=ErrorCode.INCONSISTENT_TOPIC_ID))
        elif fenced is not ErrorCode.NONE:
            answers.append(EpochAnswer(tp=question.tp, error=fenced))
        elif replica.role is not Role.LEADER:
            answers.append(EpochAnswer(tp=question.tp, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            found = replica.epochs.end_offset_for(question.leader_epoch, replica.log.end_offset)
            answers.append(
                EpochAnswer(tp=question.tp, error=ErrorCode.NONE, leader_epoch=found.epoch, end_offset=found.end)
            )
    core.effects.append(Answer(to=caller, response=OffsetForLeaderEpochResponse(answers=tuple(answers))))


def on_list_offsets(core: Core, caller: Caller, request: ListOffsetsRequest) -> None:
    """Return the first offset, the last (the log end to a follower, the HW to a client), or one by time."""
    results = tuple(_list_one(core, request.replica_id, part) for part in request.partitions)
    core.effects.append(Answer(to=caller, response=ListOffsetsResponse(results=results)))


def _list_one(core: Core, replica_id: int, part: ListOffsetsPartition) -> ListOffsetsResult:
    replica = core.state.replicas.get(part.tp)
    if replica is None:
        return ListOffsetsResult(tp=part.tp, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not is_same_topic(replica.topic_id, part.topic_id):
        return ListOffsetsResult(tp=part.tp, error=ErrorCode.INCONSISTENT_TOPIC_ID)
    fenced = fence(replica, part.current_leader_epoch) if core.rules.fence_fetch else ErrorCode.NONE
    if fenced is not ErrorCode.NONE:
        return ListOffsetsResult(tp=part.tp, error=fenced)
    if replica.role is not Role.LEADER:
        return ListOffsetsResult(tp=part.tp, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if part.timestamp < 0 and part.timestamp not in (LATEST, EARLIEST):
        # The offsets that KIP-734 and later ones ask for by a negative time need newer versions.
        return ListOffsetsResult(tp=part.tp, error=ErrorCode.UNSUPPORTED_VERSION)
    timestamp = -1
    if part.timestamp == LATEST:
        offset = replica.log.end_offset if replica_id >= 0 else replica.high_watermark
    elif part.timestamp == EARLIEST:
        offset = replica.log.start_offset
    else:
        try:
            found = replica.log.first_offset_at(part.timestamp)
        except (DamagedError, OSError) as wrong:
            return ListOffsetsResult(tp=part.tp, error=damage.refusal(core, replica, wrong))
        offset, timestamp = found if found.offset < replica.high_watermark else NEVER_YET
    return ListOffsetsResult(
        tp=part.tp,
        error=ErrorCode.NONE,
        offset=offset,
        timestamp=timestamp,
        leader_epoch=replica.leader_epoch if core.rules.epochs else -1,
    )
