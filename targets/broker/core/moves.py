"""
Reassignments that clients ask for, cancel and list: what is wanted is written into the topic's node.

`reassignment` does the rest. V3 has a path for what is wanted; here, as in Kafka since KIP-455, the request goes
to the controller, and what it has written stands beside the assignment that it changes.
Source:  Kafka Replication Design V3, Paths 5; KIP-455; Kafka, KafkaController.alterPartitionReassignments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from targets.broker.core import controller, made, readable
from targets.broker.core.assignments import Assignment, Move, encode_topic
from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    ErrorCode,
    ListReassignmentsRequest,
    PartitionError,
    PartitionErrors,
    Reassignment,
    ReassignmentsResponse,
    TopicPartition,
)
from targets.broker.core.names import is_topic_name
from targets.broker.core.reassignment import note
from targets.broker.core.state import Core
from targets.broker.core.topics import LOST
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
    ZkSet,
    topic_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToMove:
    """Partitions are to be moved; the live brokers and the topics' nodes are being read."""

    caller: Caller
    request: AlterReassignmentsRequest
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMovesNoted:
    """The topics' nodes are being written: the errors so far, and the partitions of each node in flight."""

    caller: Caller
    errors: tuple[PartitionError, ...]
    noted: tuple[tuple[TopicPartition, ...], ...]


def on_alter(core: Core, caller: Caller, request: AlterReassignmentsRequest) -> None:
    """Read where the partitions are, if this broker is the controller."""
    if not core.state.controller.active:
        core.effects.append(Answer(to=caller, response=PartitionErrors(error=ErrorCode.NOT_CONTROLLER, errors=())))
        return
    named = dict.fromkeys(wanted.tp.topic for wanted in request.partitions)
    topics = tuple(topic for topic in named if is_topic_name(topic))
    gets = (ZkGet(path=topic_path(topic)) for topic in topics)
    core.ask(AwaitTopicsToMove(caller=caller, request=request, topics=topics), ZkChildren(path=BROKER_IDS), *gets)


def on_read(core: Core, continuation: AwaitTopicsToMove, results: tuple[ZkResult, ...]) -> None:
    """Check each partition, and write what is wanted of each topic; other partitions of it go ahead."""
    brokers = results[0]
    live = readable.broker_ids(core, brokers.names) if isinstance(brokers, ZkNames) else None
    nodes = dict(zip(continuation.topics, results[1:], strict=True))
    errors: list[PartitionError] = []
    writes: list[ZkMulti] = []
    noted: list[tuple[TopicPartition, ...]] = []
    for topic in dict.fromkeys(wanted.tp.topic for wanted in continuation.request.partitions):
        mine = [wanted for wanted in continuation.request.partitions if wanted.tp.topic == topic]
        node = nodes.get(topic, ZkError.NO_NODE)
        if live is None or node is ZkError.LOST:
            errors += [PartitionError(wanted.tp, ErrorCode.REQUEST_TIMED_OUT, LOST) for wanted in mine]
            continue
        has = readable.read_assignment(core, topic, node) if isinstance(node, ZkNode) else None
        has = has or Assignment(replicas={})
        moves = dict(has.moves)
        noted_each = [PartitionError(wanted.tp, *note(wanted, has, moves, live)) for wanted in mine]
        errors += [each for each in noted_each if each.error is not ErrorCode.NONE]
        sound = tuple(each.tp for each in noted_each if each.error is ErrorCode.NONE)
        if not isinstance(node, ZkNode) or moves == has.moves:
            errors += [PartitionError(tp, ErrorCode.NONE) for tp in sound]  # it is as wanted
            continue
        data = encode_topic(replace(has, moves=moves))
        write = ZkSet(path=topic_path(topic), data=data, version=node.version)
        writes.append(ZkMulti(ops=(*made.checks(core, topic, has.made), write)))
        noted.append(sound)
    after = AwaitMovesNoted(caller=continuation.caller, errors=tuple(errors), noted=tuple(noted))
    if writes:
        core.ask(after, *writes)
    else:
        on_written(core, after, ())


def on_written(core: Core, continuation: AwaitMovesNoted, results: tuple[ZkResult, ...]) -> None:
    """Begin, and answer; a node that was written meanwhile is left as it is."""
    errors = [*continuation.errors]
    for partitions, result in zip(continuation.noted, results, strict=True):
        error, text = ErrorCode.NONE, ""
        if not isinstance(result, ZkDone):
            changed = f"its topic was changed meanwhile ({result}); nothing is moved"
            error, text = ErrorCode.REQUEST_TIMED_OUT, LOST if result is ZkError.LOST else changed
        errors += [PartitionError(tp, error, text) for tp in partitions]
    if results:
        controller.read(core)
    response = PartitionErrors(error=ErrorCode.NONE, errors=tuple(errors))
    core.effects.append(Answer(to=continuation.caller, response=response))


def on_list(core: Core, caller: Caller, request: ListReassignmentsRequest) -> None:
    """Answer what is under way, as this controller has read or written it last."""
    known = core.state.controller
    if not known.in_office:
        response = ReassignmentsResponse(error=ErrorCode.NOT_CONTROLLER, reassignments=())
    else:
        asked = known.moves if request.partitions is None else dict.fromkeys(request.partitions)
        found = [_shown(tp, known.assignments[tp], known.moves[tp]) for tp in asked if tp in known.moves]
        response = ReassignmentsResponse(error=ErrorCode.NONE, reassignments=tuple(found))
    core.effects.append(Answer(to=caller, response=response))


def _shown(tp: TopicPartition, replicas: tuple[int, ...], move: Move) -> Reassignment:
    return Reassignment(
        tp=tp,
        replicas=tuple(dict.fromkeys((*replicas, *move.target))),
        adding=tuple(broker for broker in move.target if broker not in move.origin),
        removing=tuple(broker for broker in replicas if broker not in move.target),
    )
