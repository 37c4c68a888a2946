"""
Make the log directories in tests/data, written by two brokers of a real Apache Kafka release.

    python -m tests.make_kafka_logs RELEASE

Every topic has one partition, a replica on each broker, and batches of several leader epochs: an election moves
leadership between two rounds of records, and again, without a record, when the brokers stop.
A topic's name says what compresses it: `gzip` the client (librdkafka), `broker-gzip` the broker (Java).
The release's jars come from the cache of `fencepost kafka fetch`; everything else is temporary. The script needs
a Java and uses loopback only.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from harness.cleanup.process import until
from harness.java import find_java
from harness.limits import PROCESS_END_S_MAX
from targets.kafka.fetch import default_source, fetch
from targets.kafka.jars import cache_dir, class_path
from targets.kafka.releases import release_of, version
from tests.kafka_release import DATA

STEP_S_MAX: Final = 60.0
BROKERS: Final = (1, 2)
ZSTD_SINCE: Final = (2, 1)
# The first release with record batches (magic 2), and so with headers and transactions.
BATCHES_SINCE: Final = (0, 11)
RECORDS: Final = 3
SEGMENT_BYTES: Final = 400
KEPT: Final = ("*.log", "leader-epoch-checkpoint", "partition.metadata")
KEPT_BESIDE: Final = ("*-checkpoint", "meta.properties", ".kafka_cleanshutdown")
OPENS: Final = ("java.nio", "sun.nio.ch", "java.lang")

LOG4J: Final = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d %p %m (%c)%n
"""
ZOO: Final = """dataDir={folder}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=ruok
"""
BROKER: Final = """broker.id={broker}
listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect=127.0.0.1:{zookeeper}
zookeeper.session.timeout.ms=20000
log.dirs={folder}
num.partitions=1
auto.create.topics.enable=false
auto.leader.rebalance.enable=false
unclean.leader.election.enable=false
replica.lag.time.max.ms=30000
log.retention.ms=-1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
UNCLEANED: Final = "log.cleaner.enable=false\n"


def topics(release: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return topic -> (the client's codec, the topic's configuration)."""
    codecs = ["gzip", "snappy", "lz4"]
    if version(release) >= ZSTD_SINCE:
        codecs.append("zstd")
    return {
        "plain": ("none", {}),
        "rolled": ("none", {"segment.bytes": str(SEGMENT_BYTES)}),
        **({"transactions": ("none", {})} if version(release) >= BATCHES_SINCE else {}),
        **{codec: (codec, {}) for codec in codecs},
        # A broker whose codec differs from the producer's recompresses the batch, in Java.
        **{f"broker-{codec}": ("none", {"compression.type": codec}) for codec in codecs},
    }


def make(release: str, libs: str, work: Path) -> None:
    """Run a cluster in the folder, write the topics, stop it, and keep each broker's data directory."""
    named = topics(release)
    with ExitStack() as cluster:
        port = cluster.enter_context(zookeeper(work))
        ports = {number: cluster.enter_context(broker(number, libs, work, port)) for number in BROKERS}
        client = KazooClient(hosts=f"127.0.0.1:{port}")
        client.start(timeout=STEP_S_MAX)
        cluster.callback(client.close)
        cluster.callback(client.stop)
        registered = [f"/brokers/ids/{broker}" for broker in BROKERS]
        wait("both brokers to register", lambda: all(map(client.exists, registered)))
        servers = ",".join(f"127.0.0.1:{port}" for port in ports.values())
        create(servers, named)
        for leader in BROKERS:
            if leader != BROKERS[0]:
                _lead(client, list(named), leader)
            for topic, (codec, _) in named.items():
                _produce(release, servers, topic, codec, f"epoch of leader {leader}")
    keep(f"kafka-{release}", {number: work / f"b{number}" for number in BROKERS}, named)


def keep(
    name: str, directories: dict[int, Path], topics: Iterable[str], folders: str = "", files: Sequence[str] = KEPT
) -> None:
    """
    Replace the directories of that name in tests/data, without indexes and internal topics.

    Args:
        name: the folder in tests/data.
        directories: broker id -> its data directory.
        topics: the topics to keep.
        folders: pattern of what may follow a partition's name in the name of its folder.
        files: patterns of the files to keep in a partition's folder.
    """
    for broker, source in directories.items():
        target = DATA / name / f"b{broker}"
        shutil.rmtree(target, ignore_errors=True)
        kept = [path for pattern in KEPT_BESIDE for path in source.glob(pattern)]
        for topic in topics:
            for folder in source.glob(f"{topic}-0{folders}"):
                kept += [path for pattern in files for path in folder.glob(pattern)]
        for path in kept:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def create(servers: str, named: dict[str, tuple[str, dict[str, str]]]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [
        NewTopic(topic, num_partitions=1, replica_assignment=[list(BROKERS)], config=config)
        for topic, (_, config) in named.items()
    ]
    for done in admin.create_topics(wanted).values():
        done.result(STEP_S_MAX)


def _produce(release: str, servers: str, topic: str, codec: str, what: str) -> None:
    """Write two batches of records, acknowledged by both replicas; topic `transactions` aborts the second one."""
    transactional = topic == "transactions"
    options: dict[str, Any] = {
        "bootstrap.servers": servers,
        "compression.type": codec,
        "acks": "all",
        "linger.ms": 200,
        **({"transactional.id": "fixture"} if transactional else {}),
    }
    producer = Producer(options)
    if transactional:
        producer.init_transactions(STEP_S_MAX)
    for batch in range(2):
        if transactional:
            producer.begin_transaction()
        for number in range(RECORDS):
            text = f"{topic}, {what}, batch {batch}, record {number}, and the same again and again and again"
            headers = [("codec", codec.encode()), ("empty", None)] if number == 0 else None
            if version(release) < BATCHES_SINCE:
                headers = None
            producer.produce(
                topic,
                key=None if number else b"\x00\xff",
                value=text,
                headers=headers,
                partition=0,
                timestamp=1_500_000_000_000 + number,
            )
        left = producer.flush(STEP_S_MAX)
        assert left == 0, f"{left} records of {topic} are not acknowledged after {STEP_S_MAX} s"
        if transactional:
            finish = producer.abort_transaction if batch else producer.commit_transaction
            finish(STEP_S_MAX)


def _lead(client: KazooClient, named: list[str], leader: int) -> None:
    """Elect the leader without a failure: put it first in the assignment, then elect the preferred leader."""
    replicas = [leader, *(broker for broker in BROKERS if broker != leader)]
    partitions = [{"topic": topic, "partition": 0} for topic in named]
    wanted = [{**each, "replicas": replicas} for each in partitions]
    for path, body in (
        ("/admin/reassign_partitions", {"version": 1, "partitions": wanted}),
        ("/admin/preferred_replica_election", {"version": 1, "partitions": partitions}),
    ):
        client.create(path, json.dumps(body).encode())
        wait(f"the controller to take {path}", lambda path=path: client.exists(path) is None)

    def led() -> bool:
        states = (client.get(f"/brokers/topics/{topic}/partitions/0/state")[0] for topic in named)
        return all(json.loads(state)["leader"] == leader for state in states)

    wait(f"broker {leader} to lead every topic", led)


@contextmanager
def zookeeper(work: Path) -> Iterator[int]:
    port, folder = _free_port(), work / "zookeeper"
    folder.mkdir()
    (work / "zoo.cfg").write_text(ZOO.format(folder=folder, port=port))
    jars = Path(pyspark.__file__).parent / "jars"
    main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(work / "zoo.cfg")]
    with _java(["-cp", f"{jars}/*", *main], work / "zookeeper.log"):
        # The port opens before the server answers, and a client that connects in between hangs.
        wait("ZooKeeper to answer", lambda: _ruok(port))
        yield port


@contextmanager
def broker(number: int, libs: str, work: Path, zookeeper_port: int, also: str = "") -> Iterator[int]:
    """Run a broker with these additional properties, and yield its port."""
    port, folder = _free_port(), work / f"b{number}"
    properties, log4j = work / f"b{number}.properties", work / "log4j.properties"
    own = BROKER.format(broker=number, port=port, zookeeper=zookeeper_port, folder=folder)
    properties.write_text(own + (also or UNCLEANED))
    log4j.write_text(LOG4J)
    arguments = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS]
    arguments += [f"-Dlog4j.configuration=file:{log4j}", "-cp", libs, "kafka.Kafka", str(properties)]
    with _java(arguments, work / f"b{number}.log"):
        yield port


@contextmanager
def _java(arguments: list[str], output: Path) -> Iterator[None]:
    """Run a Java process; at the end terminate it, so that a broker shuts down cleanly, and wait for its exit."""
    executable = find_java().executable
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    with output.open("wb") as log:
        process = subprocess.Popen([executable, *options, *arguments], stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STEP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PROCESS_END_S_MAX)
            raise


def wait(what: str, condition: Callable[[], bool]) -> None:
    assert until(condition, STEP_S_MAX), f"waited {STEP_S_MAX} s for {what}"


def _ruok(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main(make: Callable[[str, str, Path], None]) -> int:
    """Call make(release, class path, folder) for the release on the command line."""
    release = sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        fetch([release_of(release)], cache_dir(), default_source(), print)
        jars = class_path(release_of(release), cache_dir())
        make(release, ":".join(map(str, jars)), Path(temporary))
    return 0


if __name__ == "__main__":
    sys.exit(main(make))
