"""
Three hundred partitions on two brokers have one Fetch in flight in each direction, and are replicated.

Source:  Kafka's AbstractFetcherThread: one thread, one connection and one Fetch for each pair of brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from targets.broker.core.events import Answered, Effect, Event, Send
from targets.broker.core.messages import FetchRequest, OffsetForLeaderEpochRequest, Request, TopicPartition
from targets.broker.core.state import Phase, Together
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import World
from tests.simulator.worlds import IDS, TOPIC, WAIT_S, boot, leads

PARTITIONS = 300
TPS = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]


class InFlight:
    """Counts the requests of each pair of brokers that are in flight, and keeps the most of each kind."""

    def __init__(self, world: World) -> None:
        self.most: Counter[tuple[str, int, type[Request]]] = Counter()
        self.sent: Counter[type[Request]] = Counter()
        self._open: dict[tuple[str, int], tuple[str, int, type[Request]]] = {}
        world.watchers.append(self._on_step)

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        if isinstance(event, Answered):
            self._open.pop((name, event.tag), None)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.request, FetchRequest | OffsetForLeaderEpochRequest):
                pair = name, effect.to, type(effect.request)
                self._open[name, effect.tag] = pair
                self.sent[pair[2]] += 1
                count = list(self._open.values()).count(pair)
                self.most[pair] = max(self.most[pair], count)


def created(world: World) -> None:
    """Create the topic, whose partitions the two brokers lead by turns, and wait until all are followed."""
    a, b = world.ids["A"], world.ids["B"]
    client = SimClient(world)
    client.create_topic(TOPIC, *[[a, b] if number % 2 else [b, a] for number in range(PARTITIONS)])
    assert world.until(lambda: all(_is_followed(world, tp) for tp in TPS), WAIT_S)


def _is_followed(world: World, tp: TopicPartition) -> bool:
    leader, follower = ("A", "B") if tp.partition % 2 else ("B", "A")
    broker = world.nodes[follower].broker
    replica = None if broker is None else broker.state.replicas.get(tp)
    return leads(world, leader, tp) and replica is not None and replica.phase is Phase.FETCHING


@pytest.mark.parametrize(("asks_max", "rounds"), [(1_000, 1), (70, 3)])
def test_three_hundred_partitions_have_one_fetch_in_flight_in_each_direction(asks_max: int, rounds: int) -> None:
    world = World(protocol="kip380", ids=IDS, settings={"together": Together(asks_max=asks_max)})
    boot(world)
    flights = InFlight(world)
    created(world)
    fetches = {pair[:2]: most for pair, most in flights.most.items() if pair[2] is FetchRequest}
    assert fetches == {("A", world.ids["B"]): 1, ("B", world.ids["A"]): 1}
    world.run(0.1)
    before = flights.sent[FetchRequest]
    world.run(5.0)
    # Idle, each of two followers asks for all in the time that a fetch may wait.
    turns = 2 * 5.0 / 0.5 * rounds
    assert 0.8 * turns <= flights.sent[FetchRequest] - before <= 1.2 * turns


def test_each_of_three_hundred_partitions_is_replicated() -> None:
    world = World(protocol="kip380", ids=IDS, settings={"together": Together(asks_max=70)})
    boot(world)
    created(world)
    client = SimClient(world)
    for tp in TPS[::29]:
        client.produce(tp.topic, tp.partition, "m", ["m.0"], acks=-1)
    for tp in TPS[::29]:
        assert [1, 1] == [world.nodes[name].disk.logs[tp].end_offset for name in ("A", "B")]


def test_broker_that_comes_back_asks_about_the_epochs_of_all_its_logs_together() -> None:
    world = World(protocol="kip380", ids=IDS)
    boot(world)
    created(world)
    for tp in TPS:  # of a log without records no epoch is known
        SimClient(world).produce(tp.topic, tp.partition, "m", ["m.0"], acks=1)
    world.run(1.0)
    flights = InFlight(world)
    world.nodes["B"].kill()
    world.nodes["B"].boot()
    assert world.until(lambda: _follows_all(world), WAIT_S)
    questions = {pair[:2]: most for pair, most in flights.most.items() if pair[2] is OffsetForLeaderEpochRequest}
    assert set(questions.values()) == {1}
    assert flights.sent[OffsetForLeaderEpochRequest] < PARTITIONS / 3


def _follows_all(world: World) -> bool:
    broker = world.nodes["B"].broker
    replicas = {} if broker is None else broker.state.replicas
    return len(replicas) == PARTITIONS and all(r.phase is Phase.FETCHING for r in replicas.values())
