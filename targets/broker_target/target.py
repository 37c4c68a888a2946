"""This repository's broker as a target: its configuration file and its ZooKeeper paths (Kafka Replication V3)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness.launch import Address, Launch
from harness.model import UsageError
from harness.registry import pick
from harness.scenario.variant import present_name
from harness.target.metadata import Metadata, TargetRun
from harness.target.operator import Operator
from harness.target.settings import MessageFormat, Settings
from harness.target.target import NodeSpec, Printed
from harness.target.traits import Epochs, Traits
from harness.target.wire import Wire
from harness.target.words import Lacks, Means
from targets.broker.config import SECRET_VARIABLE
from targets.broker.core import assignments, wishes, zookeeper
from targets.broker.core import rules as core_rules
from targets.broker.core.inter_broker import AT, protocol_rules
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import PROTOCOLS, Rules, TruncateTo, as_text, with_rule
from targets.kafka_family.clients.part import KafkaClients
from targets.kafka_family.logs.reader import LOGS
from targets.kafka_family.nemeses import FAULTS
from targets.kafka_family.traits import OURS
from targets.kafka_family.wire.wire import KafkaWire
from targets.kafka_family.words import WORDS as FAMILY_WORDS
from targets.kafka_family.zookeeper.layout import ABILITIES, Port, StateNode
from targets.kafka_family.zookeeper.opening import connection_of, open_view, operator_of
from targets.kafka_family.zookeeper.server import ZOOKEEPER

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
    "elect": Means(f"a wish in the znode `{zookeeper.ELECTIONS}`, which the controller reads"),
    "move-away": Means(f"a wish in the znode `{zookeeper.ELECTIONS}` for other replicas"),
    "remove": Means(f"a wish in the znode `{zookeeper.ELECTIONS}` for fewer partitions"),
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

    def metadata(self, run: TargetRun) -> Metadata:
        """What stands in ZooKeeper (Kafka Replication V3, Paths)."""
        return open_view(run, LAYOUT)

    def operator(self, run: TargetRun, metadata: Metadata) -> Operator:
        """The same view of ZooKeeper: requests stand there too."""
        del run
        return operator_of(metadata)

    def emits_events(self) -> bool:
        """Return True."""
        return True

    def printed(self, line: str) -> Printed | None:
        """Return None: this broker emits events."""
        del line
        return None

    def clocks(self, line: str) -> tuple[int, int] | None:
        """Return what targets/broker/serving.py prints of its clocks."""
        found = _CLOCKS.search(line)
        return None if found is None else (int(found["wall"]), int(found["monotonic"]))


class BrokerLayout:
    """This broker's state in ZooKeeper; see targets/kafka_family/zookeeper/layout.py for every call."""

    def registration_path(self, broker_id: int) -> str:
        """V3, Paths 2."""
        return zookeeper.broker_path(broker_id)

    def controller_path(self) -> str:
        """V3, Paths 1."""
        return zookeeper.CONTROLLER

    def controller_id(self, data: bytes) -> int:
        """V3: {brokerid}."""
        return int(data)

    def partition_path(self, topic: str, partition: int) -> str:
        """V3, Paths 4."""
        return zookeeper.leader_and_isr_path(TopicPartition(topic, partition))

    def topic_path(self, topic: str) -> str:
        """V3, Paths 3."""
        return zookeeper.topic_path(topic)

    def assignment(self, data: bytes) -> Mapping[int, tuple[int, ...]]:
        """V3, Paths 3: partition -> replicas."""
        return assignments.decode_assignment(data)

    def partition_state(self, data: bytes, version: int) -> StateNode:
        """V3, Paths 4: leader epoch, leader and ISR."""
        node = zookeeper.ZkNode(data=data, version=version, owner=0, czxid=0)
        state = zookeeper.decode_state(node)
        return StateNode(leader=state.leader, leader_epoch=state.leader_epoch, isr=state.isr, version=version)

    def elections_path(self) -> str:
        """Return where `elect` writes its request."""
        return zookeeper.ELECTIONS

    def elect(self, port: Port, topic: str, partition: int, broker_id: int) -> str:
        """Write the election where the controller reads it; the controller removes it once it has decided."""
        wanted = {TopicPartition(topic, partition): broker_id}

        def only(there: bytes | None) -> bytes:
            return wishes.encode_wishes(replace(wishes.decode_wishes(there), elections=wanted))

        port.update(zookeeper.ELECTIONS, only)
        return f"broker {broker_id} asked for at {zookeeper.ELECTIONS}"

    def move(self, port: Port, topic: str, partition: int, broker_ids: Sequence[int]) -> str:
        """Write what is wanted where the controller reads it, beside what it has not taken yet."""
        moves = {TopicPartition(topic, partition): tuple(broker_ids)}
        port.update(zookeeper.ELECTIONS, wishes.Wishes(moves=moves).beside)
        return f"replicas {list(broker_ids)} of {topic}-{partition} asked for at {zookeeper.ELECTIONS}"

    def remove(self, port: Port, topic: str, partitions: Sequence[int]) -> str:
        """Write what is to go where the controller reads it, beside what it has not taken yet."""
        removals = tuple(TopicPartition(topic, partition) for partition in partitions)
        port.update(zookeeper.ELECTIONS, wishes.Wishes(removals=removals).beside)
        return f"removal of {', '.join(map(str, removals))} asked for at {zookeeper.ELECTIONS}"

    def wanted(self, port: Port, topic: str, partition: int) -> tuple[int, ...]:
        """Look at what the controller has not taken yet, then at the topic's node."""
        asked = wishes.decode_wishes(port.read(zookeeper.ELECTIONS)).moves
        if (found := asked.get(TopicPartition(topic, partition))) is not None:
            return found
        node = port.read(zookeeper.topic_path(topic))
        if node is None:
            return ()
        has = assignments.decode_topic(node)
        move = has.moves.get(partition)
        return has.replicas.get(partition, ()) if move is None else move.target


LAYOUT: Final = BrokerLayout()


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
