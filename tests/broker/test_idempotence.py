"""Idempotent producers of real clients: what is sent again after a lost answer is in the log once."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from harness import limits
from harness.cluster.cluster import Cluster
from harness.fabric.core.rules import ANY, CLIENTS
from harness.launch import Address
from targets.kafka_family.clients.librdkafka import LibrdkafkaClient
from tests.clusters import running
from tests.kept import exhaustive

pytestmark = pytest.mark.slow

NODE, ID, TOPIC = "A", 1, "log"
SENT = ["m1", "m2", "m3"]
SETTINGS = {"enable.idempotence": True, "retry.backoff.ms": 10, "log_level": 0}


def made(cluster: Cluster) -> str:
    """Create the topic; return the address for clients."""
    client = LibrdkafkaClient(history=cluster.history, bootstrap=cluster.clients_addresses)
    client.create_topic(TOPIC, [ID])
    cluster.await_(lambda: cluster.leader() == NODE, lambda: f"{NODE} leads")
    return ",".join(cluster.clients_addresses())


def read(address: str) -> list[str]:
    """Read the topic from its start to its end."""
    settings = {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found = []
    while (message := consumer.poll(limits.CLIENT_OPERATION_S_MAX)) is not None and message.error() is None:
        found.append(message.value().decode())
    consumer.close()
    return found


@pytest.mark.parametrize(
    ("change", "there"),
    [
        ("idempotence=yes", SENT),
        pytest.param("idempotence=no", ["m1", "m2", "m2", "m3"], marks=exhaustive),
    ],
)
def test_what_librdkafka_sends_again_after_a_lost_answer_is_there_once_or_without_the_rule_twice(
    tmp_path: Path, zookeeper: Address, change: str, there: list[str]
) -> None:
    """Source: KIP-98, Idempotent Producer Guarantees."""
    with running(
        tmp_path / "run", zookeeper, "kip380", {NODE: ID}, replicas=(NODE,), client_links=True, changes=(change,)
    ) as cluster:
        address = made(cluster)
        producer = Producer({**SETTINGS, "bootstrap.servers": address})
        offsets: list[int] = []

        def send(value: str) -> None:
            producer.produce(TOPIC, value, partition=0, on_delivery=lambda _error, m: offsets.append(m.offset()))

        send("m1")
        assert 0 == producer.flush(limits.CLIENT_OPERATION_S_MAX)
        hold = cluster.fabric.hold(ANY, CLIENTS, NODE, "answer")
        send("m2")
        cluster.await_(lambda: cluster.log_end(NODE) == 2, lambda: f"m2 is appended, not {cluster.log_end(NODE)}")
        cluster.fabric.drop(hold)
        send("m3")
        assert 0 == producer.flush(limits.CLIENT_OPERATION_S_MAX)
        assert there == read(address)
        assert [0, len(there) - 2, len(there) - 1] == offsets
