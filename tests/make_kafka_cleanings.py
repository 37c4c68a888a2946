"""
Make the directories tests/data/kafka-RELEASE-cleaned: what Apache Kafka leaves after log cleaning and deletion.

    python -m tests.make_kafka_cleanings RELEASE

Two brokers replicate every topic. The log cleaner runs on the first only: its compacted logs have gaps and
`.deleted` segments beside them, while the second broker's logs are whole. In each round two records have keys that
the next round repeats, and one has a unique key. Topic `empty` has no records. Topic `doomed` is deleted: the name
of its folder ends in `-delete`.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from targets.kafka.releases import version
from tests import make_kafka_logs as making

ROUNDS: Final = 6
# In this round the record with the unique key is a tombstone: the cleaner may delete it a day later.
NULL_ROUND: Final = 3
KEPT: Final = ("*.log", "*.log.deleted", "leader-epoch-checkpoint", "partition.metadata")
DOOMED: Final = "doomed"
CLEANER: Final = """log.cleaner.enable={enable}
log.cleaner.backoff.ms=100
log.cleaner.dedupe.buffer.size=2097152
log.cleaner.io.buffer.size=65536
log.segment.delete.delay.ms=600000
delete.topic.enable=true
"""
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(making.SEGMENT_BYTES),
    "min.cleanable.dirty.ratio": "0.01",
}


def topics(release: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return topic -> (the client's codec, the topic's configuration)."""
    markers = version(release) >= making.BATCHES_SINCE
    return {
        "compacted": ("none", COMPACTED),
        "compacted-gzip": ("gzip", COMPACTED),
        **({"compacted-transactions": ("none", COMPACTED)} if markers else {}),
        "empty": ("none", {}),
        DOOMED: ("none", {}),
    }


def make(release: str, libs: str, work: Path) -> None:
    """Run a cluster in the folder until the first broker's cleaner is done; keep each broker's data directory."""
    named = topics(release)
    directories = {broker: work / f"b{broker}" for broker in making.BROKERS}
    with ExitStack() as cluster:
        zookeeper = cluster.enter_context(making.zookeeper(work))
        ports = {
            broker: cluster.enter_context(
                making.broker(broker, libs, work, zookeeper, CLEANER.format(enable=str(broker == 1).lower()))
            )
            for broker in making.BROKERS
        }
        client = KazooClient(hosts=f"127.0.0.1:{zookeeper}")
        client.start(timeout=making.STEP_S_MAX)
        cluster.callback(client.close)
        cluster.callback(client.stop)
        registered = [f"/brokers/ids/{broker}" for broker in making.BROKERS]
        making.wait("both brokers to register", lambda: all(map(client.exists, registered)))
        servers = ",".join(f"127.0.0.1:{port}" for port in ports.values())
        making.create(servers, named)
        for topic, (codec, _) in named.items():
            if topic != "empty":
                _produce(servers, topic, codec)
        for topic in (each for each in named if each.startswith("compacted")):
            making.wait(f"{topic} to be cleaned", lambda topic=topic: _is_cleaned(directories[1], topic))
        admin = AdminClient({"bootstrap.servers": servers})
        admin.delete_topics([DOOMED])[DOOMED].result(making.STEP_S_MAX)
        doomed = [directory / f"{DOOMED}-0" for directory in directories.values()]
        making.wait("the deleted topic to go", lambda: not any(path.exists() for path in doomed))
    making.keep(f"kafka-{release}-cleaned", directories, named, "*", KEPT)


def _produce(servers: str, topic: str, codec: str) -> None:
    """Write one batch in each round, acknowledged by both replicas; every second transaction is aborted."""
    transactional = topic == "compacted-transactions"
    named = {"transactional.id": "fixture"} if transactional else {}
    producer = Producer(
        {"bootstrap.servers": servers, "compression.type": codec, "acks": "all", "linger.ms": 200, **named}
    )
    if transactional:
        producer.init_transactions(making.STEP_S_MAX)
    for number in range(ROUNDS):
        if transactional:
            producer.begin_transaction()
        for key in ("first", f"own {number}", "second"):
            text = f"{topic}, round {number}, {key}" + " and so on" * 5
            value = None if key == f"own {NULL_ROUND}" else text
            producer.produce(topic, key=key, value=value, partition=0, timestamp=1_500_000_000_000 + number)
        left = producer.flush(making.STEP_S_MAX)
        assert left == 0, f"{left} records of {topic} are not acknowledged after {making.STEP_S_MAX} s"
        if transactional:
            (producer.abort_transaction if number % 2 else producer.commit_transaction)(making.STEP_S_MAX)


def _is_cleaned(data: Path, topic: str) -> bool:
    """Return whether the cleaner's checkpoint has reached the last segment."""
    path = data / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    offsets = [int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")]
    last = max(int(segment.stem) for segment in (data / f"{topic}-0").glob("*.log"))
    return offsets == [last]


if __name__ == "__main__":
    sys.exit(making.main(make))
