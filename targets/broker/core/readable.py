"""
What can be read of ZooKeeper; what cannot is named in the history, left out, and stops nothing else.

An operator, another program or a bug may have written anything: a controller that ended for it would end each of
its successors, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from targets.broker.core.assignments import Assignment, decode_topic
from targets.broker.core.messages import TopicPartition
from targets.broker.core.names import is_topic_name
from targets.broker.core.settings import SettingError, topic_config
from targets.broker.core.state import Core, TopicConfig
from targets.broker.core.wishes import Wishes, decode_wishes
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER_EPOCH,
    ELECTIONS,
    EPOCH_MAX,
    INT_MAX,
    PRODUCER_IDS,
    NodeError,
    PartitionState,
    Registration,
    ZkNode,
    ZkResult,
    broker_path,
    config_path,
    decode_block_end,
    decode_config,
    decode_number,
    decode_registration,
    decode_state,
    leader_and_isr_path,
    topic_path,
)

T = TypeVar("T")
# Of the nodes that cannot be read so many are remembered, so that each is named once.
_NAMED_MAX = 1_000


def read_state(core: Core, tp: TopicPartition, node: ZkNode) -> PartitionState | None:
    """Return a partition's state, None if the node holds something else."""
    return _read(core, leader_and_isr_path(tp), node, decode_state)


def read_assignment(core: Core, topic: str, node: ZkNode) -> Assignment | None:
    """Return a topic's partitions with their replicas, None if the node holds something else, or too many."""
    most = core.config.limits.topic_partitions_max
    return _read(core, topic_path(topic), node, lambda found: decode_topic(found.data, most))


def read_topics(
    core: Core, topics: Iterable[str], results: Iterable[ZkResult]
) -> tuple[list[tuple[str, ZkNode, Assignment]], tuple[str, ...]]:
    """Return the topics that are there, each with its node and its assignment, and those that cannot be read."""
    found: list[tuple[str, ZkNode, Assignment]] = []
    unreadable: list[str] = []
    for topic, node in zip(topics, results, strict=True):
        if not isinstance(node, ZkNode):
            continue
        assignment = read_assignment(core, topic, node)
        if assignment is None:
            unreadable.append(topic)
        else:
            found.append((topic, node, assignment))
    return found, tuple(unreadable)


def read_registration(core: Core, broker: int, node: ZkNode) -> Registration | None:
    """Return a broker's registration, None if the node holds something else."""
    return _read(core, broker_path(broker), node, lambda found: decode_registration(found.data))


def read_live(core: Core, brokers: Iterable[int], results: Iterable[ZkResult]) -> tuple[tuple[int, int], ...]:
    """Return the brokers that are there, each with its registration's czxid; one that says not where is not."""
    live = []
    for broker, node in zip(brokers, results, strict=True):
        if isinstance(node, ZkNode) and read_registration(core, broker, node):
            if node.owner:
                live.append((broker, node.czxid))
            else:
                text = "no session owns it; expected an ephemeral node, which goes with its broker"
                name_node(core, f"{broker_path(broker)} owner", node.mzxid, text)
    return tuple(live)


def read_block_end(core: Core, node: ZkNode) -> int | None:
    """Return the last id of the newest block of producers' ids, None if the node holds something else."""
    return _read(core, PRODUCER_IDS, node, lambda found: decode_block_end(found.data))


def read_config(core: Core, topic: str, node: ZkNode) -> TopicConfig | None:
    """Return a topic's own settings, None if the node holds something else, or what no topic can have."""

    def decode(found: ZkNode) -> TopicConfig:
        try:
            return topic_config(decode_config(found.data), core.config, core.disk.log_dir)
        except SettingError as error:
            raise NodeError(str(error)) from error

    return _read(core, config_path(topic), node, decode)


def read_wishes(core: Core, node: ZkNode | None) -> Wishes:
    """Return what an operator asks for, nothing if there is no node; what cannot be read of it is named."""
    wrong: list[str] = []
    wishes = decode_wishes(None if node is None else node.data, wrong)
    if node is not None and wrong:
        name_node(core, ELECTIONS, node.mzxid, f"{node.data[:80]!r}: {'; '.join(wrong)}")
    return wishes


def read_number(core: Core, path: str, node: ZkNode) -> int | None:
    """Return the number that a node holds, None if it holds something else."""
    return _read(core, path, node, lambda found: decode_number(found.data))


def read_epoch(core: Core, node: ZkNode) -> int | None:
    """Return the controller epoch, None if the node holds something else, or one that leaves no next ones."""
    return _read(core, CONTROLLER_EPOCH, node, lambda found: decode_number(found.data, EPOCH_MAX))


def broker_ids(core: Core, names: Iterable[str]) -> tuple[int, ...]:
    """Return the ids of the registrations with these names."""
    found = []
    for name in names:
        if is_broker_id(name):
            found.append(int(name))
        else:
            name_node(core, f"{BROKER_IDS}/{name}", 0, "expected a broker's id, as 1")
    return tuple(found)


def is_broker_id(name: str) -> bool:
    """Return True for the name of a registration: a number that a message has a place for."""
    is_number = name.isascii() and name.isdecimal() and len(name) <= len(str(INT_MAX))
    return is_number and str(int(name)) == name and int(name) <= INT_MAX


def topic_names(core: Core, names: Iterable[str], below: str = BROKER_TOPICS) -> tuple[str, ...]:
    """Return those of the names below a path that a topic may have: a broker makes directories of them."""
    found = []
    for name in names:
        if is_topic_name(name):
            found.append(name)
        else:
            name_node(core, f"{below}/{name}", 0, "expected 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'")
    return tuple(found)


def _read(core: Core, path: str, node: ZkNode, decode: Callable[[ZkNode], T]) -> T | None:
    if core.state.unreadable.get(path) == node.mzxid:
        return None  # it is as it was when it could not be read; a large one takes long
    try:
        found = decode(node)
    except NodeError as error:
        name_node(core, path, node.mzxid, str(error))
        return None
    if core.state.unreadable:
        core.state.unreadable.pop(path, None)
    return found


def name_node(core: Core, path: str, change: int, error: str) -> bool:
    """Name a node once for each change of it; return False if it was named already."""
    named = core.state.unreadable
    if named.get(path) == change:
        return False
    named[path] = change
    core.observe("unreadable-metadata", {"path": path, "error": error})
    if len(named) > _NAMED_MAX:
        del named[next(iter(named))]
    return True
