"""
DeleteRecords: a leader moves its log's start up, and answers once the logs of the ISR start there too.

So whoever is elected among them has deleted the records as well. (Kafka waits for every replica whose broker is
alive, also those outside the ISR.)
Source:  KIP-107; Kafka, ReplicaManager.deleteRecords, Partition.deleteRecordsOnLeader, DelayedDeleteRecords.
"""

from __future__ import annotations

from typing import Final

from targets.broker.core.events import Answer, Caller
from targets.broker.core.log_start import StartReason, advance_start
from targets.broker.core.messages import (
    DeletePartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteResult,
    ErrorCode,
    TopicPartition,
)
from targets.broker.core.state import Core, Replica, Role
from targets.broker.core.waiting import WaitingDeletion

# In place of an offset: all that is committed.
ALL_COMMITTED: Final = -1


def on_delete_records(core: Core, caller: Caller, request: DeleteRecordsRequest) -> None:
    """Move the starts of the logs that this broker leads; wait until their ISR has followed."""
    waiting = WaitingDeletion(
        caller=caller, required={}, done={}, order=tuple(part.tp for part in request.partitions)
    )
    for part in request.partitions:
        error, to = _refusal(core, part)
        if error is ErrorCode.NONE:
            advance_start(core, core.state.replicas[part.tp], to, StartReason.DELETE_RECORDS)
            waiting.required[part.tp] = to
        else:
            waiting.done[part.tp] = (error, -1)
    number = core.number()
    core.state.deletions.add(number, waiting)
    core.after_ms(("delete-records", number), request.timeout_ms)
    for tp in tuple(waiting.required):
        complete(core, tp)
    if number in core.state.deletions.requests and not waiting.required:
        _answer(core, number)


def _refusal(core: Core, part: DeletePartition) -> tuple[ErrorCode, int]:
    """Return why nothing is deleted there, NONE with the offset before which records are deleted."""
    replica = core.state.replicas.get(part.tp)
    if replica is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1
    if replica.role is not Role.LEADER:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
    to = replica.high_watermark if part.offset == ALL_COMMITTED else part.offset
    if not 0 <= to <= replica.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE, -1
    return ErrorCode.NONE, to


def complete(core: Core, tp: TopicPartition) -> None:
    """Answer the deletions in a partition that the ISR has followed, or that this broker leads no more."""
    waits = core.state.deletions.on(tp)
    if not waits:
        return
    replica = core.state.replicas.get(tp)
    leads = replica is not None and replica.role is Role.LEADER
    low = low_watermark(replica, core.config.broker_id) if replica is not None and leads else -1
    for number, waiting in waits:
        if tp not in waiting.required or (leads and low < waiting.required[tp]):
            continue
        waiting.done[tp] = (ErrorCode.NONE, low) if leads else (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        del waiting.required[tp]
        if not waiting.required:
            _answer(core, number)


def low_watermark(replica: Replica, own: int) -> int:
    """Return the smallest log start of the ISR, as its leader, broker `own`, knows it; -1 while one is unknown."""
    starts = [
        replica.log.start_offset if member == own else _known_start(replica, member)
        for member in {*replica.isr, *(replica.isr_asked or ())}
    ]
    return min(starts, default=-1)


def _known_start(replica: Replica, member: int) -> int:
    progress = replica.progress.get(member)
    return -1 if progress is None else progress.start


def on_timeout(core: Core, number: int) -> None:
    """Stop waiting for the ISR: the leader's records are deleted, and the followers' soon will be (error 7)."""
    waiting = core.state.deletions.requests.get(number)
    if waiting is None:
        return
    for tp in waiting.required:
        waiting.done[tp] = (ErrorCode.REQUEST_TIMED_OUT, -1)
    waiting.required.clear()
    _answer(core, number)


def drop(core: Core, connection: int) -> None:
    """Forget the deletions of a connection that is closed."""
    for number in core.state.deletions.of_connection(connection):
        core.state.deletions.pop(number)
        core.state.timers.drop(("delete-records", number))


def _answer(core: Core, number: int) -> None:
    waiting = core.state.deletions.pop(number)
    assert waiting is not None, f"deletion {number} was answered before"
    core.state.timers.drop(("delete-records", number))
    results = tuple(
        DeleteResult(tp=tp, error=waiting.done[tp][0], low_watermark=waiting.done[tp][1]) for tp in waiting.order
    )
    core.effects.append(Answer(to=waiting.caller, response=DeleteRecordsResponse(results=results)))
