"""
Make the directories tests/data/kafka-RELEASE-formats: old message formats, written by a newer release.

    python -m tests.make_kafka_formats RELEASE

A topic's name is its format and codec. A `mixed` topic starts in v1 and continues in v2, as in a migration: after
the change of format the script writes single records until one is stored in a v2 batch.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kazoo.client import KazooClient

from tests import make_kafka_logs as making
from tests.targets.kafka_family.logs.scans import scan_partition

RECORDS: Final = 3
FORMAT: Final = "message.format.version"
V0, V1, V2 = "0.9.0", "0.10.2", "1.1"
CODECS: Final = ("none", "gzip", "snappy", "lz4")


def topics() -> dict[str, tuple[str, dict[str, str]]]:
    """Return topic -> (the codec of its client and its broker, the topic's configuration)."""
    formats = {"v0": V0, "mixed": V1}
    return {f"{name}-{codec}": (codec, {FORMAT: number}) for name, number in formats.items() for codec in CODECS}


def make(release: str, libs: str, work: Path) -> None:
    """Run a cluster in the folder until every topic is written; keep each broker's data directory."""
    named = topics()
    directories = {number: work / f"b{number}" for number in making.BROKERS}
    with ExitStack() as cluster:
        port = cluster.enter_context(making.zookeeper(work))
        ports = [cluster.enter_context(making.broker(number, libs, work, port)) for number in making.BROKERS]
        client = KazooClient(hosts=f"127.0.0.1:{port}")
        client.start(timeout=making.STEP_S_MAX)
        cluster.callback(client.close)
        cluster.callback(client.stop)
        registered = [f"/brokers/ids/{number}" for number in making.BROKERS]
        making.wait("both brokers to register", lambda: all(map(client.exists, registered)))
        servers = ",".join(f"127.0.0.1:{each}" for each in ports)
        making.create(servers, named)
        for topic, (codec, _) in named.items():
            for number in range(2):
                _produce(servers, topic, codec, [f"{topic}, batch {number}, record {at}" for at in range(RECORDS)])
            if topic.startswith("mixed"):
                _migrate(servers, topic, codec, directories[making.BROKERS[0]] / f"{topic}-0")
    making.keep(f"kafka-{release}-formats", directories, named)


def _migrate(servers: str, topic: str, codec: str, folder: Path) -> None:
    """Change the topic to the format with leader epochs, and write records until one is stored in it."""
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = ConfigResource(ResourceType.TOPIC, topic, set_config={FORMAT: V2})
    for done in admin.alter_configs([wanted]).values():
        done.result(making.STEP_S_MAX)

    def is_new() -> bool:
        _produce(servers, topic, codec, [f"{topic}, later"])
        return scan_partition(folder).batches[-1].magic == 2

    making.wait(f"{topic} to be written in batches", is_new)


def _produce(servers: str, topic: str, codec: str, texts: list[str]) -> None:
    """Write one batch, acknowledged by both replicas."""
    producer = Producer(
        {"bootstrap.servers": servers, "compression.type": codec, "acks": "all", "linger.ms": 200, "log_level": 0}
    )
    for text in texts:
        producer.produce(topic, value=text + " and again" * 6, partition=0, timestamp=1_500_000_000_000)
    left = producer.flush(making.STEP_S_MAX)
    assert left == 0, f"{left} records of {topic} are not acknowledged after {making.STEP_S_MAX} s"


if __name__ == "__main__":
    sys.exit(making.main(make))
