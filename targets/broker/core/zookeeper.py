"""
ZooKeeper as the core sees it: operations, results, and Kafka Replication Design V3's paths and nodes.

An ask is a list of operations that the driver pipelines in order; a ZkMulti among them is atomic. One event
returns the results, one for every operation. A lost connection answers LOST for all: a write may or may not
have happened, so the core reads before it continues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias

from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
BROKER_TOPICS: Final = "/brokers/topics"
ADMIN: Final = "/admin"
ELECTIONS: Final = "/admin/elections"
CONFIG: Final = "/config"
CONFIG_TOPICS: Final = "/config/topics"
PRODUCER_IDS: Final = "/latest_producer_id_block"
# The largest numbers that a message between brokers has a place for.
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
# The largest controller epoch that is believed: whoever wrote a larger one by hand would leave no next one.
EPOCH_MAX: Final = 2**30
HOST_CHARACTERS_MAX: Final = 255
PORT_MAX: Final = 65_535
_NOBODY: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkGet:
    """Read a node."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkExists:
    """Read a node's stat; with watch, fire once when it appears, changes or is deleted."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkChildren:
    """List a node's children; with watch, fire once when the list changes."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkSync:
    """
    Have the server catch up with its leader, so that the reads after it see every write that was answered before.

    Source:  ZooKeeper Programmer's Guide, "Consistency Guarantees": a read may be of an older state.
    """

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkCreate:
    """Create a node."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkSet:
    """Write a node if it still has this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkDelete:
    """Delete a node if it still has this version (-1: any)."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkCheck:
    """Within a ZkMulti: fail all of it unless the node has this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMulti:
    """All of these or none."""

    ops: tuple[ZkCreate | ZkSet | ZkDelete | ZkCheck, ...]


ZkOp: TypeAlias = ZkGet | ZkExists | ZkChildren | ZkSync | ZkCreate | ZkMulti


class ZkError(StrEnum):
    """Why an operation failed. Only LOST leaves open whether a write happened."""

    NO_NODE = "no-node"
    NODE_EXISTS = "node-exists"
    BAD_VERSION = "bad-version"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkNode:
    """
    A node as read: owner is the session of an ephemeral, 0 for others.

    czxid and mzxid are the transaction ids of its creation and of its last change.
    """

    data: bytes
    version: int
    owner: int
    czxid: int
    mzxid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkNames:
    """The children of a node, sorted."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkDone:
    """A write, or a sync, succeeded."""


ZkResult: TypeAlias = ZkNode | ZkNames | ZkDone | ZkError


class NodeError(ValueError):
    """A node holds something else than its path promises; the text says what."""


# What reading JSON of any shape may raise.
MISREAD = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def whole_number(found: object, most: int = INT_MAX, least: int = 0) -> int:
    """
    Return a number as it was read from JSON.

    Raises:
        ValueError: it is none, or no message between brokers has a place for it: whoever tells it would end.
    """
    if type(found) is not int or not least <= found <= most:
        raise ValueError(f"{str(found)[:30]}, expected a whole number from {least} to {most}")
    return found


def broker_path(broker_id: int) -> str:
    """Return the path of a broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Return the path of a topic's assignment."""
    return f"{BROKER_TOPICS}/{topic}"


def config_path(topic: str) -> str:
    """Return the path of a topic's own settings."""
    return f"{CONFIG_TOPICS}/{topic}"


def partition_path(tp: TopicPartition) -> str:
    """Return the parent of a partition's leaderAndISR."""
    return f"{BROKER_TOPICS}/{tp.topic}/{tp.partition}"


def leader_and_isr_path(tp: TopicPartition) -> str:
    """Return the path of leaderAndISR: written by the controller, its ISR by the leader too."""
    return f"{partition_path(tp)}/leaderAndISR"


def topic_id_path(tp: TopicPartition, topic_id: int) -> str:
    """
    Return the path of an empty node beside leaderAndISR, which only the topic with this id has.

    A write that checks it cannot reach another topic of the same name, whose versions begin at 0 again.
    """
    return f"{partition_path(tp)}/id-{topic_id}"


def has_topic_id(path: str) -> bool:
    """Return True if a node below a partition's is one of `topic_id_path`."""
    return path.rpartition("/")[2].startswith("id-")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """
    A leaderAndISR node: leader -1 for none, zk_version the version it was read or written at.

    topic_id is the czxid of the topic's node, NO_TOPIC_ID if the node was written without the rule topic_identity.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zk_version: int
    topic_id: int = NO_TOPIC_ID


def encode_state(state: PartitionState) -> bytes:
    """Encode a leaderAndISR node with V3's field names (`leader_epoc` is V3's spelling)."""
    raw: dict[str, Any] = {
        "leader_epoc": state.leader_epoch,
        "leader": state.leader,
        "ISR": list(state.isr),
        "controller_epoch": state.controller_epoch,
    }
    if state.topic_id != NO_TOPIC_ID:
        raw["topic_id"] = state.topic_id
    return json.dumps(raw).encode()


def decode_state(node: ZkNode) -> PartitionState:
    """
    Decode a leaderAndISR node.

    Raises:
        NodeError: the node holds something else.
    """
    try:
        leader, leader_epoch, isr, controller_epoch, topic_id = _read_state(node.data)
    except MISREAD as error:
        raise misread(node.data, "leader, leader_epoc, ISR and controller_epoch", error) from error
    return PartitionState(
        leader=leader,
        leader_epoch=leader_epoch,
        isr=isr,
        controller_epoch=controller_epoch,
        zk_version=node.version,
        topic_id=topic_id,
    )


# A state is read far more often than it changes.
@lru_cache(maxsize=256)
def _read_state(data: bytes) -> tuple[int, int, tuple[int, ...], int, int]:
    raw: dict[str, Any] = json.loads(data)
    isr = tuple(whole_number(member) for member in raw["ISR"])
    topic_id = whole_number(raw.get("topic_id", NO_TOPIC_ID), LONG_MAX)
    leader = whole_number(raw["leader"], least=_NOBODY)
    # There is a next epoch after each.
    leader_epoch = whole_number(raw["leader_epoc"], INT_MAX - 1)
    return leader, leader_epoch, isr, whole_number(raw["controller_epoch"]), topic_id


def misread(data: bytes, expected: str, error: Exception) -> NodeError:
    """Return the error of a node that holds something else."""
    return NodeError(f"{data[:80]!r}: expected JSON with {expected} ({type(error).__name__}: {str(error)[:80]})")


def decode_number(data: bytes, most: int = INT_MAX - 1) -> int:
    """
    Decode a node that holds a number: an epoch after which there is another, a broker's id.

    Raises:
        NodeError: the node holds something else.
    """
    try:
        return whole_number(int(data), most)
    except ValueError as error:
        raise NodeError(f"{data[:80]!r}: expected a whole number from 0 to {most}") from error


def encode_config(given: Mapping[str, str]) -> bytes:
    """Encode a topic's own settings as Kafka does (ConfigEntityZNode)."""
    return json.dumps({"version": 1, "config": dict(given)}).encode()


def decode_config(data: bytes) -> dict[str, str]:
    """
    Decode a topic's own settings.

    Raises:
        NodeError: the node holds something else.
    """
    try:
        given: dict[str, str] = json.loads(data)["config"]
        if not all(isinstance(text, str) for text in given.values()):
            raise ValueError("a value that is no text")
    except MISREAD as error:
        raise misread(data, 'config, {"retention.ms": "1000"}', error) from error
    return given


def encode_block(broker_id: int, first: int, last: int) -> bytes:
    """Encode a block of producers' ids that a broker reserves (Kafka, ProducerIdBlockZNode)."""
    block = {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    return json.dumps(block).encode()


def decode_block_end(data: bytes) -> int:
    """
    Decode the last id of a block of producers' ids.

    Raises:
        NodeError: the node holds something else.
    """
    try:
        end = int(json.loads(data)["block_end"])
        if end < 0:
            raise ValueError("a negative number")
    except MISREAD as error:
        raise misread(data, "block_end", error) from error
    return end


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """
    A broker's node: where clients reach it, where brokers reach it, and which machine it is.

    `node` names the machine, so that a restarted broker takes over its own old registration and never that of
    another machine with the same id.
    """

    node: str
    host: str
    port: int
    internal_host: str
    internal_port: int


def encode_registration(registration: Registration) -> bytes:
    """Encode a registration node."""
    return json.dumps(
        {
            "node": registration.node,
            "host": registration.host,
            "port": registration.port,
            "internal": [registration.internal_host, registration.internal_port],
        }
    ).encode()


def decode_registration(data: bytes) -> Registration:
    """
    Decode a registration node.

    Raises:
        NodeError: the node holds something else.
    """
    try:
        raw: dict[str, Any] = json.loads(data)
        internal_host, internal_port = raw["internal"]
        return Registration(
            node=str(raw["node"]),
            host=_host(raw["host"]),
            port=whole_number(raw["port"], PORT_MAX, 1),
            internal_host=_host(internal_host),
            internal_port=whole_number(internal_port, PORT_MAX, 1),
        )
    except MISREAD as error:
        raise misread(data, "node, host, port and internal", error) from error


def _host(found: object) -> str:
    """Return a host as a message can name it."""
    if not (isinstance(found, str) and found.isascii() and 0 < len(found) <= HOST_CHARACTERS_MAX):
        raise ValueError(f"{str(found)[:30]!a}, expected a host of 1 to {HOST_CHARACTERS_MAX} characters of ASCII")
    return found
