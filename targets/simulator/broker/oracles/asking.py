"""
What the followers of a broker ask of their leaders, and when.

    one at a time   while a partition awaits the answer to a request, its leader is sent no other one of that kind;
                    and no fetch while a partition asks where its epoch ends, or for the bounds of its leader's log
    at once         who is ready to ask, and need not wait for an answer, has asked when the step ends
    turns           who was given records lets the others of that fetch ask first: a full answer has none for
                    whoever is last

A partition awaits the newest request that names it, and none once it is told something else.
Source:  Kafka's AbstractFetcherThread (one request at a time, handleOutOfRangeError), PartitionStates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from targets.broker.core.events import Answered, Effect, Event, Send, Start
from targets.broker.core.fetcher import Ask, AwaitEpochEnd, AwaitFetch, AwaitLeader, Fetcher, Kind
from targets.broker.core.messages import FetchResponse, TopicPartition
from targets.broker.core.state import Phase, Role, State
from targets.simulator.broker.world import World

# A leader, what is asked of it, and of which partition.
_About: TypeAlias = tuple[int, Kind, TopicPartition]


class Asking:
    """The requests of the followers of one world."""

    def __init__(self, world: World) -> None:
        """Start with what is in flight now."""
        self._sent: dict[str, dict[int, AwaitLeader]] = {name: {} for name in world.nodes}
        self._newest: dict[str, dict[_About, int]] = {name: {} for name in world.nodes}
        for name, node in world.nodes.items():
            for tag, asks in () if node.broker is None else node.broker.state.pending.items():
                if isinstance(asks, AwaitLeader):
                    self._note(name, tag, asks)

    def _note(self, name: str, tag: int, asks: AwaitLeader) -> None:
        self._sent[name][tag] = asks
        self._newest[name] |= {(asks.leader, asks.kind, ask.tp): tag for ask in asks.asks}

    def wrong(
        self, name: str, event: Event, effects: Sequence[Effect], state: State
    ) -> Iterator[tuple[TopicPartition, str]]:
        """Yield what is wrong with what a step asks, or does not ask."""
        if type(event) is Start:
            self._sent[name].clear()
            self._newest[name].clear()
        answered = self._sent[name].pop(event.tag, None) if isinstance(event, Answered) else None
        for effect in effects:
            if type(effect) is not Send or type(asks := state.pending.get(effect.tag)) is not AwaitLeader:
                continue
            earlier = dict(self._sent[name])
            self._note(name, effect.tag, asks)
            if awaited := next(self._awaited(name, state, asks, earlier), None):
                yield awaited, f"{name} asks {_who(asks)}, and {awaited} awaits its answer to an earlier request"
            if isinstance(event, Answered) and answered is not None:
                yield from ((tp, f"{name} {text}") for tp, text in _turns(answered, event, asks, state))
        yield from self._late(name, state)

    def _awaited(
        self, name: str, state: State, of: AwaitLeader, sent: Mapping[int, AwaitLeader]
    ) -> Iterator[TopicPartition]:
        """Yield the partitions for whose answers a request must wait, of those that were sent."""
        kinds = tuple(Kind) if of.kind is Kind.FETCH else (of.kind,)
        for tag, earlier in sent.items():
            if earlier.leader == of.leader and earlier.kind in kinds:
                for ask in earlier.asks:
                    about = of.leader, earlier.kind, ask.tp
                    if self._newest[name].get(about) == tag and _awaits(state, of.leader, earlier.kind, ask):
                        yield ask.tp

    def _late(self, name: str, state: State) -> Iterator[tuple[TopicPartition, str]]:
        for leader, fetcher in state.fetchers.items():
            for kind in Kind:
                tp = _ready(state, fetcher, kind)
                if tp is None or ("fetcher-rest", leader, kind) in state.timers:
                    continue
                of = AwaitLeader(leader=leader, kind=kind, asks=())
                if next(self._awaited(name, state, of, self._sent[name]), None) is None:
                    yield tp, f"{name} does not ask {_who(of)} about {tp}, and nothing is in the way"


def _who(of: AwaitLeader) -> str:
    return f"broker {of.leader} ({of.kind.value})"


def _ready(state: State, fetcher: Fetcher, kind: Kind) -> TopicPartition | None:
    """Return a partition that is still ready to ask, None if there is none."""
    for tp, wish in fetcher.ready[kind].items():
        replica = state.replicas.get(tp)
        if replica is not None and replica.generation == wish.generation and replica.role is Role.FOLLOWER:
            return tp
    return None


def _awaits(state: State, leader: int, kind: Kind, ask: Ask) -> bool:
    """Return True if a partition still awaits this answer."""
    replica = state.replicas.get(ask.tp)
    if replica is None or replica.generation != ask.generation:
        return False
    fetcher = state.fetchers.get(leader)
    if fetcher is not None and ask.tp in fetcher.ready[kind]:
        return False
    truncates = isinstance(ask, AwaitEpochEnd) or (isinstance(ask, AwaitFetch) and ask.first)
    return replica.phase is (Phase.TRUNCATING if truncates else Phase.FETCHING)


def _turns(
    answered: AwaitLeader, event: Answered, asks: AwaitLeader, state: State
) -> Iterator[tuple[TopicPartition, str]]:
    """Yield it if a partition that was given records asks before one of the same fetch that was not."""
    if not isinstance(event.response, FetchResponse) or asks.kind is not Kind.FETCH:
        return
    if answered.leader != asks.leader:
        return
    ready = state.fetchers[asks.leader].ready[Kind.FETCH] if asks.leader in state.fetchers else ()
    order = [*(ask.tp for ask in asks.asks), *ready]
    given = {result.tp for result in event.response.results if result.batches}
    named = {ask.tp for ask in answered.asks}
    first = next((at for at, tp in enumerate(order) if tp in given), len(order))
    late = next((tp for tp in order[first:] if tp in named and tp not in given), None)
    if late is not None:
        yield late, f"lets {order[first]}, which was given records, fetch before {late}, which was not"
