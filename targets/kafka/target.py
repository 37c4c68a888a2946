"""
Apache Kafka as a target: a protocol is a release, or a release with some of its properties set (releases.toml).

Its brokers emit no events: the harness watches ZooKeeper, the wire and the brokers' logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.ability import Ability
from harness.java import Java, find_java
from harness.launch import Launch, Runtime
from harness.model import UsageError
from harness.registry import pick
from harness.target.metadata import Metadata, TargetRun
from harness.target.target import NodeSpec, Printed
from harness.target.traits import Traits
from harness.target.wire import Wire
from harness.target.words import Lacks, Means
from targets.kafka import archive, elections, printed
from targets.kafka.jars import cache_dir, class_path
from targets.kafka.properties import LOG4J, LOG4J_TEXT, OWNED, SERVER, command_line, server_properties
from targets.kafka.releases import BATCHES_SINCE, Entry, entries, release_of, spoken_entry, version
from targets.kafka_family.clients.part import KafkaClients
from targets.kafka_family.logs.reader import LOGS
from targets.kafka_family.nemeses import FAULTS
from targets.kafka_family.traits import KAFKA
from targets.kafka_family.wire.wire import KafkaWire
from targets.kafka_family.words import WORDS as FAMILY_WORDS
from targets.kafka_family.zookeeper.layout import ABILITIES
from targets.kafka_family.zookeeper.opening import open_view, operator_of
from targets.zookeeper.server import ZOOKEEPER

if TYPE_CHECKING:
    from targets.kafka_family.zookeeper.view import RealZooKeeperView

# A rule that names the entry's release; it is not a property.
RELEASE: Final = "release"
_PROPERTY: Final = re.compile(r"(?P<name>[a-z][a-z0-9]*(\.[a-z0-9]+)+)=(?P<value>[^\r\n]*)")


# What stands for the words of scenarios where the family's systems differ.
WORDS: Final[Mapping[str, Means | Lacks]] = {
    **FAMILY_WORDS,
    "leader": Means("it is elected, and names itself leader in its answer to a Metadata request"),
    "heard": Means("it has answered a LeaderAndIsr of the epoch of the partition's znode without an error"),
    "compacted": Lacks("no line of its log is read for it"),
    "format": Means("it has printed that it took up `message.format.version`"),
    "truncated": Means("it has printed so; from 2.7 on, the answer to a Fetch will do (KIP-595)"),
    "fenced": Means("it has printed that its leader refused its epoch (KIP-320)"),
    "stuck": Means("it has printed why its fetcher cannot go on with the partition"),
    "awaiting": Lacks("no line of its log says so"),
    "elect": Means("the replicas are reassigned in another order, then the preferred one is elected"),
    "move-away": Means("a reassignment of the partition's replicas"),
    "remove": Lacks("no release can remove partitions"),
}


def _asks_first(rules: Mapping[str, str]) -> bool:
    """Before KIP-101 a follower truncated its log and fetched; since 2.7 (KIP-595) the fetch itself asks."""
    return (0, 11) <= version(entry_of(rules).speaks) < (2, 7)


class KafkaTarget:
    """The target `kafka`; see harness/target/target.py for every call."""

    name = "kafka"
    clients = KafkaClients(has_batches=lambda rules: version(entry_of(rules).release.speaks) >= BATCHES_SINCE)
    logs = LOGS
    wire: Wire | None = KafkaWire(_asks_first, commands=True)
    words: Mapping[str, Means | Lacks] = WORDS
    # V3's PartitionRemove path was never built.
    abilities = ABILITIES - {Ability.REMOVE}
    downloads = None  # `fencepost kafka fetch` brings its jars
    services = (ZOOKEEPER,)
    faults = FAULTS

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return every release and variant of releases.toml."""
        return {name: _rules(entry) for name, entry in entries().items()}

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return an entry with more of its properties set; its protocol version decides what it models."""
        return _rules(_entry(protocol, changes))

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what its protocol version decides; an entry with changes has no name."""
        entry = _entry(protocol, changes)
        return replace(
            KAFKA,
            named="" if changes else f"{self.name}:{entry.name}",
            models=entry.models,
            # KIP-98, in 0.11: with the record batches that carry the numbers.
            idempotence=version(entry.speaks) >= BATCHES_SINCE,
        )

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

    def metadata(self, run: TargetRun) -> RealZooKeeperView:
        """Return what stands in ZooKeeper."""
        return open_view(run, elections)

    def operator(self, run: TargetRun, metadata: Metadata) -> RealZooKeeperView:
        """Return the same view of ZooKeeper: requests stand there too."""
        del run
        return operator_of(metadata)

    def printed(self, line: str) -> Printed | None:
        """Return what a line of its log reports about a replica."""
        return printed.read(line)

    def clocks(self, line: str) -> tuple[int, int] | None:
        """Return the clocks of the stop for a dump of all threads, which a SIGQUIT causes."""
        return printed.clocks(line)


def _entry(protocol: str, changes: Sequence[str]) -> Entry:
    entry = spoken_entry(protocol) or pick("release of Apache Kafka", entries(), protocol)
    set_now = dict(_property(change) for change in changes)
    return Entry(name=entry.name, release=entry.release, properties={**entry.properties, **set_now})


def _rules(entry: Entry) -> dict[str, str]:
    return {RELEASE: entry.release.name, **entry.properties}


def entry_of(rules: Mapping[str, str]) -> Entry:
    """Return the entry that these rules belong to."""
    properties = {name: value for name, value in rules.items() if name != RELEASE}
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
