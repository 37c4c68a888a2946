"""Real Kafka clients (librdkafka) on three brokers: writes, reads, errors, and leader changes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness import limits
from harness.cluster.cluster import Cluster
from harness.launch import Address
from harness.logs.replica import ReplicaLog
from harness.model import PreconditionError
from targets.broker.core.assignments import decode_topic, encode_assignment
from targets.broker.core.made import made_path
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import topic_path
from targets.kafka_family.clients.librdkafka import LibrdkafkaClient
from targets.kafka_family.logs.codec import codec_name
from tests.clusters import disk, running
from tests.kept import keep

pytestmark = pytest.mark.slow

IDS = {"A": 3, "B": 1, "C": 8}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_topics = itertools.count()
_led: set[str] = set()


@pytest.fixture(scope="module", params=keep(["hw", "kip101", "kip279", "kip320", "kip380"], "hw", "kip380"))
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper: Address
) -> Iterator[Cluster]:
    """Three brokers; acks=all requires two replicas in sync."""
    run_dir = tmp_path_factory.mktemp("clients") / request.param
    with running(run_dir, zookeeper, request.param, IDS, settings={"min_isr": 2}) as made:
        made.history.listeners.append(lambda op: _led.add(op.value["topic"]) if op.f == "leader" else None)
        yield made


@pytest.fixture
def client(cluster: Cluster) -> LibrdkafkaClient:
    """The client that workloads use, without retries."""
    return LibrdkafkaClient(history=cluster.history, bootstrap=cluster.clients_addresses)


def config(cluster: Cluster, **more: object) -> dict[str, object]:
    """Return a client's configuration; it does not log the brokers that end with their test."""
    return {"bootstrap.servers": ",".join(cluster.clients_addresses()), "log_level": 0, **more}


def made(cluster: Cluster, client: LibrdkafkaClient, *nodes: str) -> str:
    """Create a topic on these nodes; wait until all are in sync and the leader has reported its leadership."""
    topic = f"topic-{next(_topics)}"
    client.create_topic(topic, [IDS[name] for name in nodes])
    cluster.await_(
        lambda: topic in _led and _isr(cluster, topic) == set(nodes),
        lambda: f"{topic} led and in sync on {nodes}, not {cluster.metadata.truth(topic, 0)}",
    )
    return topic


def _isr(cluster: Cluster, topic: str) -> set[str | None]:
    truth = cluster.metadata.truth(topic, 0)
    return set() if truth is None else set(truth.in_sync)


def log_of(cluster: Cluster, name: str, topic: str) -> ReplicaLog:
    """Read a replica's log from its files."""
    found = cluster.host.replica_log(name, topic, 0)
    assert found is not None, f"{name} has no log of {topic}"
    return found


def values(count: int) -> list[str]:
    """Return values long enough for every codec to shorten them."""
    return [f"{number}-" + "x" * 100 for number in range(count)]


@pytest.mark.parametrize("codec", CODECS)
def test_client_reads_back_exactly_what_it_wrote_and_both_replicas_hold_it(
    cluster: Cluster, client: LibrdkafkaClient, codec: str
) -> None:
    topic = made(cluster, client, "A", "B")
    assert list(range(20)) == client.produce(topic, 0, "m1", values(20), acks=-1, codec=codec)
    assert list(enumerate(values(20))) == client.read_all(topic, 0)
    # With acks=all both replicas already have the records.
    leader, follower = (log_of(cluster, name, topic) for name in ("A", "B"))
    assert leader.batches == follower.batches
    assert [(codec, 0, 19)] == [(batch.codec, batch.base, batch.last) for batch in follower.batches]
    assert list(enumerate(values(20))) == [(r[0], r[2]) for batch in leader.batches for r in batch.records]
    epoch = 0 if PROTOCOLS[cluster.protocol].epochs else -1
    assert {epoch} == {batch.epoch for batch in leader.batches}


def test_codecs_are_all_that_kafka_has() -> None:
    assert list(CODECS) == [codec_name(number) for number in range(5)]


@pytest.mark.parametrize("acks", [1, 0])
def test_client_that_waits_for_less_reads_back_what_it_wrote_too(
    cluster: Cluster, client: LibrdkafkaClient, acks: int
) -> None:
    topic = made(cluster, client, "B", "C")
    client.produce(topic, 0, "m1", values(5), acks=acks, singly=True)
    cluster.await_(
        lambda: [5, 5] == [log_of(cluster, name, topic).log_end_offset for name in ("B", "C")],
        lambda: "five records on both replicas",
    )
    # Consumers read up to the high watermark, which reaches the end with the follower's next fetch.
    cluster.await_(lambda: _high_watermark(cluster, topic) == 5, lambda: "a high watermark of 5")
    assert list(enumerate(values(5))) == client.read_all(topic, 0)


def _high_watermark(cluster: Cluster, topic: str) -> int:
    return log_of(cluster, "B", topic).high_watermark or 0


def test_record_that_too_few_replicas_would_hold_is_refused_and_not_appended(
    cluster: Cluster, client: LibrdkafkaClient
) -> None:
    topic = made(cluster, client, "C")
    with pytest.raises(PreconditionError, match="0 of 1 records acknowledged; \\['NOT_ENOUGH_REPLICAS'\\]"):
        client.produce(topic, 0, "m1", values(1), acks=-1)
    assert [0] == client.produce(topic, 0, "m2", values(1), acks=1)


def test_topic_that_was_written_into_zookeeper_is_served_and_gets_a_mark_where_topics_have_identity(
    cluster: Cluster, client: LibrdkafkaClient
) -> None:
    """Old tools create topics in that way; the mark tells the topic from the next one of its name."""
    topic = f"topic-{next(_topics)}"
    path = topic_path(topic)
    cluster.metadata.update(path, lambda _: encode_assignment({0: (IDS["B"], IDS["C"])}))
    in_sync = {"B", "C"}
    cluster.await_(
        lambda: topic in _led and _isr(cluster, topic) == in_sync, lambda: f"{topic} led and in sync on B and C"
    )
    assert list(range(5)) == client.produce(topic, 0, "m1", values(5), acks=-1)
    assert list(enumerate(values(5))) == client.read_all(topic, 0)
    mark = decode_topic(cluster.metadata.read(path) or b"").made
    assert bool(mark) == PROTOCOLS[cluster.protocol].topic_identity
    if mark:
        assert b"" == cluster.metadata.read(made_path(topic, mark))


def test_deleted_topic_leaves_no_directory_and_no_metadata(cluster: Cluster, client: LibrdkafkaClient) -> None:
    topic = made(cluster, client, "A", "B", "C")
    client.produce(topic, 0, "m1", values(3), acks=-1)
    admin = AdminClient(config(cluster))
    admin.delete_topics([topic])[topic].result(timeout=limits.CLIENT_OPERATION_S_MAX)

    def left() -> list[str]:
        return [path.name for name in IDS for path in disk(cluster, name).glob(f"{topic}-0*")]

    cluster.await_(lambda: not left(), lambda: f"no directory of {topic}, not {left()}")
    found = admin.list_topics(timeout=limits.CLIENT_OPERATION_S_MAX).topics
    assert topic not in found
    with pytest.raises(KafkaException) as caught:
        admin.delete_topics([topic])[topic].result(timeout=limits.CLIENT_OPERATION_S_MAX)
    assert KafkaError.UNKNOWN_TOPIC_OR_PART == caught.value.args[0].code()


def test_topic_that_is_made_again_at_once_takes_nothing_of_its_predecessor(
    cluster: Cluster, client: LibrdkafkaClient
) -> None:
    """The followers hear of the deletion late, when their fetches were answered with an error already."""
    topic = made(cluster, client, "A", "B", "C")
    client.produce(topic, 0, "m1", values(3), acks=-1)
    admin = AdminClient(config(cluster))
    late = [cluster.fabric.delay("stop-command", "*", name, "request", 0.05) for name in ("B", "C")]
    _led.discard(topic)
    admin.delete_topics([topic])[topic].result(timeout=limits.CLIENT_OPERATION_S_MAX)
    client.create_topic(topic, list(IDS.values()))
    cluster.await_(lambda: topic in _led and _isr(cluster, topic) == set(IDS), lambda: f"{topic} led and in sync")
    for rule in late:
        cluster.fabric.heal(rule)
    sent: list[str] = []
    for turn in range(5):
        group = [f"again-{turn}.{number}" for number in range(3)]
        assert [len(sent) + at for at in range(3)] == client.produce(topic, 0, f"m2-{turn}", group, acks=-1)
        sent += group

    def held() -> list[list[str]]:
        logs = [log_of(cluster, name, topic) for name in IDS]
        return [[record[2] for batch in log.batches for record in batch.records] for log in logs]

    cluster.await_(lambda: held() == [sent] * 3, lambda: f"{sent} on all, not {held()}")
    ids = [(disk(cluster, name) / f"{topic}-0" / "partition.metadata") for name in IDS]
    if PROTOCOLS[cluster.protocol].topic_identity:
        assert 1 == len({path.read_text() for path in ids})
    else:
        assert not any(path.exists() for path in ids)


def test_topic_that_is_there_is_not_made_again(cluster: Cluster, client: LibrdkafkaClient) -> None:
    topic = made(cluster, client, "A")
    with pytest.raises(PreconditionError, match="TOPIC_ALREADY_EXISTS"):
        client.create_topic(topic, [IDS["A"]])


def test_client_that_places_nothing_gets_partitions_that_lead_on_different_brokers(cluster: Cluster) -> None:
    topic = f"topic-{next(_topics)}"
    admin = AdminClient(config(cluster))
    asked = admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=2)])
    asked[topic].result(timeout=limits.CLIENT_OPERATION_S_MAX)
    cluster.await_(
        lambda: all(cluster.metadata.truth(topic, number) for number in range(3)), lambda: "three partitions"
    )
    metadata = admin.list_topics(topic, timeout=limits.CLIENT_OPERATION_S_MAX)
    partitions = metadata.topics[topic].partitions
    assert set(IDS.values()) == {partition.leader for partition in partitions.values()}
    assert [2, 2, 2] == [len(partition.replicas) for partition in partitions.values()]
    assert set(IDS.values()) == set(metadata.brokers)
    assert IDS["A"] == metadata.controller_id


def consumed(cluster: Cluster, topic: str, offset: int) -> KafkaError | None:
    """Consume from an offset without automatic reset; return the error, None for a record."""
    consumer = Consumer(
        config(cluster, **{"group.id": "none", "auto.offset.reset": "error", "enable.auto.commit": False})
    )
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = consumer.poll(limits.CLIENT_OPERATION_S_MAX)
        assert message is not None
        return message.error()
    finally:
        consumer.close()


def test_consumer_that_asks_beyond_the_logs_end_is_out_of_range(
    cluster: Cluster, client: LibrdkafkaClient
) -> None:
    topic = made(cluster, client, "A", "C")
    client.produce(topic, 0, "m1", values(3), acks=-1)
    assert consumed(cluster, topic, 2) is None
    error = consumed(cluster, topic, 4)
    assert error is not None
    assert KafkaError._AUTO_OFFSET_RESET == error.code()
    assert "out of range" in error.str()


def test_topic_that_is_not_there_is_unknown_to_readers_and_writers(
    cluster: Cluster, client: LibrdkafkaClient
) -> None:
    admin = AdminClient(config(cluster))
    metadata = admin.list_topics("nothing", timeout=limits.CLIENT_OPERATION_S_MAX)
    assert KafkaError.UNKNOWN_TOPIC_OR_PART == metadata.topics["nothing"].error.code()
    errors: list[KafkaError | None] = []
    # By default a producer waits half a minute for an unknown topic, which may just have been created.
    producer = Producer(config(cluster, **{"topic.metadata.propagation.max.ms": 0}))
    producer.produce("nothing", b"m1", partition=0, on_delivery=lambda error, _: errors.append(error))
    assert 0 == producer.flush(limits.CLIENT_OPERATION_S_MAX)
    assert [KafkaError.UNKNOWN_TOPIC_OR_PART] == [error and error.code() for error in errors]
    with pytest.raises(PreconditionError, match="nothing-0"):
        client.read_all("nothing", 0)


def test_connected_client_finds_the_new_leader_when_leadership_moves(
    cluster: Cluster, client: LibrdkafkaClient
) -> None:
    topic = made(cluster, client, "B", "C")
    offsets: list[int | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = Producer(config(cluster, acks="all"))
    producer.produce(topic, b"before", partition=0, on_delivery=delivered)
    assert 0 == producer.flush(limits.CLIENT_OPERATION_S_MAX)
    cluster.operator.expire("B")
    cluster.await_(
        lambda: (truth := cluster.metadata.truth(topic, 0)) is not None and truth.leader == "C",
        lambda: f"{topic} led by C, not {cluster.metadata.truth(topic, 0)}",
    )
    producer.produce(topic, b"after", partition=0, on_delivery=delivered)
    assert 0 == producer.flush(limits.CLIENT_OPERATION_S_MAX)
    assert [0, 1] == offsets
    cluster.await_(
        lambda: _isr(cluster, topic) == {"B", "C"},
        lambda: "B back in the ISR",
    )
    assert [(0, "before"), (1, "after")] == client.read_all(topic, 0)
