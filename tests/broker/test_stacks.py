"""Three client stacks on one cluster: each manages topics, writes records, and reads those of the others."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.cluster.cluster import Cluster
from harness.launch import Address
from tests.broker.stacks import STACKS, Place, Stack
from tests.broker.stacks.kafka_python import KafkaPython
from tests.clusters import running
from tests.kept import exhaustive, keep

pytestmark = [
    pytest.mark.slow,
    # kafka-python leaves sockets to the garbage collector.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
    ),
]

IDS = {"A": 3, "B": 1, "C": 8}
# The libraries name Kafka's errors differently.
THERE = {"TOPIC_ALREADY_EXISTS", "TopicAlreadyExistsError"}
GONE = {"UNKNOWN_TOPIC_OR_PART", "UnknownTopicOrPartitionError"}
_numbers = itertools.count()


@dataclass(slots=True, kw_only=True)
class StackCluster:
    """A cluster, and the partitions whose leaders have reported themselves."""

    cluster: Cluster
    led: set[Place]

    def topic(self, stack: Stack, partitions: int = 1, replicas: int = 2) -> str:
        """Create a topic and wait until its leaders have reported themselves."""
        topic = f"topic-{next(_numbers)}"
        assert "" == stack.create(topic, partitions, replicas)
        wanted = {(topic, number) for number in range(partitions)}
        self.cluster.await_(lambda: wanted <= self.led, lambda: f"leaders of {wanted - self.led}")
        return topic


@pytest.fixture(scope="module", params=keep(["kip320", "kip380"], "kip380"))
def brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper: Address
) -> Iterator[StackCluster]:
    """Three brokers."""
    run_dir = tmp_path_factory.mktemp("stacks") / request.param
    with running(run_dir, zookeeper, request.param, IDS) as cluster:
        made = StackCluster(cluster=cluster, led=set())
        cluster.history.listeners.append(
            lambda op: made.led.add((op.value["topic"], op.value["partition"])) if op.f == "leader" else None
        )
        yield made


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect kafka-python's open sockets here, where the warning is ignored, and not in a later test."""
    yield
    gc.collect()


@pytest.fixture(params=keep(STACKS, "librdkafka", "aiokafka"))
def stack(request: pytest.FixtureRequest, brokers: StackCluster) -> Stack:
    """One of the libraries."""
    return STACKS[request.param](brokers.cluster.clients_addresses)


def others(brokers: StackCluster, codec: str) -> list[Stack]:
    """Return all stacks that support the codec."""
    made = [kind(brokers.cluster.clients_addresses) for kind in STACKS.values()]
    return [stack for stack in made if codec in stack.codecs]


def values(first: int, count: int) -> dict[int, bytes]:
    """Return timestamp in ms -> value, long enough for every codec to shorten it."""
    return {1_000 * number: b"%d-" % number + b"x" * 100 for number in range(first, first + count)}


def test_topic_is_made_described_and_deleted_once(brokers: StackCluster, stack: Stack) -> None:
    topic = brokers.topic(stack, partitions=3)
    assert topic in stack.topics()
    told = stack.describe(topic)
    assert {0, 1, 2} == told.keys()
    assert set(IDS.values()) == {leader for leader, _, _ in told.values()}
    assert [(2, 2)] * 3 == [(replicas, in_sync) for _, replicas, in_sync in told.values()]
    assert stack.create(topic, 3, 2) in THERE
    assert "" == stack.delete(topic)
    assert topic not in stack.topics()
    assert stack.delete(topic) in GONE


def test_records_under_every_codec_are_read_by_every_stack_that_knows_it(
    brokers: StackCluster, stack: Stack
) -> None:
    for codec in stack.codecs:
        topic = brokers.topic(stack)
        sent = values(1, 40)
        assert list(range(40)) == stack.produce((topic, 0), sent, acks=-1, codec=codec)
        for reader in others(brokers, codec):
            with reader.reader((topic, 0)) as reading:
                assert [(topic, 0, at, value) for at, value in enumerate(sent.values())] == reading.take(40)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_record_is_there_whoever_must_acknowledge_it(brokers: StackCluster, stack: Stack, acks: int) -> None:
    topic = brokers.topic(stack)
    assert ([0] if acks else []) == stack.produce((topic, 0), {1: b"m1"}, acks=acks, codec="none")
    with stack.reader((topic, 0)) as reading:
        assert [(topic, 0, 0, b"m1")] == reading.take(1)


def test_reader_of_many_partitions_seeks_in_each(brokers: StackCluster, stack: Stack) -> None:
    one, two = brokers.topic(stack, partitions=2), brokers.topic(stack)
    places: tuple[Place, ...] = ((one, 0), (one, 1), (two, 0))
    for at, place in enumerate(places):
        stack.produce(place, values(100 * at, 30), acks=-1, codec="none", singly=True)
    with stack.reader(*places) as reading:
        whole = [
            (*place, offset, b"%d-" % (100 * at + offset))
            for at, place in enumerate(places)
            for offset in range(30)
        ]
        # Sort both, since topic-10 sorts before topic-9.
        taken = [(*record[:3], record[3].rstrip(b"x")) for record in reading.take(90)]
        assert sorted(whole) == sorted(taken)
        reading.seek((one, 1), 27)
        assert [(one, 1, offset) for offset in (27, 28, 29)] == [record[:3] for record in reading.take(3)]


def test_offsets_are_found_by_time_and_at_both_ends(brokers: StackCluster, stack: Stack) -> None:
    topic = brokers.topic(stack)
    assert (0, 0) == stack.bounds((topic, 0))
    assert stack.offset_at((topic, 0), 1) is None
    stack.produce((topic, 0), values(1, 3), acks=-1, codec="none", singly=True)
    assert (0, 3) == stack.bounds((topic, 0))
    assert [0, 0, 1, 2, None] == [stack.offset_at((topic, 0), when) for when in (0, 1_000, 1_500, 3_000, 3_001)]


def test_reader_and_writer_go_on_when_the_leader_dies_and_comes_back(brokers: StackCluster, stack: Stack) -> None:
    """The session is expired: a bounce that the controller misses leaves kip320 without a leader (KAFKA-1120)."""
    cluster = brokers.cluster
    topic = brokers.topic(stack)
    place = (topic, 0)

    def stands() -> tuple[int, int]:
        leader, _, in_sync = stack.describe(topic)[0]
        return leader, in_sync

    stack.produce(place, values(1, 5), acks=-1, codec="none")
    first, _ = stands()
    (name,) = [name for name, broker in IDS.items() if broker == first]
    with stack.reader(place) as reading:
        assert list(range(5)) == [record[2] for record in reading.take(5)]
        cluster.take_down(name, cluster.host.kill)
        cluster.operator.expire(name)
        cluster.await_(lambda: stands()[0] not in (-1, first), lambda: f"another leader, not {stands()}")
        assert list(range(5, 10)) == stack.produce(place, values(6, 5), acks=-1, codec="none")
        assert list(range(5, 10)) == [record[2] for record in reading.take(5)]
        cluster.start(name)
        cluster.await_(lambda: stands()[1] == 2, lambda: f"both replicas in sync, not {stands()}")
        assert list(range(10, 15)) == stack.produce(place, values(11, 5), acks=-1, codec="none")
        assert list(range(10, 15)) == [record[2] for record in reading.take(5)]
    assert (0, 15) == stack.bounds(place)


@exhaustive
def test_consumer_goes_on_with_a_fetch_session_and_is_told_of_news_alone(brokers: StackCluster) -> None:
    """Source: KIP-227. kafka-python keeps one session with each broker, as Java's consumer does."""
    stack = KafkaPython(brokers.cluster.clients_addresses)
    topic = brokers.topic(stack, partitions=3, replicas=1)
    places = [(topic, number) for number in range(3)]
    with stack.reader(*places) as reading:
        for offset in range(3):
            for place in places:
                stack.produce(place, values(offset, 1), acks=-1, codec="none")
            assert sorted((*place, offset) for place in places) == sorted(r[:3] for r in reading.take(3))
        sessions = [handler.next_metadata for handler in reading.sessions.values()]
        assert [True] * 3 == [each.session_id > 0 and each.epoch > 2 for each in sessions]
