"""librdkafka against the wire and the log: the advertised versions enable all of its features."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.limits import CLIENT_OPERATION_S_MAX
from targets.broker.core.rules import PROTOCOLS
from targets.broker.log.batch import parse_header
from targets.broker.wire import client_rows, versions
from tests.broker.log.batches import TP, all_of
from tests.broker.wire.tiny_server import BROKER_ID, TinyBroker, running

pytestmark = pytest.mark.slow

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TinyBroker]:
    with running(tmp_path / "data") as served:
        yield served


def produce(broker: TinyBroker, values: list[bytes], **config: object) -> list[int]:
    """Produce values; return the acknowledged offsets, -1 for an acknowledgement without an offset."""
    settings = {"bootstrap.servers": f"127.0.0.1:{broker.port}", "linger.ms": 50, **config}
    producer = Producer(settings)
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offset = message.offset()
        offsets.append(-1 if offset is None or offset < 0 else offset)

    for value in values:
        producer.produce(TP.topic, value, partition=0, on_delivery=delivered)
    left = producer.flush(CLIENT_OPERATION_S_MAX)
    assert 0 == left
    return sorted(offsets)


@contextmanager
def assigned(broker: TinyBroker) -> Iterator[Consumer]:
    """Yield a consumer that starts at offset 0."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "unused",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    try:
        consumer.assign([ClientPartition(TP.topic, 0, 0)])
        yield consumer
    finally:
        consumer.close()


def take(consumer: Consumer, count: int) -> list[tuple[int, bytes]]:
    """Read until there are `count` records or the time is up."""
    found: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + CLIENT_OPERATION_S_MAX
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            found.append((message.offset() or 0, message.value() or b""))
    return found


def consume(broker: TinyBroker, count: int) -> list[tuple[int, bytes]]:
    """Read `count` records from offset 0 with a new consumer."""
    with assigned(broker) as consumer:
        return take(consumer, count)


def test_librdkafka_reads_metadata(broker: TinyBroker) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    metadata = producer.list_topics(timeout=CLIENT_OPERATION_S_MAX)
    assert [BROKER_ID] == list(metadata.brokers)
    assert {0: [BROKER_ID]} == {p: m.isrs for p, m in metadata.topics[TP.topic].partitions.items()}
    assert (versions.API_VERSIONS, 3) == broker.seen[0]


def test_librdkafka_is_told_why_a_topic_was_not_created(broker: TinyBroker) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    asked = admin.create_topics([NewTopic("topic", 1, 1)], request_timeout=CLIENT_OPERATION_S_MAX)
    error = asked["topic"].exception(CLIENT_OPERATION_S_MAX)
    assert isinstance(error, KafkaException)
    assert (KafkaError.TOPIC_ALREADY_EXISTS, "there") == (error.args[0].code(), error.args[0].str())


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_produces_and_reads_back_under_every_compression(broker: TinyBroker, codec: str) -> None:
    values = [b"%d-" % at + b"x" * 100 for at in range(20)]
    offsets = produce(broker, values, **{"acks": "all", "compression.type": codec})
    assert list(range(20)) == offsets
    stored = {parse_header(batch.payload).attributes & 7 for batch in all_of(broker.log)}
    assert {CODECS.index(codec)} == stored
    assert list(enumerate(values)) == consume(broker, 20)


def test_librdkafka_does_not_wait_for_an_answer_with_acks_0(broker: TinyBroker) -> None:
    assert [-1] == produce(broker, [b"m"], acks=0)
    assert [(0, b"m")] == consume(broker, 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_librdkafka_reads_on_when_leaders_change_whatever_the_protocol_tells_of_epochs(
    broker: TinyBroker, protocol: str
) -> None:
    """
    librdkafka would send OffsetForLeaderEpoch v2 if it used the leader epochs of the metadata.

    Source:  KIP-320; librdkafka uses them from Metadata 9 on, the version of Kafka 2.4.
    """
    broker.rows = client_rows(protocol, PROTOCOLS[protocol])
    produce(broker, [b"m1"])
    with assigned(broker) as consumer:
        assert [(0, b"m1")] == take(consumer, 1)
        broker.epoch = 3
        consumer.list_topics(TP.topic, timeout=CLIENT_OPERATION_S_MAX)
        produce(broker, [b"m2"])
        assert [(1, b"m2")] == take(consumer, 1)
    assert {versions.PRODUCE, versions.FETCH, versions.METADATA} <= {key for key, _ in broker.seen}
    assert versions.OFFSET_FOR_LEADER_EPOCH not in {key for key, _ in broker.seen}
