"""
What the replicas here ask of one leader: who is ready to ask, and what is in flight, as plain data.

All that ask in one step of the core share a request, and of each kind one request is in flight at a time; whoever
is ready meanwhile waits for its answer, and has a place in the next one. `rounds` makes the requests.
Source:  Kafka's AbstractFetcherThread: one thread, one connection and one Fetch for each pair of brokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from targets.broker.core.messages import TopicPartition
from targets.broker.core.sessions import Asking


class Kind(StrEnum):
    """The requests of a follower, in the order in which a step sends them."""

    EPOCH_END = "epoch-end"
    BOUNDS = "bounds"
    FETCH = "fetch"


# --- what one partition awaits -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitEpochEnd:
    """KIP-101's question (step 4.2) is in flight: sent to this leader in this leader epoch."""

    tp: TopicPartition
    generation: int
    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitBounds:
    """The leader answered "out of range"; its bounds are in flight: the latest offset first, then the earliest."""

    tp: TopicPartition
    generation: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitFetch:
    """
    A fetch is in flight.

    `first` marks the one that truncation waits for (KIP-101's rejected alternative), `repair` one from where this
    log is damaged.
    """

    tp: TopicPartition
    generation: int
    offset: int
    leader_epoch: int
    first: bool = False
    repair: bool = False


Ask: TypeAlias = AwaitEpochEnd | AwaitBounds | AwaitFetch


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitLeader:
    """A request of many partitions is in flight to this leader; each of them awaits its part of the answer."""

    leader: int
    kind: Kind
    asks: tuple[Ask, ...]


# --- one leader --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """
    A partition is ready to ask, unless its generation has risen since.

    Attributes:
        timestamp: of BOUNDS, which of the two is asked for.
    """

    generation: int
    timestamp: int = 0


@dataclass(slots=True, kw_only=True)
class Flight:
    """
    The newest request of its kind.

    Attributes:
        void: so many of its first asks are known to be awaited no more.
    """

    tag: int
    asks: Sequence[Ask]
    void: int = 0


@dataclass(slots=True, kw_only=True)
class Fetcher:
    """
    All that is asked of one leader.

    Attributes:
        ready: by kind, who is to ask, in turn.
        flights: by kind, the newest request that is not answered.
        unanswered: by tag, whom a Fetch names that is not answered. It may have been sent for what a replica was
            before.
        hurried: if one Fetch has no place for all, so many are not to wait at the leader: records have come, and
            whoever has them acknowledges them with its next turn.
        asking: the session that the next Fetch goes on with; None: it names everything.
        fresh: those that are ready to ask the same again were looked at in this step.
    """

    ready: dict[Kind, dict[TopicPartition, Wish | AwaitFetch]] = field(
        default_factory=lambda: {kind: {} for kind in Kind}
    )
    flights: dict[Kind, Flight] = field(default_factory=dict)
    unanswered: dict[int, Sequence[Ask]] = field(default_factory=dict)
    hurried: int = 0
    asking: Asking | None = None
    fresh: bool = False

    def want(self, kind: Kind, tp: TopicPartition, wish: Wish) -> None:
        """Let a partition ask for this next, and for nothing else."""
        for wishes in self.ready.values():
            wishes.pop(tp, None)
        self.ready[kind][tp] = wish

    def take(self, kind: Kind, most: int) -> list[tuple[TopicPartition, Wish | AwaitFetch]]:
        """Remove those whose turn it is, and return them."""
        wishes = self.ready[kind]
        if len(wishes) <= most:
            self.ready[kind] = {}
            return list(wishes.items())
        taken = [item for item, _ in zip(wishes.items(), range(most), strict=False)]
        for tp, _ in taken:
            del wishes[tp]
        return taken

    def to_the_end(self, tps: Sequence[TopicPartition]) -> None:
        """Let others fetch before these, which were given records: a full answer has none for whoever is last."""
        wishes = self.ready[Kind.FETCH]
        for tp in tps:
            if tp in wishes:
                wishes[tp] = wishes.pop(tp)

    def sent(self, kind: Kind, tag: int, asks: Sequence[Ask]) -> None:
        """Note a request."""
        self.flights[kind] = Flight(tag=tag, asks=asks)
        if kind is Kind.FETCH:
            self.unanswered[tag] = asks

    def answered(self, kind: Kind, tag: int) -> None:
        """Note that a request was answered, or never will be."""
        if kind in self.flights and self.flights[kind].tag == tag:
            del self.flights[kind]
        if kind is Kind.FETCH:
            self.unanswered.pop(tag, None)

    def is_fetched(self, asks: Sequence[Ask]) -> bool:
        """Return True if a Fetch that is not answered names a partition of these."""
        named = {ask.tp for fetch in self.unanswered.values() for ask in fetch}
        return any(ask.tp in named for ask in asks)

    @property
    def idle(self) -> bool:
        """Return True if nothing is to be asked, nothing in flight, and no session kept for what is asked next."""
        return not (self.flights or self.unanswered or self.asking or any(self.ready.values()))
