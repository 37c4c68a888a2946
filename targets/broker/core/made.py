"""
Which of the topics of one name: a mark in a topic's node, and an empty node below it, named by the mark.

    {"partitions": …, "made": "167-12"}  and  made-167-12, both made by the write that creates the topic
ZooKeeper's multi can check a node's version, which begins at 0 with each topic of a name, and not when the node
was made. So whoever writes by what it has read of a topic checks the node with the mark: the next topic has
another. A topic that was written by hand has no mark until a controller gives it one (`marking`); until then a
write into it is checked by its version alone.
Source:  Kafka Replication Design V3, discussion 5; KIP-516. Apache Kafka has the hole: of a topic's first states
         only the controller's epoch is checked (KafkaZkClient.createTopicPartitionStatesRaw).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from targets.broker.core import readable
from targets.broker.core.assignments import Assignment, encode_topic
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import ZkCheck, ZkError, ZkExists, ZkNode, ZkResult, ZkSet, topic_path

_NAME: Final = "made-"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMark:
    """A write that checks a topic's mark was refused; whether the mark is there is being read."""

    topic: str
    czxid: int
    mark: str


def may_mark(core: Core) -> bool:
    """Return False where topics have no identity, or this broker no registration, of which marks are made."""
    return core.rules.topic_identity and core.state.registration > 0


def new_mark(core: Core) -> str:
    """
    Return a mark that no topic has had, "" if there is none to give.

    Its first number is this broker's registration (its czxid), which no other process has ever had.
    """
    return f"{core.state.registration}-{core.number()}" if may_mark(core) else ""


def made_path(topic: str, mark: str) -> str:
    """Return the path of the empty node that only the topic with this mark has."""
    return f"{topic_path(topic)}/{_NAME}{mark}"


def is_made_path(path: str) -> bool:
    """Return True if a node below a topic's is one of `made_path`."""
    return path.rpartition("/")[2].startswith(_NAME)


def checks(core: Core, topic: str, mark: str) -> tuple[ZkCheck, ...]:
    """Return what a write begins with that is about the topic with this mark, and about no other of its name."""
    if not mark or not core.rules.topic_identity:
        return ()
    return (ZkCheck(path=made_path(topic, mark), version=0),)


def rewriting(core: Core, topic: str, node: ZkNode, after: Assignment) -> tuple[ZkCheck | ZkSet, ...]:
    """Return what writes a topic's node as it is to be, if nothing was written since it was read."""
    data = encode_topic(after)
    return (*checks(core, topic, after.made), ZkSet(path=topic_path(topic), data=data, version=node.version))


def if_same(node: ZkResult, czxid: int | None) -> ZkResult:
    """Return a topic's node that was read once more; NO_NODE if it is that of the next topic of the name."""
    return ZkError.NO_NODE if isinstance(node, ZkNode) and czxid not in (None, node.czxid) else node


def look(core: Core, topic: str, czxid: int, mark: str) -> None:
    """Read whether a topic has its mark: without it nothing is ever written of the topic, and nothing says why."""
    for check in checks(core, topic, mark):
        if not is_missing(core, topic, mark):
            # The mark first: where the topic is still there after it, it was not deleted with its topic.
            reads = ZkExists(path=check.path), ZkExists(path=topic_path(topic))
            core.ask(AwaitMark(topic=topic, czxid=czxid, mark=mark), *reads)


def is_missing(core: Core, topic: str, mark: str) -> bool:
    """Return True if a topic's mark was named as missing."""
    return bool(mark and core.state.unreadable) and made_path(topic, mark) in core.state.unreadable


def on_looked(core: Core, continuation: AwaitMark, mark: ZkResult, node: ZkResult) -> None:
    """Name a mark that is missing."""
    if mark is not ZkError.NO_NODE or not isinstance(node, ZkNode) or node.czxid != continuation.czxid:
        return
    text = f'missing, though {topic_path(continuation.topic)} has "made": "{continuation.mark}"; expected an empty'
    text += ' node. Was the topic\'s node written by hand? Delete "made" from it'
    readable.name_node(core, made_path(continuation.topic, continuation.mark), node.czxid, text)
