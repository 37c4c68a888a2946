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
from harness.target.settings import MessageFormat, Settings
from harness.target.target import NodeSpec, PartitionTruth, Printed, ZooKeeperPort
from targets.broker.config import SECRET_VARIABLE
from targets.broker.core import assignments, wishes, zookeeper
from targets.broker.core import rules as core_rules
from targets.broker.core.inter_broker import AT, protocol_rules
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import PROTOCOLS, TruncateTo, as_text, with_rule
from targets.kafka_family.nemeses import FAULTS
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


class BrokerTarget:
    """The target `broker`; see harness/target/target.py for every call."""

    name = "broker"
    services = (ZOOKEEPER,)
    faults = FAULTS

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """The ladder of targets/broker/core/rules.py."""
        return {name: as_text(rules) for name, rules in PROTOCOLS.items()}

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return a protocol's rules with these changes."""
        if AT not in protocol:
            pick("protocol", PROTOCOLS, protocol)
        try:
            chosen = protocol_rules(protocol)
            for change in changes:
                chosen = with_rule(chosen, present_name(change))
        except ValueError as error:
            raise UsageError(str(error)) from error
        return as_text(chosen)

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
            "zookeeper": spec.zookeeper,
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

    def first_question(self, rules: Mapping[str, str]) -> str:
        """With KIP-101 a follower first asks for an epoch's end; before, it truncated its log and fetched."""
        asks = core_rules.from_text(rules).truncate_to is not TruncateTo.HIGH_WATERMARK
        return "OffsetForLeaderEpoch" if asks else "Fetch"

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

    def partition_truth(self, data: bytes, version: int) -> PartitionTruth:
        """V3, Paths 4: leader epoch, leader and ISR."""
        node = zookeeper.ZkNode(data=data, version=version, owner=0, czxid=0)
        state = zookeeper.decode_state(node)
        return PartitionTruth(leader=state.leader, leader_epoch=state.leader_epoch, isr=state.isr, version=version)

    def elections_path(self) -> str:
        """Return where `elect` writes its request."""
        return zookeeper.ELECTIONS

    def elect(self, port: ZooKeeperPort, topic: str, partition: int, broker_id: int) -> str:
        """Write the election where the controller reads it; the controller removes it once it has decided."""
        wanted = {TopicPartition(topic, partition): broker_id}

        def only(there: bytes | None) -> bytes:
            return wishes.encode_wishes(replace(wishes.decode_wishes(there), elections=wanted))

        port.update(zookeeper.ELECTIONS, only)
        return f"broker {broker_id} asked for at {zookeeper.ELECTIONS}"

    def move(self, port: ZooKeeperPort, topic: str, partition: int, broker_ids: Sequence[int]) -> str:
        """Write what is wanted where the controller reads it, beside what it has not taken yet."""
        moves = {TopicPartition(topic, partition): tuple(broker_ids)}
        port.update(zookeeper.ELECTIONS, wishes.Wishes(moves=moves).beside)
        return f"replicas {list(broker_ids)} of {topic}-{partition} asked for at {zookeeper.ELECTIONS}"

    def remove(self, port: ZooKeeperPort, topic: str, partitions: Sequence[int]) -> str:
        """Write what is to go where the controller reads it, beside what it has not taken yet."""
        removals = tuple(TopicPartition(topic, partition) for partition in partitions)
        port.update(zookeeper.ELECTIONS, wishes.Wishes(removals=removals).beside)
        return f"removal of {', '.join(map(str, removals))} asked for at {zookeeper.ELECTIONS}"

    def wanted(self, port: ZooKeeperPort, topic: str, partition: int) -> tuple[int, ...]:
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

    def client(self, rules: Mapping[str, str]) -> str:
        """Return the client that sends every request once."""
        del rules
        return "raw"


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
