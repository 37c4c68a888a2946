"""The admin clients of confluent-kafka, kafka-python and aiokafka on three of our brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import aiokafka
import aiokafka.admin
import pytest
from confluent_kafka import ElectionType, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from harness import limits
from harness.cluster.cluster import Cluster
from harness.launch import Address
from tests.broker.stacks.kafka_python import kafka
from tests.clusters import admin_of, await_leaders, bootstrap, leaders, running
from tests.kept import exhaustive

pytestmark = pytest.mark.slow

IDS: Final = {"A": 1, "B": 2, "C": 3}
WAIT_S: Final = limits.CLIENT_OPERATION_S_MAX
# Kafka's number of a topic's own setting (KIP-226).
DYNAMIC_TOPIC_CONFIG: Final = 1
# Of three records.
TIMES_MS: Final = (1_000, 2_000, 3_000)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: Address) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("admin") / "run", zookeeper, "kip380", IDS) as made:
        yield made


def write(cluster: Cluster, topic: str) -> None:
    """Write a record at each of the times, to partition 0."""
    settings = {"bootstrap.servers": bootstrap(cluster), "acks": "all", "log_level": 0}
    producer = Producer(settings)
    for time in TIMES_MS:
        producer.produce(topic, b"m", partition=0, timestamp=time)
        assert producer.flush(WAIT_S) == 0


@exhaustive
def test_confluent_kafkas_admin_client(cluster: Cluster) -> None:
    admin, topic = admin_of(cluster), "confluent"
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(timeout=WAIT_S)
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(timeout=WAIT_S)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(timeout=WAIT_S)
    with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(timeout=WAIT_S)
    await_leaders(cluster, topic, 3)
    assert set(IDS.values()) == {node.id for node in admin.describe_cluster().result(timeout=WAIT_S).nodes}
    told = admin.describe_topics(TopicCollection([topic]))[topic].result(timeout=WAIT_S)
    assert [3] * 3 == [len(part.replicas) for part in told.partitions]
    wanted = ConfigResource(ResourceType.TOPIC, topic)
    entries: Any = admin.describe_configs([wanted])[wanted].result(timeout=WAIT_S)
    assert ("1", False) == (entries["min.insync.replicas"].value, entries["min.insync.replicas"].is_read_only)

    write(cluster, topic)
    place = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return int(admin.list_offsets({place: spec})[place].result(timeout=WAIT_S).offset)

    found = [
        offset(spec) for spec in (OffsetSpec.earliest(), OffsetSpec.for_timestamp(1_500), OffsetSpec.latest())
    ]
    assert [0, 1, 3] == found
    upto = TopicPartition(topic, 0, 2)
    assert 2 == admin.delete_records([upto])[upto].result(timeout=WAIT_S).low_watermark
    assert 2 == offset(OffsetSpec.earliest())
    beyond = TopicPartition(topic, 0, 9)
    with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
        admin.delete_records([beyond])[beyond].result(timeout=WAIT_S)
    elected = admin.elect_leaders(ElectionType.PREFERRED, [place]).result(timeout=WAIT_S)
    assert ["ELECTION_NOT_NEEDED"] == [error.name() for error in elected.values()]
    admin.delete_topics([topic])[topic].result(timeout=WAIT_S)
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics([topic])[topic].result(timeout=WAIT_S)
    anything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    with pytest.raises(KafkaException, match="_UNSUPPORTED_FEATURE"):  # not implemented, so not advertised
        admin.describe_acls(anything).result(timeout=WAIT_S)


def test_kafka_pythons_admin_client(cluster: Cluster) -> None:
    topic, errors = "kafka-python", kafka.errors
    place = kafka.TopicPartition(topic, 0)
    with closing(kafka.admin.KafkaAdminClient(bootstrap_servers=cluster.clients_addresses())) as admin:
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 2}})
        with pytest.raises(errors.TopicAlreadyExistsError):
            admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 2}})
        admin.create_partitions({topic: 2})
        await_leaders(cluster, topic, 2)
        assert topic in admin.list_topics()
        assert set(IDS.values()) == {each["broker_id"] for each in admin.describe_cluster()["brokers"]}
        write(cluster, topic)
        assert "min.insync.replicas" in str(
            admin.describe_configs([kafka.admin.ConfigResource("TOPIC", topic)], config_filter="all")
        )
        assert topic in str(admin.describe_log_dirs())
        assert 1 == admin.list_partition_offsets({place: 1_500})[place].offset
        assert 2 == admin.delete_records({place: 2})[place]["low_watermark"]

        def replicas() -> list[int]:
            (told,) = admin.describe_topics([topic])
            return list(told["partitions"][0]["replica_nodes"])

        first, second = replicas()
        (third,) = set(IDS.values()) - {first, second}
        moved = [third, first]
        # One that cannot end, as its new replica does not reach the leader, is listed once it is answered.
        names = {broker: name for name, broker in IDS.items()}
        cut = cluster.fabric.cut(names[third], names[leaders(cluster, topic)[0]])
        assert {place: None} == admin.alter_partition_reassignments({place: moved})
        assert topic in str(admin.list_partition_reassignments())
        cluster.fabric.heal(cut)
        cluster.await_(lambda: replicas() == moved, lambda: f"{place} moved to {moved}, not {replicas()}")
        cluster.await_(lambda: not admin.list_partition_reassignments(), lambda: f"the move of {place} over")
        assert {place: errors.NoReassignmentInProgressError} == admin.alter_partition_reassignments({place: None})
        admin.elect_leaders(0, {topic: [0]})
        assert third == leaders(cluster, topic)[0]
        admin.delete_topics([topic])
        with pytest.raises(errors.UnknownTopicOrPartitionError):
            admin.delete_topics([topic])
        with pytest.raises(errors.IncompatibleBrokerVersion):  # not implemented, so not advertised
            admin.describe_acls(
                kafka.admin.ACLFilter(
                    principal=None,
                    host=None,
                    operation=kafka.admin.ACLOperation.ANY,
                    permission_type=kafka.admin.ACLPermissionType.ANY,
                    resource_pattern=kafka.admin.ResourcePatternFilter(
                        kafka.admin.ResourceType.TOPIC, None, kafka.admin.ACLResourcePatternType.ANY
                    ),
                )
            )


@exhaustive
def test_aiokafkas_admin_client(cluster: Cluster) -> None:
    topic = "aiokafka"

    async def play() -> None:
        admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap(cluster))
        await admin.start()
        try:
            made = await admin.create_topics([aiokafka.admin.NewTopic(topic, 1, 3)])
            assert 0 == made.topic_errors[0][1]
            more = await admin.create_partitions({topic: aiokafka.admin.NewPartitions(2)})
            assert 0 == more.topic_errors[0][1]
            await_leaders(cluster, topic, 2)
            write(cluster, topic)
            place = aiokafka.TopicPartition(topic, 0)
            deleted = await admin.delete_records({place: aiokafka.admin.RecordsToDelete(2)})
            assert {place: 2} == deleted
            kind = aiokafka.admin.config_resource.ConfigResourceType.TOPIC
            wish = aiokafka.admin.config_resource.ConfigResource(kind, topic, {"retention.ms": "70000"})
            (altered,) = await admin.alter_configs([wish])
            assert 0 == altered.resources[0][0]
            (told,) = await admin.describe_configs([aiokafka.admin.config_resource.ConfigResource(kind, topic)])
            assert "70000" in str(told)
            assert set(IDS.values()) == {each["node_id"] for each in (await admin.describe_cluster())["brokers"]}
            gone = await admin.delete_topics([topic])
            assert 0 == gone.topic_error_codes[0][1]
        finally:
            await admin.close()

    asyncio.run(play())


def test_settings_are_altered_one_by_one_and_all_together(cluster: Cluster) -> None:
    admin = admin_of(cluster)
    made = NewTopic("altered", config={"segment.bytes": "4096"})  # partitions and replicas: the defaults (KIP-464)
    admin.create_topics([made])["altered"].result(timeout=WAIT_S)

    def own() -> dict[str, str]:
        asked = ConfigResource(ResourceType.TOPIC, "altered")
        found: Any = admin.describe_configs([asked])[asked].result(timeout=WAIT_S)
        return {name: entry.value for name, entry in found.items() if entry.source == DYNAMIC_TOPIC_CONFIG}

    def alter(**settings: str) -> None:
        wish = [
            ConfigEntry(name.replace("_", "."), text, incremental_operation=AlterConfigOpType.SET)
            for name, text in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, "altered", incremental_configs=wish)
        admin.incremental_alter_configs([resource])[resource].result(timeout=WAIT_S)

    assert {"segment.bytes": "4096"} == own()
    alter(retention_ms="70000")
    assert {"segment.bytes": "4096", "retention.ms": "70000"} == own()
    with pytest.raises(KafkaException, match="a whole number from 1"):
        alter(retention_ms="0")
    whole = ConfigResource(ResourceType.TOPIC, "altered", set_config={"flush.messages": "9"})
    with pytest.deprecated_call():
        admin.alter_configs([whole])[whole].result(timeout=WAIT_S)
    assert {"flush.messages": "9"} == own()
    with closing(kafka.admin.KafkaAdminClient(bootstrap_servers=cluster.clients_addresses())) as other:
        for incremental in (True, False):
            bytes_kept = "70000" if incremental else "80000"
            wanted = kafka.admin.ConfigResource("TOPIC", "altered", {"retention.bytes": bytes_kept})
            other.alter_configs([wanted], incremental=incremental)
            other.alter_configs([wanted], validate_only=True)
            assert bytes_kept == own()["retention.bytes"]
