"""
Clusters to measure: three brokers of a peer on loopback, without fabric and collector.

A run of the harness puts its fabric between brokers, collects our brokers' events, and sets small files and short
times. Here each peer runs as an operator would run it: with its own defaults, and with the JVM options of Kafka's
own scripts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from benchmarks import profiled
from benchmarks.cpu import child_with
from harness import limits
from harness.cleanup.process import until
from harness.environment.services import start_shared
from harness.hosts.local import LocalHost
from harness.launch import Address, Launch, Place
from harness.model import PreconditionError
from harness.target.target import NodeSpec, Target
from targets.broker_target.target import BrokerTarget
from targets.kafka.fetch import default_source, fetch
from targets.kafka.jars import cache_dir
from targets.kafka.releases import release_of
from targets.kafka.target import KafkaTarget
from targets.zookeeper.chroot import chroot_of
from targets.zookeeper.server import ZOOKEEPER
from targets.zookeeper.sessions import close_session, owner_of

BROKERS: Final = "ABC"
ASK_S_MAX: Final = 10.0
# Until all replicas of thousands of partitions have caught up.
WHOLE_S_MAX: Final = 300.0
# The file of a broker's profile, in its configuration folder.
PROFILE: Final = "profile.pstats"

# The core's own defaults, which are Kafka's, instead of the short times of a run.
OURS_SETTINGS: Final = {
    "replica_lag_ms_max": 30_000,
    "fetch_wait_ms_max": 500,
    "high_watermark_checkpoint_ms": 5_000,
}
# Kafka's defaults instead of the small values of a run; deleted topics are gone before the next load.
THEIRS_PROPERTIES: Final = (
    "replica.lag.time.max.ms=30000",
    "replica.fetch.wait.max.ms=500",
    "replica.high.watermark.checkpoint.interval.ms=5000",
    "log.index.size.max.bytes=10485760",
    "log.segment.delete.delay.ms=1000",
    "num.network.threads=3",
    "num.io.threads=8",
    "background.threads=10",
)
# A run's JVM starts quickly, compiles little and has a small heap, in which a broker of 10,000 partitions dies.
# This one is for long runs: kafka-run-class.sh, and the heap of kafka-server-start.sh.
_JVM_OF_A_RUN: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")
JVM: Final = (
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A system to measure: a target, a protocol, changed rules, and a function that changes the launch."""

    name: str
    target: Target
    protocol: str
    changes: Sequence[str]
    tune: Callable[[Launch], Launch]


def our_peer(
    name: str,
    *,
    profile: bool = False,
    protocol: str = "kip380",
    together: Mapping[str, int] | None = None,
    settings: Mapping[str, int] | None = None,
) -> Peer:
    """
    Return our broker as a peer.

    Args:
        profile: each process writes a cProfile profile of the time between two signals.
        together: how much is done at once, where it is not the default.
        settings: of the core, where they are not the default.
    """

    def tune(launch: Launch) -> Launch:
        config = json.loads(launch.files["broker.json"])
        config["settings"] |= OURS_SETTINGS | dict(settings or {})
        config["together"] = dict(together or {})
        del config["collector"]
        argv = launch.argv
        if profile:
            conf = str(Path(argv[-1]).parent)
            argv = (argv[0], "-m", "benchmarks.profiled", f"{conf}/{PROFILE}", *argv[2:])
        return replace(launch, argv=argv, files={"broker.json": json.dumps(config)})

    return Peer(name=name, target=BrokerTarget(), protocol=protocol, changes=(), tune=tune)


def their_peer(name: str, release: str, properties: Sequence[str] = ()) -> Peer:
    """Return a release of Apache Kafka as a peer, with more properties of its brokers."""

    def tune(launch: Launch) -> Launch:
        java, *rest = (word for word in launch.argv if word not in _JVM_OF_A_RUN)
        return replace(launch, argv=(java, *JVM, *rest))

    return Peer(
        name=name, target=KafkaTarget(), protocol=release, changes=(*THEIRS_PROPERTIES, *properties), tune=tune
    )


def bring(releases: Sequence[str], say: Callable[[str], None]) -> None:
    """Fetch the jars of these releases of Apache Kafka, as far as they are not here."""
    if releases:
        fetch([release_of(name) for name in releases], cache_dir(), default_source(), say)


def keep_figures(measured: Sequence[Any], file: Path | None) -> None:
    """Write dataclasses with what was measured to a file, None for none."""
    if file is not None:
        file.write_text(json.dumps([asdict(each) for each in measured], indent=1), encoding="utf-8")


class RunningCluster:
    """
    A running cluster of a peer: its address for clients, and its processes.

    Args:
        nodes: how each is started, and where it listens, in the order of their broker ids.
    """

    def __init__(
        self,
        peer: Peer,
        host: LocalHost,
        nodes: Mapping[str, tuple[Launch, Place]],
        pids: tuple[int, ...],
        zookeeper: Address,
    ) -> None:
        self.peer = peer
        self.zookeeper = zookeeper
        places = {name: place for name, (_, place) in nodes.items()}
        self.clients = tuple(place.client for place in places.values())
        self._launches = tuple(launch for launch, _ in nodes.values())
        self.bootstrap = ",".join(str(place.client) for place in places.values())
        # The listeners of all brokers, clients' and brokers'.
        self.ports = tuple(
            (at.host, at.port) for place in places.values() for at in (place.client, place.internal)
        )
        self.pids = pids
        self._host = host
        self._names = tuple(places)
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(
        self,
        topic: str,
        partitions: int,
        assignment: Sequence[Sequence[int]] | None = None,
        *,
        replicas: int | None = None,
    ) -> None:
        """
        Create a topic; wait until each partition has a leader and a full ISR.

        Args:
            assignment: the brokers of each partition, the first of which leads it; None lets the cluster choose.
            replicas: so many of each partition, None for one on each broker.
        """
        replicas = len(self._names) if replicas is None else replicas
        if assignment is None:
            new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas)
        else:
            lists = [list(brokers) for brokers in assignment]
            new = NewTopic(topic, num_partitions=partitions, replica_assignment=lists)
        try:
            self._admin.create_topics([new], request_timeout=WHOLE_S_MAX)[topic].result()
        except KafkaException as error:
            raise PreconditionError(f"{self.peer.name}: topic {topic} is not created: {error}") from error
        self.await_whole(topic, partitions, replicas=replicas)

    def await_whole(self, topic: str, partitions: int, *, replicas: int | None = None) -> None:
        """Wait until each partition of a topic has a leader and so many in its ISR, None: all brokers."""
        members = len(self._names) if replicas is None else replicas
        self._await(lambda: self._whole(topic, partitions, members), f"topic {topic} whole", WHOLE_S_MAX)

    def delete(self, topic: str) -> None:
        """Delete a topic; brokers delete its files soon after."""
        self._admin.delete_topics([topic])[topic].result(limits.CLIENT_OPERATION_S_MAX)

    @property
    def controller(self) -> int:
        """Return the broker id of the controller."""
        return int(self._metadata().controller_id)

    def kill(self, broker: int) -> None:
        """SIGKILL a broker; its session stays."""
        self._host.kill(self._names[broker - 1])

    def stop(self, broker: int) -> None:
        """SIGTERM a broker, and return when it has ended."""
        self._host.stop(self._names[broker - 1])

    def end_session(self, broker: int) -> None:
        """End a broker's session in ZooKeeper, and return when its registration is gone."""
        owner = owner_of(self.zookeeper, f"{_ROOT}/brokers/ids/{broker}")
        if owner is None:
            raise PreconditionError(f"broker {broker} of {self.peer.name}: not registered; expected a session")
        close_session(self.zookeeper, owner)

    def start(self, broker: int) -> None:
        """Start a broker again that was killed."""
        self._host.start(self._names[broker - 1], self._launches[broker - 1])

    def await_brokers(self) -> None:
        """Wait until clients see all brokers and a controller, for which librdkafka would wait without asking."""

        def complete() -> bool:
            seen = self._metadata()
            return len(seen.brokers) == len(self._names) and seen.controller_id >= 0

        self._await(complete, f"{len(self._names)} brokers and a controller", WHOLE_S_MAX)

    def await_registered(self, broker: int) -> None:
        """Wait until a broker that was started is in ZooKeeper: it has opened its logs, and serves."""
        path = f"{_ROOT}/brokers/ids/{broker}"
        self._await(lambda: owner_of(self.zookeeper, path) is not None, f"broker {broker} registered", WHOLE_S_MAX)

    def begin_profiles(self) -> None:
        """Let the brokers that were started first, which are profiled, begin their profiles."""
        for pid in self.pids:
            os.kill(pid, profiled.BEGIN)

    def end_profiles(self, brokers: Iterable[int] = range(1, len(BROKERS) + 1)) -> None:
        """Let these brokers end their profiles, and wait until they have written them."""
        for broker in brokers:
            os.kill(self.pids[broker - 1], profiled.END)
            file = next(Path(word) for word in self._launches[broker - 1].argv if word.endswith(PROFILE))
            self._await(file.exists, f"the profile of broker {broker}")

    def last_words(self) -> str:
        """Return the last printed lines of each broker."""
        return "\n".join(line for name in self._names for line in self.log(name).splitlines()[-5:])

    def log(self, name: str) -> str:
        """Return what a broker has printed so far."""
        return self._host.log_text(name)

    def _whole(self, topic: str, partitions: int, members: int) -> bool:
        found = self._metadata(topic).topics[topic].partitions.values()
        return bool(partitions == sum(part.leader >= 0 and len(part.isrs) == members for part in found))

    def _metadata(self, *topic: str) -> Any:
        return self._admin.list_topics(*topic, timeout=ASK_S_MAX)

    def _await(
        self, condition: Callable[[], bool], what: str, wait_s_max: float = limits.CONDITION_WAIT_S_MAX
    ) -> None:
        def met() -> bool:
            try:
                return condition()
            except KafkaException:
                return False

        if not until(met, wait_s_max):
            raise PreconditionError(
                f"{self.peer.name}: not seen: {what}; its brokers printed:\n{self.last_words()}"
            )


@contextmanager
def running(peer: Peer, folder: Path, names: str = BROKERS) -> Iterator[RunningCluster]:
    """
    Run brokers of a peer and their own ZooKeeper, below the folder; take everything down afterwards.

    Args:
        names: a letter for each broker.

    Raises:
        UsageError: the machine lacks something.
        PreconditionError: the cluster does not come up.
    """
    with ExitStack() as stack:
        host = LocalHost(folder, power_tier="watermark")
        stack.callback(host.close)
        host.open()
        (zookeeper,) = start_shared(host, (ZOOKEEPER,))[ZOOKEEPER.name]
        _make_root(zookeeper)
        nodes: dict[str, tuple[Launch, Place]] = {}
        pids: list[int] = []
        for number, name in enumerate(names, start=1):
            nodes[name] = _launch(peer, host, name, number, zookeeper)
            host.start(name, nodes[name][0])
            pid = child_with(f"{folder}/nodes/{name}/conf/")
            assert pid is not None, f"{name} was started as a child of this process"
            pids.append(pid)
        cluster = RunningCluster(peer, host, nodes, tuple(pids), zookeeper)
        cluster.await_brokers()
        yield cluster


def keep_profiles(cluster: Path, folder: Path) -> None:
    """Move the profiles of a cluster's brokers, which have ended, to a folder; `cluster` is what it ran below."""
    folder.mkdir(parents=True, exist_ok=True)
    for found in cluster.glob(f"nodes/*/conf/{PROFILE}"):
        found.replace(folder / f"{found.parent.parent.name}.pstats")


# All peers keep their nodes below this one, which they do not create themselves.
_FOLDER: Final = Path("benchmark/clusters")
_ROOT: Final = chroot_of(_FOLDER)


def _make_root(zookeeper: Address) -> None:
    client = KazooClient(str(zookeeper))
    client.start(timeout=limits.SERVICE_START_S_MAX)
    client.ensure_path(_ROOT)
    client.stop()
    client.close()


def _launch(peer: Peer, host: LocalHost, name: str, number: int, zookeeper: Address) -> tuple[Launch, Place]:
    place = host.add_node(name, disk=False)
    spec = NodeSpec(
        name=name,
        broker_id=number,
        place=replace(place, python=sys.executable),
        advertised_internal=place.internal,
        services=(zookeeper,),
        folder=_FOLDER,
        collector=place.client,  # there is no collector; the peer's `tune` removes it
    )
    rules = peer.target.rules(peer.protocol, peer.changes)
    return peer.tune(peer.target.launch(spec, peer.protocol, rules)), place
