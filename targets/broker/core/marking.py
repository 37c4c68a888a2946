"""
A controller gives a mark to a topic that has none, which tells the topic from others of its name (module `made`).

    created: the node named by the mark -> read: is the topic the one that was read? -> written: the mark, with it
Such a topic was written by hand, by an old tool, or by a release without topic_identity. A mark that no other
topic can have is below the one that was read, or gone with it, if that one is there after the mark's creation.
Until then nothing that was read of the topic is its first state.
Source:  Kafka Replication Design V3, discussion 5; KIP-516, and Kafka's KafkaController.processTopicIds, which
         gives ids to the topics that have none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from targets.broker.core import made
from targets.broker.core.assignments import Assignment
from targets.broker.core.fences import in_office
from targets.broker.core.reading import left_office
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    ZkCreate,
    ZkDone,
    ZkError,
    ZkExists,
    ZkMulti,
    ZkNode,
    ZkResult,
    topic_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmarked:
    """A topic as it was read, and what it has then: the same, and its mark."""

    topic: str
    node: ZkNode
    has: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMarksMade:
    """The nodes that marks name were created, and the topics are being read: two results for each."""

    office: int
    topics: tuple[Unmarked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMarksWritten:
    """Marks are being written into the topics' nodes, each by a write of its own."""

    office: int
    topics: tuple[Unmarked, ...]


def mark(core: Core, topics: Iterable[tuple[str, ZkNode, Assignment]]) -> None:
    """Begin to mark those of the topics read that have no mark, but for those that are being deleted."""
    if not made.may_mark(core):
        return
    controller = core.state.controller
    begun: list[Unmarked] = []
    for topic, node, has in topics:
        known = (topic, node.czxid)
        if has.made or not has.replicas or known in controller.marking or known in controller.markless:
            continue
        controller.marking.add(known)
        begun.append(Unmarked(topic=topic, node=node, has=replace(has, made=made.new_mark(core))))
    if not begun:
        return
    ops: list[ZkMulti | ZkExists] = []
    for each in begun:
        create = ZkCreate(path=made.made_path(each.topic, each.has.made))
        ops += [ZkMulti(ops=(in_office(core), create)), ZkExists(path=topic_path(each.topic))]
    core.ask(AwaitMarksMade(office=controller.epoch, topics=tuple(begun)), *ops)


def is_awaited(core: Core, topic: str) -> bool:
    """Return True if a topic is to be given a mark first; a broker that is not registered yet has none to give."""
    controller = core.state.controller
    if topic in controller.made or not made.may_mark(core):
        return False
    return (topic, controller.topics[topic][0]) not in controller.markless


def on_made(core: Core, continuation: AwaitMarksMade, results: tuple[ZkResult, ...]) -> None:
    """Write the marks into the nodes of those topics that are still the ones that were read."""
    if left_office(core, continuation.office):
        return
    found = zip(continuation.topics, results[::2], results[1::2], strict=True)
    there: list[Unmarked] = []
    writes: list[ZkMulti] = []
    for each, created, node in found:
        if isinstance(created, ZkDone) and isinstance(node, ZkNode) and node.czxid == each.node.czxid:
            there.append(each)
            writes.append(ZkMulti(ops=(in_office(core), *made.rewriting(core, each.topic, each.node, each.has))))
        else:
            _is_over(core, each, created if isinstance(created, ZkError) else node)
    if writes:
        core.ask(AwaitMarksWritten(office=continuation.office, topics=tuple(there)), *writes)


def on_written(core: Core, continuation: AwaitMarksWritten, results: tuple[ZkResult, ...]) -> bool:
    """Return True if there are marks to be read, as no watch says so."""
    if left_office(core, continuation.office):
        return False
    for each, result in zip(continuation.topics, results, strict=True):
        _is_over(core, each, result)
    return any(isinstance(result, ZkDone) for result in results)


def _is_over(core: Core, each: Unmarked, result: ZkResult) -> None:
    """
    Try again later, if a mark was not written.

    What ZooKeeper refuses for another reason than another write, as of a node that nobody may write, it will
    refuse again: that topic goes without, and what is written of it is checked by its version alone.
    """
    controller = core.state.controller
    controller.marking.discard((each.topic, each.node.czxid))
    if result is ZkError.REFUSED:
        controller.markless.add((each.topic, each.node.czxid))
    if not isinstance(result, ZkDone):
        core.after_ms(("controller-read",), core.config.controller_backoff_ms)
