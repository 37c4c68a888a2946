"""
What is answered to a request of many partitions: each gets its part.

A round goes over every partition, of which most have no news: they ask the same again, with the same words.
Source:  Kafka's AbstractFetcherThread and PartitionStates (who was given records goes to the end); KIP-227.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from targets.broker.core import follower
from targets.broker.core.fetcher import Ask, AwaitBounds, AwaitEpochEnd, AwaitFetch, AwaitLeader, Fetcher, Kind
from targets.broker.core.messages import (
    NO_FETCH_SESSION,
    EpochAnswer,
    ErrorCode,
    FetchResponse,
    FetchResult,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochResponse,
    Response,
    TopicPartition,
)
from targets.broker.core.rounds import requests_for
from targets.broker.core.sessions import Asking
from targets.broker.core.state import Core, Phase

R = TypeVar("R", EpochAnswer, ListOffsetsResult, FetchResult)


def on_answered(core: Core, awaited: AwaitLeader, tag: int, response: Response | None) -> None:
    """Give each partition its part of the answer, None if it has none; without any they rest for a while."""
    fetcher = core.state.fetchers.get(awaited.leader)
    if fetcher is not None:
        fetcher.answered(awaited.kind, tag)
    ends = _by_partition(response.answers) if isinstance(response, OffsetForLeaderEpochResponse) else {}
    bounds = _by_partition(response.results) if isinstance(response, ListOffsetsResponse) else {}
    asking = None if fetcher is None or fetcher.asking is None or fetcher.asking.tag != tag else fetcher.asking
    results = _by_partition(_fetched(awaited, response)) if isinstance(response, FetchResponse) else {}
    goes_on = isinstance(response, FetchResponse) and response.session_id != NO_FETCH_SESSION
    if fetcher is not None and asking is not None and not goes_on:
        fetcher.asking = None
    stale = goes_on and asking is None
    asks: Iterable[Ask] = awaited.asks
    told: Mapping[TopicPartition, FetchResult] = {}
    if fetcher is not None and asking is not None and isinstance(response, FetchResponse):
        told = asking.heed(response)
        if goes_on:
            asks = _but_unchanged(core, fetcher, awaited.asks, asking, results)
    for ask in asks:
        if response is None and not isinstance(ask, AwaitBounds):
            follower.on_lost(core, awaited.kind, ask)
        elif isinstance(ask, AwaitEpochEnd):
            follower.on_epoch_answer(core, ask, ends.get(ask.tp))
        elif isinstance(ask, AwaitBounds):
            follower.on_bounds(core, ask, bounds.get(ask.tp))
        elif ask.tp in results or not stale:  # whom an older session leaves out has asked anew
            follower.on_fetched(core, ask, results.get(ask.tp) or told.get(ask.tp))
    given = [tp for tp, result in results.items() if result.batches]
    if fetcher is not None and given:
        fetcher.to_the_end(given)
        fetcher.hurried = requests_for(core, len(fetcher.ready[Kind.FETCH]))


def _fetched(awaited: AwaitLeader, response: FetchResponse) -> Sequence[FetchResult]:
    """Return what a leader has answered about the partitions of a Fetch, of all if it refused it as a whole."""
    if response.error is not ErrorCode.NONE:
        return [FetchResult(tp=ask.tp, error=response.error) for ask in awaited.asks]
    return response.results


def _but_unchanged(
    core: Core,
    fetcher: Fetcher,
    asks: Iterable[Ask],
    asking: Asking,
    news: Mapping[TopicPartition, FetchResult],
) -> Iterator[Ask]:
    """
    Yield the asks that have news or are about what has changed since; the others are ready to ask the same again.

    For them `follower.on_fetched` would change nothing and make the same ask. It is the loop of a round that has
    thousands of turns in a second, so it calls nothing.
    """
    again, replicas, phase = fetcher.ready[Kind.FETCH], core.state.replicas, Phase.FETCHING
    told, parts = asking.told, asking.parts
    busy = core.state.leaving or any(fetcher.ready[kind] for kind in Kind if kind is not Kind.FETCH)
    fetcher.fresh = True
    for ask in asks:
        tp = ask.tp
        replica, before, part = replicas.get(tp), told.get(tp), parts.get(tp)
        if (
            busy
            or replica is None
            or before is None
            or part is None
            or tp in news
            or tp in again
            or not isinstance(ask, AwaitFetch)
            or ask.first
            or ask.repair
            or replica.generation != ask.generation
            or replica.leader_epoch != ask.leader_epoch
            or replica.phase is not phase
            or replica.damages
            or ask.offset != (end := replica.log.end_offset)
            or part.log_start_offset != (start := replica.log.start_offset)
            or before.log_start_offset > start
            or not start <= (mark := replica.high_watermark) <= end
            or before.high_watermark != mark
        ):
            yield ask
        else:
            again[tp] = ask


def _by_partition(parts: Sequence[R]) -> dict[TopicPartition, R]:
    return {part.tp: part for part in parts}
