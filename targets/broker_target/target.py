"""This repository's broker as a target: its rules, its configuration file, and what it prints."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.launch import Address, Launch
from harness.model import UsageError
from harness.registry import pick
from harness.scenario.variant import present_name
from harness.target.metadata import Metadata, TargetRun
from harness.target.settings import MessageFormat, Settings
from harness.target.target import NodeSpec, Printed
from harness.target.traits import Epochs, Traits
from harness.target.wire import Wire
from harness.target.words import Lacks, Means
from targets.broker.config import SECRET_VARIABLE
from targets.broker.core import rules as core_rules
from targets.broker.core.inter_broker import AT, protocol_rules
from targets.broker.core.rules import PROTOCOLS, Rules, TruncateTo, as_text, with_rule
from targets.broker_target import layout
from targets.kafka_family.clients.part import KafkaClients
from targets.kafka_family.logs.reader import LOGS
from targets.kafka_family.nemeses import FAULTS
from targets.kafka_family.traits import OURS
from targets.kafka_family.wire.wire import KafkaWire
from targets.kafka_family.words import WORDS as FAMILY_WORDS
from targets.kafka_family.zookeeper.layout import ABILITIES
from targets.kafka_family.zookeeper.opening import open_view, operator_of
from targets.zookeeper.chroot import connection_of
from targets.zookeeper.server import ZOOKEEPER

if TYPE_CHECKING:
    from targets.kafka_family.zookeeper.view import RealZooKeeperView

# Times of a run, ms. A session outlives every run: only the harness ends sessions. Followers never leave the
# ISR for lag, since holds last as long as the machine is busy. All other times are short, to keep a run short.
SESSION_TIMEOUT_MS: Final = 90_000
SETTINGS: Final = {
    "replica_lag_ms_max": 60_000,
    "fetch_wait_ms_max": 50,
    "fetch_backoff_ms": 50,
    "high_watermark_checkpoint_ms": 50,
    "retention_check_ms": 50,
    "compaction_check_ms": 50,
    "controller_backoff_ms": 50,
    "register_backoff_ms": 50,
}
_CLOCKS: Final = re.compile(r" clocks: wall_ns=(?P<wall>\d+) monotonic_ns=(?P<monotonic>\d+)$")


# What stands for the words of scenarios where the family's systems differ.
WORDS: Final[Mapping[str, Means | Lacks]] = {
    **FAMILY_WORDS,
    "leader": Means("it is elected, and has reported that it leads in that epoch"),
    "heard": Means("it has reported that it leads or follows in the epoch of the partition's znode"),
    "compacted": Means("it has reported up to where it compacted its log"),
    "format": Means("it has reported that it took up the topic's format"),
    "truncated": Means("it has reported a `truncate`"),
    "fenced": Means("it has reported that its leader refused its epoch"),
    "stuck": Means("it has reported that it cannot go on following"),
    "awaiting": Means("it has reported that it waits for a newer epoch"),
    "elect": Means(f"a wish in the znode `{layout.REQUESTS}`, which the controller reads"),
    "move-away": Means(f"a wish in the znode `{layout.REQUESTS}` for other replicas"),
    "remove": Means(f"a wish in the znode `{layout.REQUESTS}` for fewer partitions"),
}


def _asks_first(rules: Mapping[str, str]) -> bool:
    """With KIP-101 a follower first asks for an epoch's end; before, it truncated its log and fetched."""
    return core_rules.from_text(rules).truncate_to is not TruncateTo.HIGH_WATERMARK


class BrokerTarget:
    """The target `broker`; see harness/target/target.py for every call."""

    name = "broker"
    clients = KafkaClients()
    logs = LOGS
    wire: Wire | None = KafkaWire(_asks_first, commands=False)
    words: Mapping[str, Means | Lacks] = WORDS
    abilities = ABILITIES
    downloads = None
    services = (ZOOKEEPER,)
    faults = FAULTS

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """The ladder of targets/broker/core/rules.py."""
        return {name: as_text(rules) for name, rules in PROTOCOLS.items()}

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return a protocol's rules with these changes."""
        return as_text(_chosen(protocol, changes))

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what the rules decide: epochs in records since KIP-101, ids of producers since KIP-98."""
        rules = _chosen(protocol, changes)
        epochs = Epochs.IN_RECORDS if rules.epochs else Epochs.NONE
        return replace(OURS, epochs=epochs, idempotence=rules.idempotence)

    def require(self, rules: Mapping[str, str]) -> None:
        """Do nothing: this Python is all that it needs."""

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """`python -m targets.broker --config broker.json`."""
        place = spec.place
        config = {
            "broker_id": spec.broker_id,
            "node": spec.name,
            "listen_client": _pair(place.client),
            "listen_internal": _pair(place.internal),
            "advertised_client": _pair(place.client_outside),
            "advertised_internal": _pair(spec.advertised_internal),
            "zookeeper": connection_of(spec),
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "data_dir": place.data_dir,
            "collector": _pair(spec.collector),
            "protocol": protocol,
            "rules": dict(rules),
            "settings": settings_of(spec.settings),
        }
        if spec.settings.segment_bytes is not None:
            config["segment_bytes"] = spec.settings.segment_bytes
        argv = (place.python, "-m", "targets.broker", "--config", f"{place.conf_dir}/broker.json")
        files = {"broker.json": json.dumps(config, indent=1)}
        return Launch(argv=argv, files=files, env={SECRET_VARIABLE: spec.secret})

    def metadata(self, run: TargetRun) -> RealZooKeeperView:
        """What stands in ZooKeeper (Kafka Replication V3, Paths)."""
        return open_view(run, layout)

    def operator(self, run: TargetRun, metadata: Metadata) -> RealZooKeeperView:
        """The same view of ZooKeeper: requests stand there too."""
        del run
        return operator_of(metadata)

    def printed(self, line: str) -> Printed | None:
        """Return None: this broker emits events."""
        del line
        return None

    def clocks(self, line: str) -> tuple[int, int] | None:
        """Return what targets/broker/serving.py prints of its clocks."""
        found = _CLOCKS.search(line)
        return None if found is None else (int(found["wall"]), int(found["monotonic"]))


def _chosen(protocol: str, changes: Sequence[str]) -> Rules:
    if AT not in protocol:
        pick("protocol", PROTOCOLS, protocol)
    try:
        chosen = protocol_rules(protocol)
        for change in changes:
            chosen = with_rule(chosen, present_name(change))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return chosen


def settings_of(settings: Settings) -> dict[str, int | bool]:
    """Translate a scenario's settings to the core's names, with those of every run; the simulator uses them."""
    asked: dict[str, int | bool] = {
        "min_isr": settings.min_isr,
        "unclean_election": settings.unclean_election,
        "message_format": 2 if settings.message_format is MessageFormat.WITH_EPOCHS else 1,
        "flush_messages": settings.flush_messages,
        "retention_ms": settings.retention_ms,
        "retention_bytes": settings.retention_bytes,
        "compact": settings.compact,
        "controlled_shutdown_ms": settings.controlled_shutdown_ms,
    }
    if settings.delete_retention_ms is not None:
        asked["delete_retention_ms"] = settings.delete_retention_ms
    if settings.replica_lag_ms_max is not None:
        asked["replica_lag_ms_max"] = settings.replica_lag_ms_max
    return {**SETTINGS, **asked}


def _pair(address: Address) -> list[str | int]:
    return [address.host, address.port]


TARGET = BrokerTarget()
