"""Apache Kafka's own command-line tools of two releases, each on three of our brokers; logs of two formats."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    ConfigResource,
    NewTopic,
    ResourceType,
)

from harness import limits
from harness.cluster.cluster import Cluster
from harness.history.file import History, read_history
from harness.java import find_java
from harness.launch import Address
from harness.model import PreconditionError
from targets.broker.log.batch import producer_of
from targets.kafka.jars import cache_dir, jars_of, tools_of
from targets.kafka.releases import release_of
from targets.kafka_family.clients.librdkafka import LibrdkafkaClient
from targets.kafka_family.clients.raw import RawClient
from tests.broker.stacks.kafka_python import kafka
from tests.clusters import admin_of, await_leaders, bootstrap, disk, running
from tests.kept import exhaustive
from tests.needs import needs
from tests.targets.kafka_family.logs.scans import scan_partition

pytestmark = pytest.mark.slow

IDS: Final = {"A": 1, "B": 2, "C": 3}
TOOL_S_MAX: Final = 60.0
# The tools that have moved since 2.8, by their scripts' names.
OLD: Final = {
    "kafka-topics": "kafka.admin.TopicCommand",
    "kafka-log-dirs": "kafka.admin.LogDirsCommand",
    "kafka-delete-records": "kafka.admin.DeleteRecordsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-leader-election": "kafka.admin.LeaderElectionCommand",
    "kafka-reassign-partitions": "kafka.admin.ReassignPartitionsCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "kafka.tools.ConsoleConsumer",
}
NEW: Final = OLD | {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}
CLASSES: Final = {"2.8.2": OLD, "3.9.1": NEW}
JVM: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: Address) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("tools") / "run", zookeeper, "kip380", IDS) as made:
        yield made


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with closing(History(tmp_path / "history.jsonl")) as made:
        yield made


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of one release."""

    release: str
    cluster: Cluster

    @property
    def topic(self) -> str:
        """Return the topic of this release."""
        return f"topic-{self.release.replace('.', '-')}"

    def run(self, tool: str, *words: str, text: str = "") -> str:
        """Run a tool on the brokers; return all that it printed."""
        release = release_of(self.release)
        paths = [str(cache_dir() / jar.path) for jar in (*jars_of(release), *tools_of(release))]
        java = (str(find_java().executable), *JVM, "-cp", os.pathsep.join(paths))
        done = subprocess.run(
            [*java, CLASSES[self.release][tool], "--bootstrap-server", bootstrap(self.cluster), *words],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TOOL_S_MAX,
            check=False,
        )
        return done.stdout


@pytest.fixture(params=[pytest.param(name, marks=needs(f"kafka-{name}")) for name in CLASSES])
def tools(request: pytest.FixtureRequest, cluster: Cluster) -> Tools:
    """The tools of a release, whose jars `fencepost kafka fetch` has brought."""
    return Tools(release=request.param, cluster=cluster)


def made(tools: Tools, name: str, *words: str) -> str:
    """Create a topic of this release, with one partition on all brokers, and return its name."""
    topic = f"{tools.topic}-{name}"
    wish = words or ("--partitions", "1", "--replication-factor", "3")
    said = tools.run("kafka-topics", "--create", "--topic", topic, *wish)
    assert f"Created topic {topic}." in said, said
    await_leaders(tools.cluster, topic)
    return topic


def written(tools: Tools, name: str) -> str:
    """Create a topic of this release with three records, each in its batch, and return its name."""
    topic = made(tools, name)
    for number in range(3):
        _send(tools.cluster, topic, "none", [b"m%d" % number], 1_000 + number)
    return topic


def test_kafka_topics(tools: Tools) -> None:
    topic = f"{tools.topic}-made"
    asked = ("--topic", topic, "--partitions", "2", "--replication-factor", "3")
    assert f"Created topic {topic}." in tools.run("kafka-topics", "--create", *asked)
    assert "is there already" in tools.run("kafka-topics", "--create", *asked)
    seen = tools.run("kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 2\tReplicationFactor: 3" in seen
    assert 2 == seen.count("Partition: ")
    altered = tools.run("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "rror" not in altered, altered
    await_leaders(tools.cluster, topic, 5)
    assert topic in tools.run("kafka-topics", "--list").splitlines()
    tools.run("kafka-topics", "--delete", "--topic", topic)
    assert topic not in tools.run("kafka-topics", "--list").splitlines()
    assert "does not exist" in tools.run("kafka-topics", "--describe", "--topic", topic)


@exhaustive
def test_kafka_console_producer(tools: Tools) -> None:
    """In 2.8 it asks for acks=1 unless it is told otherwise, which an idempotent producer may not."""
    topic = made(tools, "written")
    writes = ("--topic", topic, "--request-required-acks", "all", "--producer-property", "enable.idempotence=true")
    tools.run("kafka-console-producer", *writes, text="m1\nm2\nm3\n")
    folder = disk(tools.cluster, "A") / f"{topic}-0"
    assert (0, 0) == producer_of((folder / f"{0:020d}.log").read_bytes())[1:], "the first batch of a producer"
    assert 3 == scan_partition(folder).batches[-1].last + 1


@exhaustive
def test_kafka_console_consumer(tools: Tools) -> None:
    topic = written(tools, "read")
    read = ("kafka-console-consumer", "--topic", topic, "--partition", "0")
    whole = tools.run(*read, "--offset", "earliest", "--max-messages", "3").splitlines()
    assert ["m0", "m1", "m2"] == [line for line in whole if line.startswith("m")]
    last = tools.run(*read, "--offset", "2", "--max-messages", "1").splitlines()
    assert ["m2"] == [line for line in last if line.startswith("m")]


@exhaustive
def test_kafka_delete_records(tools: Tools, tmp_path: Path) -> None:
    topic, before = written(tools, "deleted"), tmp_path / "before.json"

    def delete(offset: int) -> str:
        part = {"topic": topic, "partition": 0, "offset": offset}
        before.write_text(json.dumps({"version": 1, "partitions": [part]}))
        return tools.run("kafka-delete-records", "--offset-json-file", str(before))

    assert f"partition: {topic}-0\tlow_watermark: 2" in delete(2)
    assert "OffsetOutOfRange" in delete(9)
    read = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "1")
    assert "m2" in tools.run("kafka-console-consumer", *read).splitlines()


@exhaustive
def test_kafka_log_dirs(tools: Tools) -> None:
    topic = written(tools, "sized")
    sizes = json.loads(tools.run("kafka-log-dirs", "--describe", "--topic-list", topic).splitlines()[-1])
    logs = [log for broker in sizes["brokers"] for place in broker["logDirs"] for log in place["partitions"]]
    assert [f"{topic}-0"] * 3 == [log["partition"] for log in logs]
    size = (disk(tools.cluster, "A") / f"{topic}-0" / f"{0:020d}.log").stat().st_size
    assert size > 0 and [size] * 3 == [log["size"] for log in logs]


@exhaustive
def test_kafka_configs_describes_topics_and_brokers(tools: Tools) -> None:
    of_topic = ("--entity-type", "topics", "--entity-name", made(tools, "described"))
    assert "min.insync.replicas=1" in tools.run("kafka-configs", "--describe", "--all", *of_topic)
    of_broker = ("--entity-type", "brokers", "--entity-name", "2")
    assert "broker.id=2 " in tools.run("kafka-configs", "--describe", "--all", *of_broker)


@exhaustive
def test_kafka_configs_alters_a_topic_and_refuses_a_broker(tools: Tools) -> None:
    topic = f"{tools.topic}-altered"
    made = ("--topic", topic, "--partitions", "1", "--config", "retention.ms=70000")
    assert f"Created topic {topic}." in tools.run(
        "kafka-topics", "--create", *made
    )  # replicas: the default (KIP-464)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    assert "retention.ms=70000 " in tools.run("kafka-configs", "--describe", *of_topic)
    wish = "min.insync.replicas=2,cleanup.policy=[compact,delete]"
    altered = tools.run(
        "kafka-configs", "--alter", "--add-config", wish, "--delete-config", "retention.ms", *of_topic
    )
    assert "Completed updating config" in altered, altered
    seen = tools.run("kafka-configs", "--describe", *of_topic)
    assert (
        "min.insync.replicas=2 " in seen and "cleanup.policy=compact,delete " in seen and "retention" not in seen
    )
    # One replica: too few for acks=all from now on, as soon as its broker's watch has fired.
    tools.cluster.await_(
        lambda: "NOT_ENOUGH_REPLICAS" in refused(tools.cluster, topic), lambda: "too few replicas"
    )
    wrong = tools.run("kafka-configs", "--alter", "--add-config", "min.insync.replicas=0", *of_topic)
    assert "InvalidRequestException" in wrong and "a whole number from 1" in wrong, wrong
    unknown = tools.run("kafka-configs", "--alter", "--add-config", "compression.type=zstd", *of_topic)
    assert "InvalidConfigurationException" in unknown, unknown
    of_broker = ("--entity-type", "brokers", "--entity-name", "2")
    refusal = tools.run("kafka-configs", "--alter", "--add-config", "log.retention.ms=1", *of_broker)
    assert "InvalidRequestException" in refusal and "was started with" in refusal, refusal


def refused(cluster: Cluster, topic: str) -> str:
    """Produce one record with acks=all; return the error's name, "" for none."""
    told: list[str] = []
    settings = {"bootstrap.servers": bootstrap(cluster), "acks": "all", "retries": 0, "log_level": 0}
    producer = Producer(settings)
    producer.produce(topic, b"m", callback=lambda error, _: told.append("" if error is None else error.name()))
    producer.flush(limits.CLIENT_OPERATION_S_MAX)
    return "".join(told)


@exhaustive
def test_kafka_reassign_partitions(tools: Tools, tmp_path: Path) -> None:
    cluster, topic, plan = (
        tools.cluster,
        made(tools, "moved", "--replica-assignment", "1:2"),
        tmp_path / "plan.json",
    )

    def move(verb: str, *replicas: int) -> str:
        part = {"topic": topic, "partition": 0, "replicas": replicas, "log_dirs": ["any"] * len(replicas)}
        plan.write_text(json.dumps({"version": 1, "partitions": [part]}))
        return tools.run("kafka-reassign-partitions", verb, "--reassignment-json-file", str(plan))

    assert f"Successfully started partition reassignment for {topic}-0" in move("--execute", 3, 1)
    cluster.await_(lambda: "is complete" in move("--verify", 3, 1), lambda: f"{topic} moved to 3 and 1")
    assert "Leader: 1\tReplicas: 3,1" in tools.run("kafka-topics", "--describe", "--topic", topic)
    assert "No partition reassignments found" in tools.run("kafka-reassign-partitions", "--list")
    # One that cannot end: its new replica does not reach the leader.
    cut = cluster.fabric.cut("B", "A")
    try:
        move("--execute", 3, 2)
        listed = tools.run("kafka-reassign-partitions", "--list")
        assert f"{topic}-0: replicas: 3,1,2. adding: 2. removing: 1." in listed, listed
        cancelled = move("--cancel", 3, 2)
        assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled, cancelled
    finally:
        cluster.fabric.heal(cut)
    cluster.await_(
        lambda: "No partition reassignments found" in tools.run("kafka-reassign-partitions", "--list"),
        lambda: f"the move of {topic} cancelled",
    )
    assert "Leader: 1\tReplicas: 3,1" in tools.run("kafka-topics", "--describe", "--topic", topic)


@exhaustive
def test_kafka_leader_election(tools: Tools, tmp_path: Path) -> None:
    cluster, topic, plan = (
        tools.cluster,
        made(tools, "elected", "--replica-assignment", "1:2"),
        tmp_path / "plan.json",
    )
    plan.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0}]}))

    def elect(kind: str) -> str:
        return tools.run("kafka-leader-election", "--election-type", kind, "--path-to-json-file", str(plan))

    assert "Valid replica already elected" in elect("preferred")  # 2.8.2 does not say of which partition
    with closing(kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap(cluster))) as admin:
        admin.alter_partition_reassignments({kafka.TopicPartition(topic, 0): [2, 1]})
        cluster.await_(lambda: not admin.list_partition_reassignments(), lambda: f"the move of {topic} over")
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in elect("preferred")
    assert "Leader: 2\tReplicas: 2,1" in tools.run("kafka-topics", "--describe", "--topic", topic)
    assert "Valid replica already elected" in elect("unclean")


def _send(cluster: Cluster, topic: str, codec: str, values: Sequence[bytes], first_ms: int) -> None:
    """Send these values in one batch, to all replicas, each a millisecond later than the one before."""
    settings = {"bootstrap.servers": bootstrap(cluster), "compression.type": codec, "acks": "all", "linger.ms": 50}
    producer = Producer({**settings, "log_level": 0})
    for time, value in enumerate(values, first_ms):
        producer.produce(topic, value, key=b"k", partition=0, timestamp=time)
    assert producer.flush(limits.CLIENT_OPERATION_S_MAX) == 0


def _formats(cluster: Cluster, topic: str) -> list[int]:
    """Return the message format of each batch of the log of A."""
    return [batch.magic for batch in scan_partition(disk(cluster, "A") / f"{topic}-0").batches]


@exhaustive
def test_clients_and_tools_read_a_log_that_holds_both_message_formats(tools: Tools) -> None:
    """Source: KIP-31, KIP-32, KIP-98: a topic goes down to format 1 and up again while it is written to."""
    cluster, wait_s = tools.cluster, limits.CLIENT_OPERATION_S_MAX
    topic = f"{tools.topic}-formats"
    admin = admin_of(cluster)
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(timeout=wait_s)
    await_leaders(cluster, topic)
    sent: list[bytes] = []

    def send(codec: str) -> None:
        values = [f"m-{len(sent) + more}".encode() for more in range(3)]
        _send(cluster, topic, codec, values, 1_000 + len(sent))
        sent.extend(values)

    def has(number: int) -> bool:
        send("none")
        return _formats(cluster, topic)[-1] == number

    send("gzip")
    for number, version in ((1, "0.10.2"), (2, "2.2")):
        change = ("--add-config", f"message.format.version={version}")
        tools.run("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, *change)
        cluster.await_(partial(has, number), lambda: f"formats {_formats(cluster, topic)}")
        for codec in ("gzip", "lz4"):
            send(codec)
    formats = _formats(cluster, topic)
    assert (2, 1, 2) == (formats[0], formats[formats.index(1)], formats[-1])

    expected = [(offset, 1_000 + offset, b"k", value) for offset, value in enumerate(sent)]
    with closing(kafka.KafkaConsumer(bootstrap_servers=bootstrap(cluster))) as consumer:
        consumer.assign([kafka.TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found = [next(consumer) for _ in sent]
    assert expected == [(each.offset, each.timestamp, each.key, each.value) for each in found]
    theirs = Consumer({"bootstrap.servers": bootstrap(cluster), "group.id": topic, "check.crcs": True})
    with closing(theirs):
        theirs.assign([TopicPartition(topic, 0, 0)])
        read = theirs.consume(len(sent), timeout=wait_s)
    assert expected == [(each.offset(), each.timestamp()[1], each.key(), each.value()) for each in read]
    wish = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", str(len(sent)))
    lines = tools.run("kafka-console-consumer", *wish).splitlines()
    assert [value.decode() for value in sent] == [line for line in lines if line.startswith("m-")]


@pytest.mark.parametrize("kind", [RawClient, LibrdkafkaClient])
def test_clients_of_scenarios_change_a_topics_format(
    cluster: Cluster, history: History, kind: type[RawClient | LibrdkafkaClient]
) -> None:
    """Source: KIP-133; the step `format 1`."""
    topic, wait_s = f"formats-{kind.__name__}", limits.CLIENT_OPERATION_S_MAX
    admin = admin_of(cluster)
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(timeout=wait_s)
    await_leaders(cluster, topic)
    client = kind(history=history, bootstrap=cluster.clients_addresses)
    client.alter_topic(topic, "message.format.version", "0.10.2")
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(timeout=wait_s)
    assert "0.10.2" == found["message.format.version"].value
    with pytest.raises(PreconditionError, match=r"message\.format\.version.*0\.9"):
        client.alter_topic(topic, "message.format.version", "0.9")
    ops = [(op.type.value, op.value["to"]) for op in read_history(history.path) if op.f == "alter-topic"]
    assert [("invoke", "0.10.2"), ("ok", "0.10.2"), ("invoke", "0.9"), (ops[-1][0], "0.9")] == ops
    assert ops[-1][0] in ("fail", "info")
