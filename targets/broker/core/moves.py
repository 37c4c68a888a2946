"""
Reassignments that clients ask for, cancel and list: what is wanted is written into the topic's node.

`reassignment` does the rest. V3 has a path for what is wanted; here, as in Kafka since KIP-455, the request goes
to the controller, and what it has written stands beside the assignment that it changes. What is listed is read
there too: the controller's last reading may have been before a request that is answered.
Kafka handles requests and the steps of moves on one thread. Here a step may be written between a request's reading
and its write, which is then refused: it reads once more, and notes what is wanted of what is there by then.
Source:  Kafka Replication Design V3, Paths 5; KIP-455; Kafka, KafkaController.alterPartitionReassignments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from targets.broker.core import controller, made, readable
from targets.broker.core.assignments import Assignment, Move
from targets.broker.core.events import Answer, Caller
from targets.broker.core.fences import in_office
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    ErrorCode,
    ListReassignmentsRequest,
    PartitionError,
    PartitionErrors,
    Reassignment,
    ReassignmentsResponse,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.core.names import is_topic_name
from targets.broker.core.reassignment import note
from targets.broker.core.state import Core
from targets.broker.core.topics import LOST, MEANWHILE
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToMove:
    """
    Partitions are to be moved; the live brokers and the topics' nodes are being read.

    Attributes:
        ids: of what is read once more, which topics it is about: the czxids of their nodes.
        errors: what became of the other partitions by then.
    """

    caller: Caller
    request: AlterReassignmentsRequest
    topics: tuple[str, ...]
    ids: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMovesNoted:
    """
    The topics' nodes are being written: the errors so far, and what is wanted of each node in flight.

    Attributes:
        ids: the czxids of those nodes, by topic.
        again: whether they were read once more.
    """

    caller: Caller
    request: AlterReassignmentsRequest
    errors: tuple[PartitionError, ...]
    noted: tuple[tuple[WantedReplicas, ...], ...]
    ids: Mapping[str, int]
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicNamesToList:
    """All that is being moved is to be listed; the names of the topics are being read."""

    caller: Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToList:
    """What is being moved is to be listed, of these partitions or, with None, of all; the nodes are being read."""

    caller: Caller
    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...] | None


def on_alter(core: Core, caller: Caller, request: AlterReassignmentsRequest) -> None:
    """Read where the partitions are, if this broker is the controller."""
    if not core.state.controller.active:
        _refuse(core, caller)
        return
    named = dict.fromkeys(wanted.tp.topic for wanted in request.partitions)
    topics = tuple(topic for topic in named if is_topic_name(topic))
    _read(core, AwaitTopicsToMove(caller=caller, request=request, topics=topics))


def _read(core: Core, continuation: AwaitTopicsToMove) -> None:
    gets = (ZkGet(path=topic_path(topic)) for topic in continuation.topics)
    core.ask(continuation, ZkChildren(path=BROKER_IDS), *gets)


def on_read(core: Core, continuation: AwaitTopicsToMove, results: tuple[ZkResult, ...]) -> None:
    """
    Check each partition, and write what is wanted of each topic; other partitions of it go ahead.

    Only the controller of now may write: another's first reading may have been before a write of one deposed.
    Source:  Kafka, KafkaZkClient.setOrCreatePartitionReassignment and setTopicAssignment, which check the epoch.
    """
    if not core.state.controller.active:
        _leave(core, continuation)
        return
    brokers = results[0]
    live = readable.broker_ids(core, brokers.names) if isinstance(brokers, ZkNames) else None
    nodes = dict(zip(continuation.topics, results[1:], strict=True))
    errors = [*continuation.errors]
    writes: list[ZkMulti] = []
    noted: list[tuple[WantedReplicas, ...]] = []
    ids: dict[str, int] = {}
    for topic in dict.fromkeys(wanted.tp.topic for wanted in continuation.request.partitions):
        mine = [wanted for wanted in continuation.request.partitions if wanted.tp.topic == topic]
        node = made.if_same(nodes.get(topic, ZkError.NO_NODE), continuation.ids.get(topic))
        if live is None or node is ZkError.LOST:
            errors += [PartitionError(wanted.tp, ErrorCode.REQUEST_TIMED_OUT, LOST) for wanted in mine]
            continue
        has = readable.read_assignment(core, topic, node) if isinstance(node, ZkNode) else None
        has = has or Assignment(replicas={})
        moves = dict(has.moves)
        noted_each = [PartitionError(wanted.tp, *note(wanted, has, moves, live)) for wanted in mine]
        errors += [each for each in noted_each if each.error is not ErrorCode.NONE]
        sound = [(wanted, ok) for wanted, ok in zip(mine, noted_each, strict=True) if ok.error is ErrorCode.NONE]
        if not isinstance(node, ZkNode) or moves == has.moves:
            errors += [ok for _, ok in sound]  # it is as wanted
            continue
        after_it = replace(has, moves=moves)
        writes.append(ZkMulti(ops=(in_office(core), *made.rewriting(core, topic, node, after_it))))
        noted.append(tuple(wanted for wanted, _ in sound))
        ids[topic] = node.czxid
    after = AwaitMovesNoted(
        caller=continuation.caller,
        request=continuation.request,
        errors=tuple(errors),
        noted=tuple(noted),
        ids=ids,
        again=bool(continuation.ids),
    )
    if writes:
        core.ask(after, *writes)
    else:
        on_written(core, after, ())


def on_written(core: Core, continuation: AwaitMovesNoted, results: tuple[ZkResult, ...]) -> None:
    """Begin, and answer; a node that was written meanwhile is read once more, and then left as it is."""
    errors = [*continuation.errors]
    refused: list[WantedReplicas] = []
    for noted, result in zip(continuation.noted, results, strict=True):
        error, text = ErrorCode.NONE, ""
        if result in MEANWHILE and not continuation.again:
            refused += noted
            continue
        if result is ZkError.LOST:
            error, text = ErrorCode.REQUEST_TIMED_OUT, LOST
        elif not isinstance(result, ZkDone):
            what = f"its topic was changed meanwhile, or another broker is the controller ({result})"
            error, text = ErrorCode.REQUEST_TIMED_OUT, f"{what}; nothing is moved"
        errors += [PartitionError(wanted.tp, error, text) for wanted in noted]
    if refused:  # before the controller reads, which then sees what is written
        topics = tuple(dict.fromkeys(wanted.tp.topic for wanted in refused))
        again = AwaitTopicsToMove(
            caller=continuation.caller,
            request=replace(continuation.request, partitions=tuple(refused)),
            topics=topics,
            ids={topic: continuation.ids[topic] for topic in topics},
            errors=tuple(errors),
        )
        _read(core, again)
    if results:
        controller.read(core)
    if not refused:
        _answer(core, continuation.caller, errors)


def _leave(core: Core, continuation: AwaitTopicsToMove) -> None:
    """Answer without the office; what was written while it was held is not refused with the rest."""
    if not continuation.ids:
        _refuse(core, continuation.caller)
        return
    text = "this broker is no longer the controller; expected the one that metadata name"
    rest = (PartitionError(each.tp, ErrorCode.NOT_CONTROLLER, text) for each in continuation.request.partitions)
    _answer(core, continuation.caller, (*continuation.errors, *rest))


def _refuse(core: Core, caller: Caller) -> None:
    core.effects.append(Answer(to=caller, response=PartitionErrors(error=ErrorCode.NOT_CONTROLLER, errors=())))


def _answer(core: Core, caller: Caller, errors: Iterable[PartitionError]) -> None:
    core.effects.append(Answer(to=caller, response=PartitionErrors(error=ErrorCode.NONE, errors=tuple(errors))))


# --- the list ------------------------------------------------------------------------------------------------
def on_list(core: Core, caller: Caller, request: ListReassignmentsRequest) -> None:
    """Read which topics there are, or at once those that are named, if this broker is the controller."""
    if not core.state.controller.active:
        _answer_list(core, caller, ErrorCode.NOT_CONTROLLER)
    elif request.partitions is None:
        core.ask(AwaitTopicNamesToList(caller=caller), ZkChildren(path=BROKER_TOPICS))
    else:
        named = dict.fromkeys(tp.topic for tp in request.partitions)
        _read_to_list(core, caller, tuple(topic for topic in named if is_topic_name(topic)), request.partitions)


def on_names_to_list(core: Core, continuation: AwaitTopicNamesToList, result: ZkResult) -> None:
    """Read all topics."""
    if isinstance(result, ZkNames):
        _read_to_list(core, continuation.caller, readable.topic_names(core, result.names), None)
    else:
        _answer_list(core, continuation.caller, ErrorCode.REQUEST_TIMED_OUT)


def on_read_to_list(core: Core, continuation: AwaitTopicsToList, results: tuple[ZkResult, ...]) -> None:
    """Answer what is under way, unless the office was lost: then only the next controller knows."""
    if not core.state.controller.active:
        _answer_list(core, continuation.caller, ErrorCode.NOT_CONTROLLER)
        return
    if ZkError.LOST in results:
        _answer_list(core, continuation.caller, ErrorCode.REQUEST_TIMED_OUT)
        return
    there, _ = readable.read_topics(core, continuation.topics, results)
    moving = {
        TopicPartition(topic, partition): _shown(TopicPartition(topic, partition), has.replicas[partition], move)
        for topic, _, has in there
        for partition, move in has.moves.items()
    }
    asked = moving if continuation.partitions is None else dict.fromkeys(continuation.partitions)
    _answer_list(core, continuation.caller, ErrorCode.NONE, tuple(moving[tp] for tp in asked if tp in moving))


def _read_to_list(
    core: Core, caller: Caller, topics: tuple[str, ...], partitions: tuple[TopicPartition, ...] | None
) -> None:
    after = AwaitTopicsToList(caller=caller, topics=topics, partitions=partitions)
    if topics:
        core.ask(after, *(ZkGet(path=topic_path(topic)) for topic in topics))
    else:
        on_read_to_list(core, after, ())


def _answer_list(
    core: Core, caller: Caller, error: ErrorCode, reassignments: tuple[Reassignment, ...] = ()
) -> None:
    core.effects.append(
        Answer(to=caller, response=ReassignmentsResponse(error=error, reassignments=reassignments))
    )


def _shown(tp: TopicPartition, replicas: tuple[int, ...], move: Move) -> Reassignment:
    return Reassignment(
        tp=tp,
        replicas=tuple(dict.fromkeys((*replicas, *move.target))),
        adding=tuple(broker for broker in move.target if broker not in move.origin),
        removing=tuple(broker for broker in replicas if broker not in move.target),
    )
