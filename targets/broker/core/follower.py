"""
The follower of a partition: asks where its epoch ends, truncates its log, fetches.

`phases` defines its phases and their transitions.
Source:  Kafka Replication Design V3, C (becomeFollower) and G; KIP-101 steps 4.1 to 4.7.2; KIP-279; KIP-320;
         Kafka's AbstractFetcherThread.
"""

from __future__ import annotations

from targets.broker.core import damage, leader, log_start, producers, questions
from targets.broker.core.cuts import cut_log, start_anew
from targets.broker.core.epochs import UNDEFINED_EPOCH, EpochEnd
from targets.broker.core.fetcher import AwaitBounds, AwaitEpochEnd, AwaitFetch, Fetcher, Kind, Wish
from targets.broker.core.log_port import AppendOrderError
from targets.broker.core.messages import (
    Batch,
    EpochAnswer,
    ErrorCode,
    FetchResult,
    LeaderAndIsr,
    ListOffsetsResult,
)
from targets.broker.core.phases import Turn, move
from targets.broker.core.rules import TruncateTo, UndefinedQuery
from targets.broker.core.sessions import REFUSALS
from targets.broker.core.state import Core, Phase, Replica, Role
from targets.broker.core.timers import TimerKey
from targets.broker.core.truncation import Cut, Reason, decide, walk


def become_follower(core: Core, replica: Replica, command: LeaderAndIsr) -> None:
    """
    Follow a leader: stop appending from the old one (V3 C), then truncate, then fetch.

    The controller knows that it is there: whoever waits for it to come back asks again, too.
    """
    for kind in Kind:
        core.state.timers.drop(rest_of(command.leader, kind))
    replica.generation += 1
    replica.role = Role.FOLLOWER
    replica.leader = command.leader
    _take_epoch(core, replica, command, kept=False)
    move(replica, Turn.FOLLOW)
    replica.fallback = replica.high_watermark
    if core.rules.truncate_to is TruncateTo.HIGH_WATERMARK:
        cut_log(core, replica, Cut(to=replica.high_watermark, reason=Reason.HIGH_WATERMARK))
    proceed(core, replica)


def keep_following(core: Core, replica: Replica, command: LeaderAndIsr) -> None:
    """Accept a newer epoch of the same leader without truncating (V3 2.2; up to 2.0.0: KAFKA-7164)."""
    move(replica, Turn.KEEP)
    _take_epoch(core, replica, command, kept=True)


def _take_epoch(core: Core, replica: Replica, command: LeaderAndIsr, *, kept: bool) -> None:
    replica.leader_epoch = command.leader_epoch
    replica.isr = command.isr
    replica.zk_version = command.zk_version
    leader.forget_epochs(core, replica)
    core.observe_replica(
        "follower",
        replica,
        epoch=replica.leader_epoch,
        leader=replica.leader,
        log_end_offset=replica.log.end_offset,
        high_watermark=replica.high_watermark,
        kept=kept,
    )


def proceed(core: Core, replica: Replica) -> None:
    """Be ready for the request of the current phase; a retry after a back-off comes here too."""
    if replica.role is not Role.FOLLOWER or replica.phase in (Phase.FENCED, Phase.FAILED):
        return
    if replica.phase is Phase.TRUNCATING and core.rules.truncate_to is TruncateTo.FIRST_FETCH:
        _ask(core, replica, Kind.FETCH)
        return
    if replica.phase is Phase.TRUNCATING and not _knows_to_ask(core, replica):
        # The cache has no epoch: use KIP-101's fallback, the high watermark.
        cut_log(core, replica, Cut(to=replica.fallback, reason=Reason.HIGH_WATERMARK))
    _ask(core, replica, Kind.EPOCH_END if replica.phase is Phase.TRUNCATING else Kind.FETCH)


def _ask(core: Core, replica: Replica, kind: Kind, timestamp: int = 0) -> None:
    """
    Let this partition have a place in the next request of that kind to its leader (`rounds`).

    Out of the ISR, a broker that is about to end asks no more: it would be taken back just before it does
    (KAFKA-14140).
    """
    if core.state.leaving and core.config.broker_id not in replica.isr:
        return
    fetcher = core.state.fetchers.get(replica.leader)
    if fetcher is None:
        fetcher = core.state.fetchers[replica.leader] = Fetcher()
    fetcher.want(kind, replica.tp, Wish(generation=replica.generation, timestamp=timestamp))


def rest_of(leader: int, kind: Kind) -> TimerKey:
    """Return the timer until whose end a leader that did not answer is asked nothing of a kind."""
    return "fetcher-rest", leader, kind


def on_lost(core: Core, kind: Kind, continuation: AwaitEpochEnd | AwaitFetch) -> None:
    """
    Ask once more after a back-off, as no answer came: one back-off for all that ask this leader.

    With one for each of thousands of partitions all would ask again in each of them, just when others are to lead.

    Source:  Kafka's AbstractFetcherThread.processFetchRequest: the thread rests ("partitionMapCond.await").
    """
    replica = core.state.replicas.get(continuation.tp)
    if replica is None or not _waits(core, replica, continuation):
        return
    if isinstance(continuation, AwaitFetch) and continuation.repair:
        replica.repair_failed = True
    if rest_of(replica.leader, kind) not in core.state.timers:
        core.after_ms(rest_of(replica.leader, kind), core.config.fetch_backoff_ms)
    proceed(core, replica)


def _waits(core: Core, replica: Replica, continuation: AwaitEpochEnd | AwaitFetch) -> bool:
    """Return True if this replica waits for that answer, and for no newer one."""
    if isinstance(continuation, AwaitEpochEnd):
        return _awaited(core, replica, continuation) and replica.generation == continuation.generation
    phase = Phase.TRUNCATING if continuation.first else Phase.FETCHING
    return replica.generation == continuation.generation and replica.phase is phase


def _knows_to_ask(core: Core, replica: Replica) -> bool:
    """
    Return True if this follower asks for the epoch's end.

    Up to 1.1.1 it asks even when it knows no epoch, and accepts the answer (KAFKA-6857).
    """
    knows = replica.epochs.latest != UNDEFINED_EPOCH
    return knows or (core.rules.epochs and core.rules.undefined_query is UndefinedQuery.LOG_END)


def on_epoch_answer(core: Core, continuation: AwaitEpochEnd, answer: EpochAnswer | None) -> None:
    """
    Truncate to the leader's answer, or ask again: at once during the walk, else after a back-off.

    Args:
        answer: None if there is none about this partition.
    """
    replica = core.state.replicas.get(continuation.tp)
    if replica is None or not _awaited(core, replica, continuation):
        return
    if answer is not None and answer.error is ErrorCode.UNSUPPORTED_VERSION:
        # KIP-101, compatibility: the leader does not know the request, so fall back to the high watermark.
        cut_log(core, replica, Cut(to=replica.fallback, reason=Reason.HIGH_WATERMARK))
    elif answer is None or answer.error is not ErrorCode.NONE:
        if replica.generation == continuation.generation:  # otherwise it has asked again and waits for that answer
            _refused(core, replica, None if answer is None else answer.error, continuation.leader_epoch)
        return
    else:
        end = EpochEnd(answer.leader_epoch, answer.end_offset)
        ends = {"log_end_offset": replica.log.end_offset, "fallback": replica.fallback}
        walks = core.rules.truncate_to is TruncateTo.EPOCH_WALK
        cut_log(core, replica, walk(end, replica.epochs, **ends) if walks else decide(end, **ends))
    proceed(core, replica)


def _awaited(core: Core, replica: Replica, continuation: AwaitEpochEnd) -> bool:
    """
    Return True if this replica still waits for that answer.

    Up to 1.1.1 any answer of the current leader counts, even to a question of an older epoch (KAFKA-7786); but not
    to one that a deleted topic of the same name has asked.
    """
    if replica.role is not Role.FOLLOWER or replica.phase is not Phase.TRUNCATING:
        return False
    if not core.rules.drop_stale_answer:
        return replica.leader == continuation.leader and continuation.generation >= replica.first_generation
    if replica.generation == continuation.generation and replica.leader_epoch != continuation.leader_epoch:
        proceed(core, replica)  # the epoch rose while the leader stayed: ask again
        return False
    return replica.generation == continuation.generation


def _refused(core: Core, replica: Replica, error: ErrorCode | None, leader_epoch: int) -> None:
    """
    Continue after an answer without a result: wait for the next command when fenced, else retry.

    Args:
        leader_epoch: the epoch in which the question was sent.
        error: the answer's error code; None if there is none about this partition.

    Source:  KIP-320: "the fetcher [...] should await a new LeaderAndIsr".
    """
    if error is not ErrorCode.FENCED_LEADER_EPOCH:
        core.after_ms(("fetch-retry", replica.tp, replica.generation), core.config.fetch_backoff_ms)
    elif leader_epoch == replica.leader_epoch:
        move(replica, Turn.FENCED)
        core.observe_replica("fenced", replica, epoch=leader_epoch, leader=replica.leader)
    else:
        proceed(core, replica)


def on_fetched(core: Core, continuation: AwaitFetch, result: FetchResult | None) -> None:
    """
    Append the records and follow the HW, then fetch again; retry a failed fetch after a back-off.

    An answer about another offset than the log's end is void (Kafka, AbstractFetcherThread.processFetchRequest).
    """
    replica = core.state.replicas.get(continuation.tp)
    phase = Phase.TRUNCATING if continuation.first else Phase.FETCHING
    if replica is None or replica.generation != continuation.generation or replica.phase is not phase:
        return
    if result is not None and result.error in REFUSALS:
        _ask(core, replica, Kind.FETCH)
        return
    if continuation.repair:
        _repair(core, replica, continuation, result)
        return
    if not continuation.first and continuation.offset != replica.log.end_offset:
        _ask(core, replica, Kind.FETCH)
        return
    if result is not None and result.error is ErrorCode.NONE and continuation.first:
        cut_log(core, replica, Cut(to=continuation.offset, reason=Reason.HIGH_WATERMARK))
    if result is not None and result.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        move(replica, Turn.OUT_OF_RANGE)
        _ask(core, replica, Kind.BOUNDS, questions.LATEST)
    elif result is None or result.error is not ErrorCode.NONE:
        _refused(core, replica, None if result is None else result.error, continuation.leader_epoch)
    elif _append(core, replica, result):
        _follow_high_watermark(core, replica, result.high_watermark)
        log_start.follow_leader(core, replica, result.log_start_offset)
        _ask(core, replica, Kind.FETCH)


def _repair(core: Core, replica: Replica, asked: AwaitFetch, result: FetchResult | None) -> None:
    """Put the leader's batch in the place of the damaged one, else cut the log there; else keep all."""
    error = None if result is None else result.error
    first = result.batches[0] if result is not None and error is ErrorCode.NONE and result.batches else None
    if first is not None and first.base_offset == asked.offset == damage.repair_from(replica):
        if replica.log.mend(first):
            damage.mended(core, replica, asked.offset)
        else:
            cut_log(core, replica, Cut(to=asked.offset, reason=Reason.CORRUPT))
        _ask(core, replica, Kind.FETCH)
        return
    replica.repair_failed = True
    if error in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE):
        _ask(core, replica, Kind.FETCH)
    else:
        _refused(core, replica, error, asked.leader_epoch)


def _append(core: Core, replica: Replica, result: FetchResult) -> bool:
    """KIP-101 4.7.1 and 4.7.2: write a new epoch down before appending its first batch."""
    if not result.batches:
        return True
    first = result.batches[0]
    if core.rules.start_inside_batch and _is_below_start(replica, first, result.log_start_offset):
        start_anew(core, replica, first.base_offset)
    try:
        if result.batches[0].base_offset < replica.log.end_offset:
            raise AppendOrderError(
                f"first offset {result.batches[0].base_offset} of the fetched batch is less than the log "
                f"end offset {replica.log.end_offset}: the leader's batch spans this log's end"
            )
        for batch in result.batches:
            leader.note_epoch(core, replica, batch.leader_epoch, batch.base_offset)
        base, end = replica.log.append_as_follower(result.batches)
    except AppendOrderError as error:
        # Kafka's fetcher thread dies of this error (KIP-101: "an inability for replicas to make progress").
        move(replica, Turn.DISORDER)
        core.observe_replica("stuck", replica, reason="out-of-order-append", error=str(error))
        return False
    producers.appended(core, replica, result.batches)
    epoch = result.batches[-1].leader_epoch
    core.observe_replica("append", replica, base=base, end=end, epoch=epoch, role="follower")
    leader.maybe_flush(core, replica)
    return True


def _is_below_start(replica: Replica, first: Batch, leaders_start: int) -> bool:
    """
    Return True if its leader's log starts inside the first batch, and this log has nothing that the leader has.

    Apache Kafka asks that it has nothing at all: one with deleted records of another history is stuck there.
    """
    log = replica.log
    has_nothing = log.start_offset == log.end_offset or log.end_offset <= leaders_start
    return has_nothing and first.base_offset < log.end_offset <= first.last_offset


def _follow_high_watermark(core: Core, replica: Replica, leaders: int) -> None:
    """Set the HW to the leader's, at most this log's end; a follower's HW may fall."""
    moved = max(replica.log.start_offset, min(leaders, replica.log.end_offset))
    if moved != replica.high_watermark:
        replica.high_watermark = moved
        core.observe_replica("high-watermark", replica, to=moved)


def on_bounds(core: Core, continuation: AwaitBounds, result: ListOffsetsResult | None) -> None:
    """
    Truncate a log that is longer than the leader's; restart a log that ends before the leader's begins.

    Kafka up to 2.0 exits in the first case unless unclean election is on (KAFKA-3924); this broker never does.
    """
    replica = core.state.replicas.get(continuation.tp)
    if replica is None or replica.generation != continuation.generation or replica.phase is not Phase.FETCHING:
        return
    if result is None or result.error is not ErrorCode.NONE or result.offset < 0:
        _refused(core, replica, None if result is None else result.error, continuation.leader_epoch)
    elif continuation.timestamp == questions.LATEST and result.offset < replica.log.end_offset:
        cut_log(core, replica, Cut(to=result.offset, reason=Reason.OUT_OF_RANGE))
        proceed(core, replica)
    elif continuation.timestamp == questions.LATEST:
        _ask(core, replica, Kind.BOUNDS, questions.EARLIEST)
    elif result.offset > replica.log.end_offset:
        start_anew(core, replica, result.offset)
        proceed(core, replica)
    else:
        proceed(core, replica)
