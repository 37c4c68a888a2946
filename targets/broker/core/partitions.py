"""
Partitions that clients add to a topic: a conditional write of its node, by the controller, which reads it again.

V3 has a path for what is to be added; here, as in Kafka, the request goes to the controller itself. What it has
written the next controller finds, if it dies before it has begun the new partitions. A topic that was written
between its reading and its write, as by another request, is read once more.
Source:  Kafka Replication Design V3, on_partitions_add; KIP-195; Kafka, AdminManager.createPartitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from targets.broker.core import controller, made, readable
from targets.broker.core.events import Answer, Caller
from targets.broker.core.fences import in_office
from targets.broker.core.messages import CreatePartitionsRequest, ErrorCode, MorePartitions, TopicErrors
from targets.broker.core.names import is_topic_name
from targets.broker.core.placement import assigned, shown
from targets.broker.core.removal import added
from targets.broker.core.state import Core
from targets.broker.core.topics import LOST, MEANWHILE
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    ZkChildren,
    ZkDone,
    ZkError,
    ZkGet,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkResult,
    topic_path,
)

_Replicas = Mapping[int, tuple[int, ...]]
_Error = tuple[str, ErrorCode, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToExtend:
    """
    Partitions are to be added; the live brokers and the topics' nodes are being read.

    Attributes:
        ids: of what is read once more, which topics it is about: the czxids of their nodes.
        errors: what became of the other topics by then.
    """

    caller: Caller
    request: CreatePartitionsRequest
    ids: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[_Error, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsExtended:
    """
    The topics' nodes are being written: the errors so far, and what is in flight.

    Attributes:
        ids: the topics whose writes are in flight, each with the czxid of its node.
        again: whether they were read once more.
    """

    caller: Caller
    request: CreatePartitionsRequest
    errors: tuple[_Error, ...]
    ids: Mapping[str, int]
    again: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The topics whose writes are in flight, in their order."""
        return tuple(self.ids)


def on_create_partitions(core: Core, caller: Caller, request: CreatePartitionsRequest) -> None:
    """Read what the topics have, if this broker is the controller: another would not begin what it adds."""
    asked = AwaitTopicsToExtend(caller=caller, request=request)
    if core.state.controller.active:
        _read(core, asked)
    else:
        _refuse(core, asked)


def _refuse(core: Core, asked: AwaitTopicsToExtend) -> None:
    text = "this broker is not the controller; expected the one that metadata name"
    refused = ((topic.topic, ErrorCode.NOT_CONTROLLER, text) for topic in asked.request.topics)
    core.effects.append(Answer(to=asked.caller, response=TopicErrors(errors=(*asked.errors, *refused))))


def _read(core: Core, continuation: AwaitTopicsToExtend) -> None:
    topics = [each.topic for each in continuation.request.topics if is_topic_name(each.topic)]
    core.ask(continuation, ZkChildren(path=BROKER_IDS), *(ZkGet(path=topic_path(topic)) for topic in topics))


def on_read(core: Core, continuation: AwaitTopicsToExtend, results: tuple[ZkResult, ...]) -> None:
    """
    Check each topic, and write those that may have more partitions.

    Only the controller of now may write: another's first reading may have been before a write of one deposed, and
    nobody would begin what that has added.
    """
    if not core.state.controller.active:
        _refuse(core, continuation)
        return
    brokers, nodes = results[0], iter(results[1:])
    live = sorted(readable.broker_ids(core, brokers.names)) if isinstance(brokers, ZkNames) else None
    errors = [*continuation.errors]
    writes: list[ZkMulti] = []
    ids: dict[str, int] = {}
    left = core.config.limits.topic_partitions_max
    for topic in continuation.request.topics:
        node = next(nodes) if is_topic_name(topic.topic) else ZkError.NO_NODE
        node = made.if_same(node, continuation.ids.get(topic.topic))
        if live is None or node is ZkError.LOST:
            errors.append((topic.topic, ErrorCode.REQUEST_TIMED_OUT, LOST))
            continue
        has = readable.read_assignment(core, topic.topic, node) if isinstance(node, ZkNode) else None
        if not isinstance(node, ZkNode) or has is None or not has.replicas:  # none at all: it is being deleted
            text = f"topic {topic.topic[:80]!r}: no such topic; expected one that is there"
            errors.append((topic.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text))
            continue
        more, error, text = _more(core, topic, has.replicas, live, left)
        if error is ErrorCode.NONE and has.moves:  # Kafka's rule: how many replicas they have is not settled
            moving = shown(sorted(has.moves))
            more, error, text = {}, ErrorCode.REASSIGNMENT_IN_PROGRESS, f"partitions {moving} are being moved"
        left -= len(more)
        if error is not ErrorCode.NONE or continuation.request.validate_only or topic.topic in ids:
            errors.append((topic.topic, error, text))
            continue
        own = added(has, more, node.mzxid)
        whole = replace(has, replicas={**has.replicas, **more}, ids=own)
        writes.append(ZkMulti(ops=(in_office(core), *made.rewriting(core, topic.topic, node, whole))))
        ids[topic.topic] = node.czxid
    after = AwaitTopicsExtended(
        caller=continuation.caller,
        request=continuation.request,
        errors=tuple(errors),
        ids=ids,
        again=bool(continuation.ids),
    )
    if writes:
        core.ask(after, *writes)
    else:
        on_written(core, after, ())


def _more(
    core: Core, topic: MorePartitions, has: _Replicas, live: Sequence[int], most: int
) -> tuple[_Replicas, ErrorCode, str]:
    """Return the new partitions with their replicas, or what is wrong with them."""
    count = topic.count - len(has)
    if count <= 0:
        text = f"{topic.count} partitions: expected more than the {len(has)} that it has"
        return {}, ErrorCode.INVALID_PARTITIONS, text
    limit = core.config.limits.topic_partitions_max
    if topic.count > limit:
        text = f"{topic.count} partitions: expected at most {limit} of one topic (topic_partitions_max)"
        return {}, ErrorCode.INVALID_PARTITIONS, text
    if count > most:
        text = f"{count} more partitions: expected at most {most} in one request (topic_partitions_max)"
        return {}, ErrorCode.INVALID_PARTITIONS, text
    factor, first = len(next(iter(has.values()))), max(has) + 1
    if topic.assignments is not None:
        if len(topic.assignments) != count or any(len(each) != factor for each in topic.assignments):
            sizes = shown([len(each) for each in topic.assignments])
            text = f"assignments of {sizes} replicas: expected {count}, of {factor} each"
            return {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
        return assigned(dict(enumerate(topic.assignments, first)), live)
    if factor > len(live):
        text = f"{factor} replicas each, as its partitions have: expected {factor} live brokers; {len(live)} live"
        return {}, ErrorCode.INVALID_REPLICATION_FACTOR, text
    # They go on where the others end, so that leaders are spread over all.
    more = {
        partition: tuple(live[(partition + place) % len(live)] for place in range(factor))
        for partition in range(first, first + count)
    }
    return more, ErrorCode.NONE, ""


def on_written(core: Core, continuation: AwaitTopicsExtended, results: tuple[ZkResult, ...]) -> None:
    """Begin the new partitions, and answer; a node written meanwhile is read once more, then left as it is."""
    errors = [*continuation.errors]
    refused: dict[str, int] = {}
    for name, result in zip(continuation.names, results, strict=True):
        if isinstance(result, ZkDone):
            errors.append((name, ErrorCode.NONE, ""))
        elif result in MEANWHILE and not continuation.again:
            refused[name] = continuation.ids[name]
        elif result is ZkError.LOST:
            errors.append((name, ErrorCode.REQUEST_TIMED_OUT, LOST))
        else:
            what = f"topic {name!r} was changed meanwhile, or another broker is the controller ({result})"
            text = f"{what}; nothing was added"
            errors.append((name, ErrorCode.REQUEST_TIMED_OUT, text))
    if refused:  # before the controller reads, which then sees what is written
        topics = {each.topic: each for each in reversed(continuation.request.topics) if each.topic in refused}
        request = replace(continuation.request, topics=tuple(topics[name] for name in refused))
        _read(
            core,
            AwaitTopicsToExtend(caller=continuation.caller, request=request, ids=refused, errors=tuple(errors)),
        )
    if results:
        controller.read(core)
    if not refused:
        core.effects.append(Answer(to=continuation.caller, response=TopicErrors(errors=tuple(errors))))
