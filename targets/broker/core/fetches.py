"""
A leader's reads: fetches are answered at once, or wait until enough bytes are there.

Who waits is looked at by positions from the log's index, its own looked up once. Records are read when they are
sent, and once for all who are woken together and wait at the same place. One batch that is larger than what was
asked for is sent alone, once in an answer. A batch that has changed on the disk ends what is sent; a fetch that
begins there is answered with an error.
Source:  Kafka Replication Design V3, C; Kafka's ReplicaManager.readFromLog and DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from targets.broker.core import damage
from targets.broker.core.events import Answer, Caller
from targets.broker.core.fences import fence, is_same_topic
from targets.broker.core.log_port import DamagedError
from targets.broker.core.messages import (
    Batch,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    TopicPartition,
)
from targets.broker.core.rules import FetchSessions
from targets.broker.core.sessions import is_full
from targets.broker.core.state import Core, Replica, Role
from targets.broker.core.waiting import WaitingFetch

# What was read in this step: partition, offset, limit, most bytes, whether one batch may be larger.
_Read: TypeAlias = tuple[tuple[Batch, ...], ErrorCode]
_Reads: TypeAlias = dict[tuple[TopicPartition, int, int, int, bool], _Read]


def of_session(core: Core, caller: Caller, request: FetchRequest) -> FetchRequest | None:
    """Return a fetch with all partitions that it is about; None if it is answered that its session is over."""
    rule, sessions, limits = core.rules.fetch_sessions, core.state.sessions, core.config.limits
    blind = rule is FetchSessions.EPOCH_BLIND
    if is_full(request):
        if rule is FetchSessions.NONE:
            return request
        most, life = limits.fetch_sessions_max, core.state.registration
        return sessions.begin(request, now_ns=core.now_ns, most=most, life=life, blind=blind)
    found = sessions.go_on(request, now_ns=core.now_ns, most=limits.request_items_max, blind=blind)
    if isinstance(found, FetchRequest):
        return found
    core.effects.append(Answer(to=caller, response=FetchResponse(results=(), error=found)))
    return None


def serve(
    core: Core, caller: Caller, request: FetchRequest, stirred: Sequence[FetchPartition] | None = None
) -> None:
    """
    Answer a fetch, or let it wait.

    Args:
        stirred: its partitions that are not quiet; None: whatever it names is looked at.
    """
    looked = request.partitions if stirred is None else stirred
    waiting = WaitingFetch(
        caller=caller, request=request, stirred=None if stirred is None else {part.tp: None for part in stirred}
    )
    if request.max_wait_ms <= 0 or not request.partitions or _any_ready(core, waiting, looked):
        _answer(core, waiting, {})
        return
    waiting.asked = {part.tp: part for part in request.partitions}
    number = core.number()
    core.state.fetches.add(number, waiting)
    core.after_ms(("fetch-wait", number), request.max_wait_ms)


def wake(core: Core, tp: TopicPartition) -> None:
    """Answer the waiting fetches of this partition that now have enough bytes, or an error."""
    reads: _Reads = {}
    for number, waiting in core.state.fetches.on(tp):
        waiting.stir(tp)
        if _makes_ready(core, waiting, waiting.asked[tp]):
            _finish(core, number, reads)


def stir(core: Core, tp: TopicPartition) -> None:
    """Let the waiting fetches of this partition look at it when they are answered: something has changed."""
    for _, waiting in core.state.fetches.on(tp):
        waiting.stir(tp)


def on_fetch_timeout(core: Core, number: int) -> None:
    """Answer a fetch whose wait is over with what there is."""
    if number in core.state.fetches.requests:
        _finish(core, number, {})


def _finish(core: Core, number: int, reads: _Reads) -> None:
    waiting = core.state.fetches.pop(number)
    assert waiting is not None, f"fetch {number} was answered before"
    core.state.timers.drop(("fetch-wait", number))
    _answer(core, waiting, reads)


# --- who is ready ------------------------------------------------------------------------------------
def _any_ready(core: Core, waiting: WaitingFetch, looked: Iterable[FetchPartition]) -> bool:
    return any(_makes_ready(core, waiting, part) for part in looked)


def _makes_ready(core: Core, waiting: WaitingFetch, part: FetchPartition) -> bool:
    """
    Return True if this partition has an error, or all have enough bytes, and there is memory to hold them.

    No batch is read, and no other partition is looked at: what wakes a fetch of thousands is one of them.
    """
    request, positions = waiting.request, waiting.positions
    replica, error = _refusal(core, request, part)
    if replica is None or error is not ErrorCode.NONE:
        return True
    limit, there = _limit(replica, request), 0
    if part.fetch_offset < limit:  # of thousands, most have nothing: no index is looked into for them
        try:
            if part.tp not in positions:
                positions[part.tp] = replica.log.position_of(part.fetch_offset)
            there = max(0, replica.log.position_of(limit) - positions[part.tp])
        except (DamagedError, OSError):
            return True  # whoever reads there is answered with the error
    size = min(there, max(part.max_bytes, 1))
    waiting.size += size - waiting.sizes.get(part.tp, 0)
    waiting.sizes[part.tp] = size
    if waiting.size and waiting.size >= request.min_bytes:
        return _is_follower(request) or core.room > 0
    return request.min_bytes <= 0


def _refusal(core: Core, request: FetchRequest, part: FetchPartition) -> tuple[Replica | None, ErrorCode]:
    """Return the replica, and why it is not read for this request, NONE if it is."""
    replica = core.state.replicas.get(part.tp)
    if replica is None:
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not is_same_topic(replica.topic_id, part.topic_id):
        return replica, ErrorCode.INCONSISTENT_TOPIC_ID
    epoch, follower, log = part.current_leader_epoch, request.replica_id, replica.log
    # Asked of thousands of partitions in each round: what takes a call is left to those that differ.
    if epoch != replica.leader_epoch and core.rules.fence_fetch:
        fenced = fence(replica, epoch)
        if fenced is not ErrorCode.NONE:
            return replica, fenced
    if replica.role is not Role.LEADER or (follower >= 0 and follower not in replica.replicas):
        return replica, ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not log.start_offset <= part.fetch_offset <= log.end_offset:
        # V3 C: an offset before the log's start or past its end is out of range; one between HW and LEO is not.
        return replica, ErrorCode.OFFSET_OUT_OF_RANGE
    return replica, ErrorCode.NONE


def _is_follower(request: FetchRequest) -> bool:
    return request.replica_id >= 0


def _limit(replica: Replica, request: FetchRequest) -> int:
    """Return the offset before which this request may read."""
    return replica.log.end_offset if _is_follower(request) else replica.high_watermark


# --- reading -----------------------------------------------------------------------------------------
def _answer(core: Core, waiting: WaitingFetch, reads: _Reads) -> None:
    request = waiting.request
    left = min(request.max_bytes, core.config.limits.answer_bytes_max)
    if not _is_follower(request):
        left = min(left, core.room)
    results: list[FetchResult] = []
    # Without memory not even one batch, but to followers.
    alone = _is_follower(request) or core.room > 0
    for part in _looked_at(core, waiting):
        result = _read(core, request, part, max(0, min(left, part.max_bytes)), at_least_one=alone, reads=reads)
        size = sum(batch.size for batch in result.batches)
        left -= size
        alone = alone and not result.batches
        if not _is_follower(request):
            core.room -= size
        results.append(result)
    response = core.state.sessions.answer(request, tuple(results))
    core.effects.append(Answer(to=waiting.caller, response=response))


def _looked_at(core: Core, waiting: WaitingFetch) -> Sequence[FetchPartition]:
    """Return the partitions of which a fetch may have something to tell, in the order of its session."""
    request, stirred = waiting.request, waiting.stirred
    if stirred is None or core.state.sessions.at(request) is None:
        return request.partitions
    return [part for part in request.partitions if part.tp in stirred]


def _read(
    core: Core, request: FetchRequest, part: FetchPartition, max_bytes: int, *, at_least_one: bool, reads: _Reads
) -> FetchResult:
    replica, error = _refusal(core, request, part)
    if replica is None or error not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
        return FetchResult(tp=part.tp, error=error)
    batches: tuple[Batch, ...] = ()
    limit = _limit(replica, request)
    if error is ErrorCode.NONE and part.fetch_offset < limit and (max_bytes or at_least_one):
        key = part.tp, part.fetch_offset, limit, max_bytes, at_least_one
        if key not in reads:
            try:
                found = _batches(request, replica, part.fetch_offset, limit, max_bytes, at_least_one=at_least_one)
                reads[key] = found, ErrorCode.NONE
            except (DamagedError, OSError) as wrong:
                reads[key] = (), damage.refusal(core, replica, wrong)
        batches, error = reads[key]
    return FetchResult(
        tp=part.tp,
        error=error,
        high_watermark=replica.high_watermark,
        log_start_offset=replica.log.start_offset,
        batches=batches,
    )


def _batches(
    request: FetchRequest, replica: Replica, offset: int, limit: int, max_bytes: int, *, at_least_one: bool
) -> tuple[Batch, ...]:
    batches = replica.log.read(offset, limit, max_bytes, at_least_one=at_least_one)
    if not _is_follower(request):
        # If a follower's log ends inside a batch, so does the high watermark; a consumer gets whole batches only.
        batches = tuple(batch for batch in batches if batch.last_offset < limit)
    return batches
