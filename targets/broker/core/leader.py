"""
The leader of a partition: appends, counts its followers' fetches, advances the high watermark.

`fetches` reads for them and for consumers, `questions` answers about epochs and offsets.
Source:  Kafka Replication Design V3, C (becomeLeader) and G (on_ReplicaFetchRequest); KIP-101 step 3.
"""

from __future__ import annotations

from targets.broker.core import fetches, isr, producers, quiet
from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.events import Answer, Caller, Flush
from targets.broker.core.fences import fence, is_same_topic
from targets.broker.core.log_port import WITH_EPOCHS, FormatError
from targets.broker.core.messages import (
    NO_PRODUCER_ID,
    Batch,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    LeaderAndIsr,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    TopicPartition,
)
from targets.broker.core.rules import EpochsFlushed
from targets.broker.core.state import Core, Progress, Replica, Role
from targets.broker.core.waiting import WaitingProduce


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
    forget_epochs(core, replica)
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
    if keeps_epochs(core, replica.tp.topic) and replica.epochs.note(epoch, start):
        write_epochs(core, replica)


def keeps_epochs(core: Core, topic: str) -> bool:
    """Return True if a topic's batches carry epochs here: by the protocol, and by the topic's message format."""
    return core.rules.epochs and core.config_of(topic).message_format >= WITH_EPOCHS


def forget_epochs(core: Core, replica: Replica) -> None:
    """
    Empty the cache where the topic's message format has no epochs, so that nobody believes it later.

    It would not grow with the log. In a format with epochs it begins with the next batch.

    Source:  KAFKA-7897, KAFKA-7959; Kafka, Log.updateConfig, initializeLeaderEpochCache.
    """
    if not keeps_epochs(core, replica.tp.topic) and replica.epochs.clear():
        write_epochs(core, replica)


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
    room = core.config.limits.converted_records_max
    for part in request.partitions:
        error = _refusal(core, part, request.acks)
        if error is not ErrorCode.NONE:
            done[part.tp], texts[part.tp] = (error, -1), part.error_text
            continue
        replica = core.state.replicas[part.tp]
        checked = producers.check(core, replica, part.batches)
        if checked.error is not ErrorCode.NONE:
            done[part.tp], texts[part.tp] = (checked.error, -1), checked.text
            continue
        if checked.repeated is not None:
            base, end = checked.repeated.base, checked.repeated.end
        else:
            older = core.config_of(part.tp.topic).message_format < WITH_EPOCHS
            room -= sum(batch.next_offset - batch.base_offset for batch in part.batches) if older else 0
            if older and room < 0:
                done[part.tp] = (ErrorCode.MESSAGE_TOO_LARGE, -1)
                texts[part.tp] = _crowded(core, part.tp.topic)
                continue
            try:
                base, end = append_as_leader(core, replica, part.batches)
            except FormatError as unfit:
                done[part.tp] = (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, -1)
                texts[part.tp] = f"topic {part.tp.topic!r}: {unfit}"
                continue
        if request.acks == -1:
            required[part.tp] = (base, end)
        else:
            done[part.tp] = (ErrorCode.NONE, base)
    order = tuple(part.tp for part in request.partitions)
    waiting = WaitingProduce(caller=caller, required=required, done=done, order=order, texts=texts)
    number = core.number()
    if request.acks != 0:
        core.state.produces.add(number, waiting)
        if required:
            core.after_ms(("produce", number), request.timeout_ms)
        else:
            _answer_produce(core, number)  # acks 0 or 1: answer now, before waking follower fetches
    for tp in tuple(required or done):  # a produce that commits at once leaves `required`
        if tp in core.state.replicas and core.state.replicas[tp].role is Role.LEADER:
            advance_high_watermark(core, core.state.replicas[tp])
            fetches.wake(core, tp)
            complete_produces(core, tp)


def _crowded(core: Core, topic: str) -> str:
    most, number = core.config.limits.converted_records_max, core.config_of(topic).message_format
    return f"topic {topic!r}: more than {most} records in one request, each to be converted to format {number}"


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
    if acks == -1 and len(replica.isr) < core.config_of(part.tp.topic).min_isr:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NONE


def append_as_leader(core: Core, replica: Replica, batches: tuple[Batch, ...]) -> tuple[int, int]:
    """
    Set the leader epoch of every batch and append (KIP-101 step 3: "each new message set is tagged").

    Raises:
        FormatError: the topic's message format has no place for what a batch holds; nothing was appended.

    Source:  Kafka, LogValidator.validateBatch ("Idempotent records cannot be used with magic version 1").
    """
    message_format = core.config_of(replica.tp.topic).message_format
    if message_format < WITH_EPOCHS:
        numbered = next((batch for batch in batches if batch.producer_id != NO_PRODUCER_ID), None)
        if numbered is not None:
            who = f"a batch of the idempotent producer {numbered.producer_id}"
            raise FormatError(f"{who}; expected none, as message format {message_format} has no producers")
    epoch = replica.leader_epoch if keeps_epochs(core, replica.tp.topic) else UNDEFINED_EPOCH
    note_epoch(core, replica, epoch, replica.log.end_offset)
    base, end = replica.log.append_as_leader(batches, epoch, message_format)
    producers.appended(core, replica, batches, base)
    fetches.stir(core, replica.tp)  # the caller wakes it, but may wake another partition of the request first
    core.observe_replica("append", replica, base=base, end=end, epoch=epoch, role="leader")
    maybe_flush(core, replica)
    return base, end


def maybe_flush(core: Core, replica: Replica) -> None:
    """Request a flush once flush_messages records were appended since the last one; never wait for it."""
    limit = core.config_of(replica.tp.topic).flush_messages
    if limit and replica.log.end_offset - replica.flush_asked >= limit:
        replica.flush_asked = replica.log.end_offset
        core.effects.append(Flush(tp=replica.tp, generation=replica.generation, upto=replica.log.end_offset))


def complete_produces(core: Core, tp: TopicPartition) -> None:
    """Answer the produces to a partition that the high watermark has passed, or that cannot be committed here."""
    waits = core.state.produces.on(tp)
    if not waits:
        return
    replica = core.state.replicas.get(tp)
    for number, waiting in waits:
        if tp not in waiting.required:
            continue
        base, end = waiting.required[tp]
        if replica is None or replica.role is not Role.LEADER:
            outcome = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        elif replica.high_watermark >= end:
            enough = len(replica.isr) >= core.config_of(tp.topic).min_isr
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
    waiting = core.state.produces.requests.get(number)
    if waiting is None:
        return
    for tp in waiting.required:
        waiting.done[tp] = (ErrorCode.REQUEST_TIMED_OUT, -1)
    waiting.required.clear()
    _answer_produce(core, number)


def _answer_produce(core: Core, number: int) -> None:
    waiting = core.state.produces.pop(number)
    assert waiting is not None, f"produce {number} was answered before"
    core.state.timers.drop(("produce", number))
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
    session = quiet.session_of(core, request)
    stirred: list[FetchPartition] = []
    parts = request.partitions if session is None else quiet.count_quiet(core, session, request.replica_id)
    for part in parts:
        stirred.append(part)
        replica = core.state.replicas.get(part.tp)
        if replica is not None and replica.role is Role.LEADER and request.replica_id in replica.progress:
            _count_fetch(core, replica, request.replica_id, part)
    fetches.serve(core, caller, request, None if session is None else stirred)


def _count_fetch(core: Core, replica: Replica, follower: int, part: FetchPartition) -> None:
    """
    Count a fetch as an acknowledgement, unless it is of another topic.

    If it is from another epoch, the rules say whether it counts (KIP-320).
    """
    if not is_same_topic(replica.topic_id, part.topic_id):
        return
    if not replica.log.start_offset <= part.fetch_offset <= replica.log.end_offset:
        return
    passed = fence(replica, part.current_leader_epoch) is ErrorCode.NONE
    counts = passed or not core.rules.fence_high_watermark
    moved = counts and isr.note_fetch(core, replica, follower, part.fetch_offset, part.log_start_offset)
    if passed or not core.rules.fence_isr_join:
        isr.maybe_expand(core, replica, follower, part.fetch_offset)
    if moved:  # of thousands, most are where they were
        advance_high_watermark(core, replica)


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
        fetches.wake(core, replica.tp)
        complete_produces(core, replica.tp)


def _known_end(replica: Replica, member: int) -> int:
    progress = replica.progress.get(member)
    return -1 if progress is None else progress.end
