"""
The files and arguments of an Apache Kafka broker: server.properties, log4j.properties and its Java's arguments.

Every property here is documented and known to every release of the table; none is a test's own switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.model import UsageError
from harness.target.settings import MessageFormat, Settings
from harness.target.target import NodeSpec
from targets.kafka.releases import FORMAT, Entry, version
from targets.zookeeper.chroot import connection_of

SERVER: Final = "server.properties"
LOG4J: Final = "log4j.properties"

# Times of a run, ms. A session outlives every run: only the harness ends sessions. Followers never leave the
# ISR for lag, since holds last as long as the machine is busy. All other times are short, to keep a run short.
SESSION_TIMEOUT_MS: Final = 90_000
REPLICA_LAG_MS: Final = 60_000
# How often a broker that is stopped asks the controller to have others lead, within the scenario's time for it.
SHUTDOWN_TRIES: Final = 3

# The newest message format without epochs, and the protocol version that ended the choice of formats (KIP-724).
FORMAT_WITHOUT_EPOCHS: Final = "0.10.2"
FORMAT_FIXED_SINCE: Final = (3, 0)

ALWAYS: Final[Mapping[str, str]] = {
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "zookeeper.connection.timeout.ms": "30000",
    # Only a scenario creates topics and causes elections, never a broker by itself.
    "auto.create.topics.enable": "false",
    # A topic is deleted when a client asks for it; up to 0.11 that is not the default.
    "delete.topic.enable": "true",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "replica.lag.time.max.ms": str(REPLICA_LAG_MS),
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "50",
    "replica.high.watermark.checkpoint.interval.ms": "50",
    # Consumers create this topic, even those that commit nothing.
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "log.retention.ms": "-1",
    # Small, since a disk may be small: indexes are preallocated, and the cleaner buffers 128 MB.
    "log.index.size.max.bytes": "65536",
    "log.cleaner.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
}

# The harness sets these for each node; rules must not.
_OWNED: Final = ("broker.id", "listeners", "advertised.listeners", "zookeeper.connect", "log.dirs")
OWNED: Final = frozenset((*_OWNED, "listener.security.protocol.map", "inter.broker.listener.name"))

LOG4J_TEXT: Final = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %m (%c)%n
"""


def server_properties(spec: NodeSpec, entry: Entry) -> str:
    """
    Return a node's server.properties: the common ones, the scenario's settings, the entry's, the node's own.

    Raises:
        UsageError: the entry does not support the scenario's settings.

    Source:  KIP-103: the second listener puts brokers' own traffic, and nothing else, behind the fabric.
    """
    place = spec.place
    own = (
        str(spec.broker_id),
        f"CLIENT://{place.client},INTERNAL://{place.internal}",
        f"CLIENT://{place.client_outside},INTERNAL://{spec.advertised_internal}",
        connection_of(spec),
        place.data_dir,
    )
    asked = {**ALWAYS, **entry.release.properties, **settings_of(spec.settings, entry), **entry.properties}
    properties = {**asked, **dict(zip(_OWNED, own, strict=True))}
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def settings_of(settings: Settings, entry: Entry) -> dict[str, str]:
    """
    Translate a scenario's settings to Kafka's properties.

    Raises:
        UsageError: retention or compaction, as its brokers do not report what they delete, and nobody could judge
            it; or batches
            without epochs, on a release that cannot write them (protocol version 3.0 on).
    """
    found = {
        "unclean.leader.election.enable": str(settings.unclean_election).lower(),
        "min.insync.replicas": str(settings.min_isr),
    }
    if settings.replica_lag_ms_max is not None:
        found["replica.lag.time.max.ms"] = str(settings.replica_lag_ms_max)
    if settings.flush_messages:
        found["log.flush.interval.messages"] = str(settings.flush_messages)
    if settings.segment_bytes is not None:
        found["log.segment.bytes"] = str(settings.segment_bytes)
    if settings.controlled_shutdown_ms:
        found["controlled.shutdown.enable"] = "true"
        # It asks so often, and rests in between: 5 s by default, which is longer than a node may take to end.
        found["controlled.shutdown.max.retries"] = str(SHUTDOWN_TRIES)
        found["controlled.shutdown.retry.backoff.ms"] = str(settings.controlled_shutdown_ms // SHUTDOWN_TRIES)
    if settings.retention_ms or settings.retention_bytes:
        raise UsageError(
            f"Apache Kafka {entry.name}: retention; expected none, since its brokers do not say what they delete"
        )
    if settings.compact:
        raise UsageError(
            f"Apache Kafka {entry.name}: compact; expected no, since its brokers do not say what they compact"
        )
    if settings.message_format is MessageFormat.WITHOUT_EPOCHS:
        if version(entry.speaks) >= FORMAT_FIXED_SINCE:
            raise UsageError(
                f"Apache Kafka {entry.name}: no message format without epochs at protocol version {entry.speaks}; "
                "expected an older inter.broker.protocol.version"
            )
        found[FORMAT] = FORMAT_WITHOUT_EPOCHS
    return found


def command_line(java: Path, jvm: Sequence[str], class_path: Sequence[Path], conf_dir: str) -> tuple[str, ...]:
    """Return the command that starts a broker with the files in conf_dir."""
    return (
        str(java),
        *jvm,
        f"-Dlog4j.configuration=file:{conf_dir}/{LOG4J}",
        "-cp",
        ":".join(map(str, class_path)),
        "kafka.Kafka",
        f"{conf_dir}/{SERVER}",
    )
