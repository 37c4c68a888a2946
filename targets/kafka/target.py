"""
Apache Kafka as a target: a protocol is a release, or a release with some of its properties set (releases.toml).

Its brokers emit no events: the harness watches ZooKeeper, the wire and the brokers' logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from harness.java import Java, find_java
from harness.launch import Launch, Runtime
from harness.model import UsageError
from harness.registry import pick
from harness.target.target import (
    DELETES,
    IDEMPOTENCE,
    LATER,
    MODELS,
    NAMED,
    OLD_REGISTRATION,
    REFUSED,
    NodeSpec,
    PartitionTruth,
    Printed,
    ZooKeeperPort,
)
from targets.kafka import archive, elections, printed
from targets.kafka.jars import cache_dir, class_path
from targets.kafka.properties import LOG4J, LOG4J_TEXT, OWNED, SERVER, command_line, server_properties
from targets.kafka.releases import BATCHES_SINCE, Entry, entries, release_of, spoken_entry, version
from targets.kafka_family.nemeses import FAULTS
from targets.kafka_family.zookeeper.server import ZOOKEEPER

# A rule that names the entry's release; it is not a property.
RELEASE: Final = "release"
_NO_PROPERTIES: Final = frozenset({RELEASE, MODELS, OLD_REGISTRATION, DELETES, NAMED, IDEMPOTENCE})
_PROPERTY: Final = re.compile(r"(?P<name>[a-z][a-z0-9]*(\.[a-z0-9]+)+)=(?P<value>[^\r\n]*)")


class KafkaTarget:
    """The target `kafka`; see harness/target/target.py for every call."""

    name = "kafka"
    services = (ZOOKEEPER,)
    faults = FAULTS

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return every release and variant of releases.toml."""
        return {name: _rules(entry) for name, entry in entries().items()}

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return an entry with more of its properties set; its protocol version decides what it models."""
        entry = spoken_entry(protocol) or pick("release of Apache Kafka", entries(), protocol)
        set_now = dict(_property(change) for change in changes)
        made = Entry(name=entry.name, release=entry.release, properties={**entry.properties, **set_now})
        return _rules(made, changed=bool(set_now))

    def require(self, rules: Mapping[str, str]) -> None:
        """Check that the cache has every jar of the release, as its lock pins it."""
        class_path(entry_of(rules).release, cache_dir())

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """`java … kafka.Kafka server.properties`, from the jars of the cache."""
        del protocol  # its rules determine everything
        entry, place, library = entry_of(rules), spec.place, cache_dir()
        inside = Path(place.library or library)
        jars = [inside / jar.relative_to(library) for jar in class_path(entry.release, library)]
        java, archived = (Path(place.java), ()) if place.java else _java_and_archive(entry)
        clocks = (printed.CLOCKS_ARGUMENT,) if spec.shows_clocks else ()
        return Launch(
            argv=command_line(java, (*entry.release.jvm, *archived, *clocks), jars, place.conf_dir),
            files={SERVER: server_properties(spec, entry), LOG4J: LOG4J_TEXT},
            runtime=Runtime.JAVA,
            library=library,
        )

    def first_question(self, rules: Mapping[str, str]) -> str:
        """Before KIP-101 a follower truncated its log and fetched; since 2.7 (KIP-595) the fetch itself asks."""
        asks = (0, 11) <= version(entry_of(rules).speaks) < (2, 7)
        return "OffsetForLeaderEpoch" if asks else "Fetch"

    def registration_path(self, broker_id: int) -> str:
        """Return the path of a broker's registration."""
        return elections.broker_path(broker_id)

    def controller_path(self) -> str:
        """Return the path of the controller's node."""
        return elections.CONTROLLER

    def controller_id(self, data: bytes) -> int:
        """Read the controller's node."""
        return elections.controller_id(data)

    def partition_path(self, topic: str, partition: int) -> str:
        """Return the path of a partition's leader and ISR."""
        return elections.state_path(topic, partition)

    def topic_path(self, topic: str) -> str:
        """Return the path of a topic's assignment."""
        return elections.topic_path(topic)

    def assignment(self, data: bytes) -> Mapping[int, tuple[int, ...]]:
        """Read a topic's node."""
        return elections.assignment(data)

    def partition_truth(self, data: bytes, version: int) -> PartitionTruth:
        """Read a partition's node."""
        return elections.partition_truth(data, version)

    def elections_path(self) -> str:
        """Return where the election of the preferred replica is asked for."""
        return elections.PREFERRED

    def move(self, zookeeper: ZooKeeperPort, topic: str, partition: int, broker_ids: Sequence[int]) -> str:
        """Write the reassignment where the controller reads it."""
        return elections.move(zookeeper, topic, partition, broker_ids)

    def remove(self, zookeeper: ZooKeeperPort, topic: str, partitions: Sequence[int]) -> str:
        """Refuse: V3's PartitionRemove path was never built."""
        del zookeeper
        raise UsageError(
            f"remove partitions {list(partitions)} of {topic}: no release of Apache Kafka can remove "
            "partitions; expected the target broker"
        )

    def wanted(self, zookeeper: ZooKeeperPort, topic: str, partition: int) -> tuple[int, ...]:
        """Look at the reassignment that is not done, then at the topic's node."""
        return elections.wanted(zookeeper, topic, partition)

    def elect(self, zookeeper: ZooKeeperPort, topic: str, partition: int, broker_id: int) -> str:
        """Reorder the replicas, then elect the preferred one."""
        return elections.elect(zookeeper, topic, partition, broker_id)

    def emits_events(self) -> bool:
        """Return False."""
        return False

    def printed(self, line: str) -> Printed | None:
        """Return what a line of its log reports about a replica."""
        return printed.read(line)

    def clocks(self, line: str) -> tuple[int, int] | None:
        """Return the clocks of the stop for a dump of all threads, which a SIGQUIT causes."""
        return printed.clocks(line)

    def client(self, rules: Mapping[str, str]) -> str:
        """Return `raw` if the release knows record batches (0.11 on), else `librdkafka` for message sets."""
        return "raw" if version(entry_of(rules).release.speaks) >= BATCHES_SINCE else "librdkafka"


def _rules(entry: Entry, *, changed: bool = False) -> dict[str, str]:
    named = {} if changed else {NAMED: f"{KafkaTarget.name}:{entry.name}"}
    return {
        RELEASE: entry.release.name,
        MODELS: entry.models,
        OLD_REGISTRATION: REFUSED,
        DELETES: LATER,
        # KIP-98, in 0.11: with the record batches that carry the numbers.
        IDEMPOTENCE: "yes" if version(entry.speaks) >= BATCHES_SINCE else "no",
        **named,
        **entry.properties,
    }


def entry_of(rules: Mapping[str, str]) -> Entry:
    """Return the entry that these rules belong to."""
    properties = {name: value for name, value in rules.items() if name not in _NO_PROPERTIES}
    return Entry(name=rules[RELEASE], release=release_of(rules[RELEASE]), properties=properties)


def _property(change: str) -> tuple[str, str]:
    match = _PROPERTY.fullmatch(change)
    if match is None:
        raise UsageError(f"rule {change!r}: expected a broker's property, such as min.insync.replicas=2")
    if match["name"] in OWNED:
        raise UsageError(f"rule {change!r}: the harness sets {match['name']} itself; expected another property")
    return match["name"], match["value"]


def _java_and_archive(entry: Entry) -> tuple[Path, tuple[str, ...]]:
    """Return this machine's Java, and the arguments that use the release's class archive, if there is one."""
    java = _java()
    return java.executable, archive.flags(entry.release, java)


@cache
def _java() -> Java:
    return find_java()


TARGET = KafkaTarget()
