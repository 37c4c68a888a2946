"""
Requests of many partitions: at the end of a step, one to each leader for all that are ready to ask it.

At most one Fetch and one question of a kind is in flight to a leader, unless nobody awaits it any more. If more
partitions are ready than a request may name, the others have their turn in the next one.
A question must not wait behind a Fetch that waits for records, so it has a connection of its own. But it goes
behind a Fetch that names the same partition: else that Fetch might reach the leader after the follower has cut its
log, and the leader would take it for having what it had before. Kafka's thread asks one thing at a time.
No Fetch is sent while a partition asks where its epoch ends, or for the bounds of its leader's log: one that
waits for records of others would keep it from its turn for as long as it waits, and whoever waits for all of the
ISR; and a leader that deletes meanwhile would have less again when it comes, for ever.
`round_answers` takes what is answered.
Source:  Kafka's AbstractFetcherThread and PartitionStates (who was given records goes to the end).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from targets.broker.core import damage, follower
from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.fetcher import (
    Ask,
    AwaitBounds,
    AwaitEpochEnd,
    AwaitFetch,
    AwaitLeader,
    Fetcher,
    Kind,
    Wish,
)
from targets.broker.core.messages import (
    FIRST_SESSION_EPOCH,
    NO_FETCH_SESSION,
    EpochQuestion,
    FetchPartition,
    FetchRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    Request,
    TopicPartition,
)
from targets.broker.core.rules import FetchSessions
from targets.broker.core.sessions import Asking
from targets.broker.core.state import Core, Phase, Replica, Role

# The channels of a pair of brokers. A fabric knows a follower's connection by the first word.
FETCHES: Final = "fetcher"
QUESTIONS: Final = "fetcher-questions"
# Where one is connected, the other connects to the same address: a follower that has lost ZooKeeper fetches on.
FETCHER_CHANNELS: Final = (FETCHES, QUESTIONS)
# Who is to ask, and what: what it asked before if nothing has changed.
_Ready: TypeAlias = tuple[Replica, Wish | AwaitFetch]
# What is answered before a request of this kind is sent.
_FIRST: Final[Mapping[Kind, tuple[Kind, ...]]] = MappingProxyType({Kind.FETCH: tuple(Kind)})


def send_ready(core: Core) -> None:
    """Send what the replicas here are ready to ask; called once, at the end of a step."""
    for leader, fetcher in list(core.state.fetchers.items()):
        for kind in Kind:
            rests = not fetcher.ready[kind] or follower.rest_of(leader, kind) in core.state.timers
            if not rests and all(_may_send(core, fetcher, each) for each in _FIRST.get(kind, (kind,))):
                _send(core, leader, fetcher, kind)
        fetcher.fresh = False
        if fetcher.idle:
            del core.state.fetchers[leader]


def _may_send(core: Core, fetcher: Fetcher, kind: Kind) -> bool:
    """Return True if no partition awaits the request in flight any more."""
    flight = fetcher.flights.get(kind)
    if flight is None:
        return True
    while flight.void < len(flight.asks):
        if _is_awaited(core, fetcher, kind, flight.asks[flight.void]):
            return False
        flight.void += 1
    return True


def _is_awaited(core: Core, fetcher: Fetcher, kind: Kind, ask: Ask) -> bool:
    replica = core.state.replicas.get(ask.tp)
    if replica is None or replica.generation != ask.generation or ask.tp in fetcher.ready[kind]:
        return False
    truncates = isinstance(ask, AwaitEpochEnd) or (isinstance(ask, AwaitFetch) and ask.first)
    return replica.phase is (Phase.TRUNCATING if truncates else Phase.FETCHING)


def _send(core: Core, leader: int, fetcher: Fetcher, kind: Kind) -> None:
    taken: list[_Ready] = []
    while fetcher.ready[kind] and not taken:  # thousands may have been told otherwise while the leader was gone
        taken = _still_ready(core, fetcher.take(kind, core.config.together.asks_max))
    if not taken:
        return
    request, asks = _MAKERS[kind](core, fetcher, taken)
    behind = kind is Kind.FETCH or fetcher.is_fetched(asks)
    if isinstance(request, FetchRequest):
        request = _in_session(core, fetcher, request)
    awaited = AwaitLeader(leader=leader, kind=kind, asks=asks)
    tag = core.send(leader, FETCHES if behind else QUESTIONS, request, awaited)
    fetcher.sent(kind, tag, asks)
    if kind is Kind.FETCH and fetcher.asking is not None:
        fetcher.asking.tag = tag


def _still_ready(core: Core, turn: Sequence[tuple[TopicPartition, Wish | AwaitFetch]]) -> list[_Ready]:
    """Return the replicas that are still to ask: others were told otherwise since."""
    replicas, role = core.state.replicas, Role.FOLLOWER
    return [
        (replica, wish)
        for tp, wish in turn
        if (replica := replicas.get(tp)) is not None
        and replica.generation == wish.generation
        and replica.role is role
    ]


def _epoch_questions(
    core: Core, _fetcher: Fetcher, taken: Sequence[_Ready]
) -> tuple[Request, tuple[AwaitEpochEnd, ...]]:
    fenced = core.rules.fence_truncation_query
    questions = tuple(
        EpochQuestion(
            tp=replica.tp,
            leader_epoch=replica.epochs.latest,
            current_leader_epoch=replica.leader_epoch if fenced else UNDEFINED_EPOCH,
            topic_id=replica.topic_id,
        )
        for replica, _ in taken
    )
    asks = tuple(
        AwaitEpochEnd(
            tp=replica.tp,
            generation=replica.generation,
            leader=replica.leader,
            leader_epoch=replica.leader_epoch,
        )
        for replica, _ in taken
    )
    return OffsetForLeaderEpochRequest(questions=questions, replica_id=core.config.broker_id), asks


def _bounds(core: Core, _fetcher: Fetcher, taken: Sequence[_Ready]) -> tuple[Request, tuple[AwaitBounds, ...]]:
    wishes = [
        (replica, wish) for replica, wish in taken if isinstance(wish, Wish)
    ]  # all: the same is only fetched
    parts = tuple(
        ListOffsetsPartition(
            tp=replica.tp,
            timestamp=wish.timestamp,
            current_leader_epoch=_current_epoch(core, replica),
            topic_id=replica.topic_id,
        )
        for replica, wish in wishes
    )
    asks = tuple(
        AwaitBounds(
            tp=replica.tp,
            generation=replica.generation,
            timestamp=wish.timestamp,
            leader_epoch=replica.leader_epoch,
        )
        for replica, wish in wishes
    )
    return ListOffsetsRequest(replica_id=core.config.broker_id, partitions=parts), asks


def _fetch(core: Core, fetcher: Fetcher, taken: Sequence[_Ready]) -> tuple[Request, tuple[AwaitFetch, ...]]:
    config, fresh, at_once = core.config, fetcher.fresh, False
    before: Mapping[TopicPartition, FetchPartition] = {} if fetcher.asking is None else fetcher.asking.parts
    asks: list[AwaitFetch] = []
    parts: list[FetchPartition] = []
    for replica, wish in taken:
        part = before.get(replica.tp)
        if fresh and part is not None and isinstance(wish, AwaitFetch):
            ask = wish
        else:
            ask = _await_fetch(replica)
            part = _fetch_partition(core, replica, ask.offset, part)
            at_once = at_once or ask.first or ask.repair
        asks.append(ask)
        parts.append(part)
    request = FetchRequest(
        replica_id=config.broker_id,
        max_wait_ms=0 if at_once else _wait_ms(core, fetcher, len(taken)),
        min_bytes=config.fetch_min_bytes,
        max_bytes=config.fetch_response_bytes_max,
        partitions=tuple(parts),
    )
    return request, tuple(asks)


def _fetch_partition(core: Core, replica: Replica, offset: int, before: FetchPartition | None) -> FetchPartition:
    """Return what is asked of a partition: what was asked before itself, if it is the same, as of most."""
    most, epoch, start = core.config.fetch_bytes_max, _current_epoch(core, replica), replica.log.start_offset
    if (
        before is not None
        and before.fetch_offset == offset
        and before.log_start_offset == start
        and before.current_leader_epoch == epoch
        and before.topic_id == replica.topic_id
        and before.max_bytes == most
    ):
        return before
    return FetchPartition(
        tp=replica.tp,
        fetch_offset=offset,
        max_bytes=most,
        current_leader_epoch=epoch,
        log_start_offset=start,
        topic_id=replica.topic_id,
    )


def _in_session(core: Core, fetcher: Fetcher, request: FetchRequest) -> FetchRequest:
    """
    Return a fetch as it goes on with its session, or begins one (KIP-227).

    If one Fetch has no place for all, each names others than the one before: then there is no session.
    """
    if core.rules.fetch_sessions is FetchSessions.NONE:
        return request
    asking = fetcher.asking
    if asking is not None and not asking.awaited and not fetcher.ready[Kind.FETCH]:
        return asking.shorten(request)
    over = NO_FETCH_SESSION if asking is None else asking.number
    if fetcher.ready[Kind.FETCH]:
        fetcher.asking = None
        return replace(request, session_id=over)
    fetcher.asking = Asking(parts={part.tp: part for part in request.partitions})
    return replace(request, session_id=over, session_epoch=FIRST_SESSION_EPOCH)


def _wait_ms(core: Core, fetcher: Fetcher, taken: int) -> int:
    """Return how long a Fetch may wait: all that are ready share one wait, and have none while records come."""
    requests = requests_for(core, taken + len(fetcher.ready[Kind.FETCH]))
    if requests > 1 and fetcher.hurried:
        fetcher.hurried -= 1
        return 0
    return core.config.fetch_wait_ms_max // requests


def requests_for(core: Core, partitions: int) -> int:
    """Return how many requests of a kind have a place for so many partitions."""
    return -(-partitions // core.config.together.asks_max)


def _await_fetch(replica: Replica) -> AwaitFetch:
    """Fetch from the log's end; before that from where it is damaged, or where the first fetch is to cut it."""
    first = replica.phase is Phase.TRUNCATING
    damaged = None if first else damage.repair_from(replica)
    offset = min(replica.fallback, replica.log.end_offset) if first else replica.log.end_offset
    return AwaitFetch(
        tp=replica.tp,
        generation=replica.generation,
        offset=offset if damaged is None else damaged,
        leader_epoch=replica.leader_epoch,
        first=first,
        repair=damaged is not None,
    )


def _current_epoch(core: Core, replica: Replica) -> int:
    """Return the epoch that a fetch carries: the epoch in which this broker follows, under KIP-320, else -1."""
    rules = core.rules
    heeded = rules.fence_fetch or rules.fence_high_watermark or rules.fence_isr_join
    return replica.leader_epoch if heeded else UNDEFINED_EPOCH


_Maker: TypeAlias = Callable[[Core, Fetcher, Sequence[_Ready]], tuple[Request, tuple[Ask, ...]]]
_MAKERS: Final[Mapping[Kind, _Maker]] = MappingProxyType(
    {Kind.EPOCH_END: _epoch_questions, Kind.BOUNDS: _bounds, Kind.FETCH: _fetch}
)
