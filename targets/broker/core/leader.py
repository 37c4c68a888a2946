"""
The leader of a partition: appends, serves fetches, advances the high watermark, answers epoch requests.

Source:  Kafka Replication Design V3, C (becomeLeader) and G (on_ReplicaFetchRequest); KIP-101 steps 3 and 4.3.
Length:  all of a leader's requests, in the order of a record's life: produced, fetched, committed, asked about.
"""

from __future__ import annotations

from targets.broker.core import isr
from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.events import Answer, Caller, Flush
from targets.broker.core.messages import (
    Batch,
    EpochAnswer,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderAndIsr,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    TopicPartition,
)
from targets.broker.core.rules import EpochsFlushed
from targets.broker.core.state import Core, Progress, Replica, Role, WaitingFetch, WaitingProduce

LATEST = -1
EARLIEST = -2


def become_leader(core: Core, replica: Replica, command: LeaderAndIsr, *, resumed: bool = False) -> None:
    """Start to lead in a new epoch, or continue in the current one when `resumed` (V3 E.3.2)."""
    anew = replica.role is not Role.LEADER or command.leader_epoch > replica.leader_epoch
    replica.generation += 1
    replica.role = Role.LEADER
    replica.leader = core.config.broker_id
    replica.leader_epoch = command.leader_epoch
    replica.isr = command.isr
    replica.zk_version = command.zk_version
    replica.isr_asked, replica.isr_blocked = None, False
    replica.epoch_start = replica.log.end_offset
    if anew:
        _know_followers(core, replica)
    if core.rules.epoch_assigned_on_lead:
        note_epoch(core, replica, command.leader_epoch, replica.log.end_offset)
    core.observe_replica(
        "leader",
        replica,
        epoch=replica.leader_epoch,
        log_end_offset=replica.log.end_offset,
        high_watermark=replica.high_watermark,
        isr=list(replica.isr),
        resumed=resumed,
    )
    advance_high_watermark(core, replica)


def _know_followers(core: Core, replica: Replica) -> None:
    """
    Forget the followers' log ends: a stale log end would commit records (a rule; V3 leaves this open).

    A leader that also led before forgets them too: its followers may have truncated in an epoch that it missed.
    """
    keep = {} if core.rules.forget_follower_ends else replica.progress
    replica.progress = {
        follower: Progress(
            end=keep[follower].end if follower in keep else -1,
            caught_up_ns=core.now_ns if follower in replica.isr else 0,
        )
        for follower in replica.replicas
        if follower != core.config.broker_id
    }


def note_epoch(core: Core, replica: Replica, epoch: int, start: int) -> None:
    """Record that an epoch begins here, before anything is appended in it (KIP-101 steps 3, 4.7.1)."""
    if keeps_epochs(core) and replica.epochs.note(epoch, start):
        write_epochs(core, replica)


def keeps_epochs(core: Core) -> bool:
    """Return True if batches carry epochs here: the protocol has them and the message format can store them."""
    return core.rules.epochs and core.config.stamp_epochs


def write_epochs(core: Core, replica: Replica) -> None:
    """Replace the epoch checkpoint with the cache."""
    flush = core.rules.epochs_flushed is EpochsFlushed.ON_CHANGE
    replica.log.write_epochs(replica.epochs.entries, flush=flush)
    entries = [list(entry) for entry in replica.epochs.entries]
    core.observe_replica("checkpoint", replica, what="epochs", content=entries)


# --- produce -----------------------------------------------------------------------------------------
def on_produce(core: Core, caller: Caller, request: ProduceRequest) -> None:
    """Append the sound batches; answer now, or once the ISR has them (acks=all)."""
    done: dict[TopicPartition, tuple[ErrorCode, int]] = {}
    required: dict[TopicPartition, tuple[int, int]] = {}
    texts: dict[TopicPartition, str] = {}
    for part in request.partitions:
        error = _refusal(core, part, request.acks)
        if error is not ErrorCode.NONE:
            done[part.tp], texts[part.tp] = (error, -1), part.error_text
            continue
        replica = core.state.replicas[part.tp]
        base, end = append_as_leader(core, replica, part.batches)
        if request.acks == -1:
            required[part.tp] = (base, end)
        else:
            done[part.tp] = (ErrorCode.NONE, base)
    order = tuple(part.tp for part in request.partitions)
    waiting = WaitingProduce(caller=caller, required=required, done=done, order=order, texts=texts)
    number = core.number()
    if request.acks != 0:
        core.state.produces[number] = waiting
        if required:
            core.after_ms(("produce", number), request.timeout_ms)
        else:
            _answer_produce(core, number)  # acks 0 or 1: answer now, before waking follower fetches
    for tp in tuple(required or done):  # a produce that commits at once leaves `required`
        if tp in core.state.replicas and core.state.replicas[tp].role is Role.LEADER:
            advance_high_watermark(core, core.state.replicas[tp])
            wake_fetches(core, tp)
    complete_produces(core)


def _refusal(core: Core, part: ProducePartition, acks: int) -> ErrorCode:
    replica = core.state.replicas.get(part.tp)
    if part.error is not ErrorCode.NONE:
        return part.error
    if acks not in (-1, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if replica is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if replica.role is not Role.LEADER:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if acks == -1 and len(replica.isr) < core.config.min_isr:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NONE


def append_as_leader(core: Core, replica: Replica, batches: tuple[Batch, ...]) -> tuple[int, int]:
    """Set the leader epoch of every batch and append (KIP-101 step 3: "each new message set is tagged")."""
    epoch = replica.leader_epoch if keeps_epochs(core) else UNDEFINED_EPOCH
    note_epoch(core, replica, epoch, replica.log.end_offset)
    base, end = replica.log.append_as_leader(batches, epoch)
    core.observe_replica("append", replica, base=base, end=end, epoch=epoch, role="leader")
    maybe_flush(core, replica)
    return base, end


def maybe_flush(core: Core, replica: Replica) -> None:
    """Request a flush once flush_messages records were appended since the last one; never wait for it."""
    limit = core.config.flush_messages
    if limit and replica.log.end_offset - replica.flush_asked >= limit:
        replica.flush_asked = replica.log.end_offset
        core.effects.append(Flush(tp=replica.tp, generation=replica.generation, upto=replica.log.end_offset))


def complete_produces(core: Core) -> None:
    """Answer every produce that the high watermark has passed, or that this broker cannot commit any more."""
    for number, waiting in list(core.state.produces.items()):
        for tp, (base, end) in list(waiting.required.items()):
            replica = core.state.replicas.get(tp)
            if replica is None or replica.role is not Role.LEADER:
                outcome = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            elif replica.high_watermark >= end:
                enough = len(replica.isr) >= core.config.min_isr
                # The smaller ISR committed the appended records, so they may survive (Kafka's error 20).
                outcome = (ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, base)
            else:
                continue
            waiting.done[tp] = outcome
            del waiting.required[tp]
        if not waiting.required:
            _answer_produce(core, number)


def on_produce_timeout(core: Core, number: int) -> None:
    """Stop waiting for the ISR: the records are appended and may survive (error 7)."""
    waiting = core.state.produces.get(number)
    if waiting is None:
        return
    for tp in waiting.required:
        waiting.done[tp] = (ErrorCode.REQUEST_TIMED_OUT, -1)
    waiting.required.clear()
    _answer_produce(core, number)


def _answer_produce(core: Core, number: int) -> None:
    waiting = core.state.produces.pop(number)
    core.state.timers.pop(("produce", number), None)
    results = tuple(
        ProduceResult(
            tp=tp,
            error=waiting.done[tp][0],
            base_offset=waiting.done[tp][1],
            error_text=waiting.texts.get(tp, ""),
        )
        for tp in waiting.order
    )
    core.effects.append(Answer(to=waiting.caller, response=ProduceResponse(results=results)))


# --- fetch -------------------------------------------------------------------------------------------
def on_fetch(core: Core, caller: Caller, request: FetchRequest) -> None:
    """Count a follower's fetch as its acknowledgement, then read; wait if there are too few bytes."""
    for part in request.partitions:
        replica = core.state.replicas.get(part.tp)
        if replica is not None and replica.role is Role.LEADER and request.replica_id in replica.progress:
            _count_fetch(core, replica, request.replica_id, part)
    results = _read(core, request)
    if request.max_wait_ms <= 0 or _enough(request, results):
        core.effects.append(Answer(to=caller, response=FetchResponse(results=results)))
    else:
        number = core.number()
        core.state.fetches[number] = WaitingFetch(caller=caller, request=request)
        core.after_ms(("fetch-wait", number), request.max_wait_ms)
    complete_produces(core)


def _count_fetch(core: Core, replica: Replica, follower: int, part: FetchPartition) -> None:
    """Count a fetch as an acknowledgement, unless it is from another epoch and the rules fence it (KIP-320)."""
    if not replica.log.start_offset <= part.fetch_offset <= replica.log.end_offset:
        return
    passed = _fence(replica, part.current_leader_epoch) is ErrorCode.NONE
    counts = passed or not core.rules.fence_high_watermark
    if counts:
        isr.note_fetch(core, replica, follower, part.fetch_offset)
    if passed or not core.rules.fence_isr_join:
        isr.maybe_expand(core, replica, follower, part.fetch_offset)
    if counts:
        advance_high_watermark(core, replica)


def _fence(replica: Replica, current: int) -> ErrorCode:
    """Compare the epoch of a request (-1: it has none) with this replica's leader epoch."""
    if current in (UNDEFINED_EPOCH, replica.leader_epoch):
        return ErrorCode.NONE
    older = current < replica.leader_epoch
    return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH


def _enough(request: FetchRequest, results: tuple[FetchResult, ...]) -> bool:
    failed = any(result.error is not ErrorCode.NONE for result in results)
    size = sum(batch.size for result in results for batch in result.batches)
    return failed or not request.partitions or size >= request.min_bytes


def _read(core: Core, request: FetchRequest) -> tuple[FetchResult, ...]:
    left = request.max_bytes
    results: list[FetchResult] = []
    for part in request.partitions:
        result = _read_one(core, request, part, max(0, min(left, part.max_bytes)))
        left -= sum(batch.size for batch in result.batches)
        results.append(result)
    return tuple(results)


def _read_one(core: Core, request: FetchRequest, part: FetchPartition, max_bytes: int) -> FetchResult:
    replica = core.state.replicas.get(part.tp)
    if replica is None:
        return FetchResult(tp=part.tp, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    follower = request.replica_id >= 0
    fence = _fence(replica, part.current_leader_epoch) if core.rules.fence_fetch else ErrorCode.NONE
    if fence is not ErrorCode.NONE:
        return FetchResult(tp=part.tp, error=fence)
    if replica.role is not Role.LEADER or (follower and request.replica_id not in replica.replicas):
        return FetchResult(tp=part.tp, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log, offset = replica.log, part.fetch_offset
    if not log.start_offset <= offset <= log.end_offset:
        # V3 C: an offset before the log's start or past its end is out of range; one between HW and LEO is not.
        return FetchResult(
            tp=part.tp,
            error=ErrorCode.OFFSET_OUT_OF_RANGE,
            high_watermark=replica.high_watermark,
            log_start_offset=log.start_offset,
        )
    limit = log.end_offset if follower else replica.high_watermark
    batches = log.read(offset, limit, max_bytes) if offset < limit else ()
    if not follower:
        # If a follower's log ends inside a batch, so does the high watermark; a consumer gets whole batches only.
        batches = tuple(batch for batch in batches if batch.last_offset < limit)
    return FetchResult(
        tp=part.tp,
        error=ErrorCode.NONE,
        high_watermark=replica.high_watermark,
        log_start_offset=log.start_offset,
        batches=batches,
    )


def wake_fetches(core: Core, tp: TopicPartition) -> None:
    """Answer the waiting fetches of this partition that now have enough bytes."""
    for number, waiting in list(core.state.fetches.items()):
        if any(part.tp == tp for part in waiting.request.partitions):
            results = _read(core, waiting.request)
            if _enough(waiting.request, results):
                _answer_fetch(core, number, results)


def on_fetch_timeout(core: Core, number: int) -> None:
    """Answer a fetch whose wait is over with what there is."""
    waiting = core.state.fetches.get(number)
    if waiting is not None:
        _answer_fetch(core, number, _read(core, waiting.request))


def _answer_fetch(core: Core, number: int, results: tuple[FetchResult, ...]) -> None:
    waiting = core.state.fetches.pop(number)
    core.state.timers.pop(("fetch-wait", number), None)
    core.effects.append(Answer(to=waiting.caller, response=FetchResponse(results=results)))


# --- the high watermark ------------------------------------------------------------------------------
def advance_high_watermark(core: Core, replica: Replica) -> None:
    """
    Advance the HW to the smallest log end in the ISR (V3 G); it never falls while this broker leads.

    A follower that a pending ISR write adds counts already: ZooKeeper may list it as electable by now.
    """
    if replica.role is not Role.LEADER:
        return
    ends = [
        replica.log.end_offset if member == core.config.broker_id else _known_end(replica, member)
        for member in {*replica.isr, *(replica.isr_asked or ())}
    ]
    candidate = min(ends, default=-1)
    if candidate > replica.high_watermark:
        replica.high_watermark = candidate
        core.observe_replica("high-watermark", replica, to=candidate)
        wake_fetches(core, replica.tp)
        complete_produces(core)


def _known_end(replica: Replica, member: int) -> int:
    progress = replica.progress.get(member)
    return -1 if progress is None else progress.end


# --- questions ---------------------------------------------------------------------------------------
def on_offset_for_leader_epoch(core: Core, caller: Caller, request: OffsetForLeaderEpochRequest) -> None:
    """Answer where epochs end, for partitions that this broker leads (KIP-101 4.3, Request Semantics 2)."""
    answers: list[EpochAnswer] = []
    for question in request.questions:
        replica = core.state.replicas.get(question.tp)
        fence = ErrorCode.NONE
        if replica is not None and core.rules.fence_truncation_query:
            # Check the epoch before the role: a request from an old epoch must get the epoch's error (KIP-320).
            fence = _fence(replica, question.current_leader_epoch)
        if replica is None:
            answers.append(EpochAnswer(tp=question.tp, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif fence is not ErrorCode.NONE:
            answers.append(EpochAnswer(tp=question.tp, error=fence))
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
    fence = _fence(replica, part.current_leader_epoch) if core.rules.fence_fetch else ErrorCode.NONE
    if fence is not ErrorCode.NONE:
        return ListOffsetsResult(tp=part.tp, error=fence)
    if replica.role is not Role.LEADER:
        return ListOffsetsResult(tp=part.tp, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if part.timestamp == LATEST:
        offset = replica.log.end_offset if replica_id >= 0 else replica.high_watermark
    elif part.timestamp == EARLIEST:
        offset = replica.log.start_offset
    else:
        found = replica.log.first_offset_at(part.timestamp)
        offset = found if 0 <= found < replica.high_watermark else -1
    return ListOffsetsResult(
        tp=part.tp,
        error=ErrorCode.NONE,
        offset=offset,
        leader_epoch=replica.leader_epoch if core.rules.epochs else -1,
    )
