"""
Metadata, topic creation and topic deletion for clients.

Each metadata answer is read from ZooKeeper (Kafka Replication Design V3, Overview:
"the published decisions are the source of truth and they are used by clients for request routing").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import (
    BrokerMetadata,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
    PartitionMetadata,
    TopicErrors,
    TopicMetadata,
    TopicPartition,
)
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER,
    ZkChildren,
    ZkCreate,
    ZkDelete,
    ZkDone,
    ZkError,
    ZkGet,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkResult,
    broker_path,
    decode_assignment,
    decode_registration,
    decode_state,
    encode_assignment,
    leader_and_isr_path,
    partition_path,
    topic_path,
)

TOPIC_NAME_CHARACTERS_MAX = 249
LOST = "the connection to ZooKeeper was lost"
_TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMetadataNames:
    """Metadata, first read: names."""

    caller: Caller
    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMetadataNodes:
    """Metadata, second read: registrations and assignments."""

    caller: Caller
    controller_id: int
    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitMetadataStates:
    """Metadata, third read: leaderAndISR."""

    caller: Caller
    controller_id: int
    brokers: tuple[BrokerMetadata, ...]
    topics: tuple[tuple[str, ErrorCode], ...]
    partitions: tuple[tuple[TopicPartition, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitLiveBrokers:
    """Topics are to be created; the list of live brokers is being read."""

    caller: Caller
    request: CreateTopicsRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsWrite:
    """Topics are being created or deleted: the results so far, and the names whose writes are in flight."""

    caller: Caller
    errors: tuple[tuple[str, ErrorCode, str], ...]
    names: tuple[str, ...]
    deleting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToDelete:
    """Topics are to be deleted; their partitions are being read."""

    caller: Caller
    topics: tuple[str, ...]
    unsound: tuple[str, ...]


# --- metadata ----------------------------------------------------------------------------------------
def on_metadata(core: Core, caller: Caller, request: MetadataRequest) -> None:
    """Start to read the answer from ZooKeeper."""
    continuation = AwaitMetadataNames(caller=caller, topics=request.topics)
    core.ask(continuation, ZkChildren(path=BROKER_IDS), ZkChildren(path=BROKER_TOPICS), ZkGet(path=CONTROLLER))


def on_names_read(core: Core, continuation: AwaitMetadataNames, results: tuple[ZkResult, ...]) -> None:
    """Read registrations and assignments next."""
    ids, topics, holder = results
    if not isinstance(ids, ZkNames) or not isinstance(topics, ZkNames):
        _answer_metadata(core, continuation.caller, (), -1, ())
        return
    brokers = tuple(int(name) for name in ids.names)
    asked = topics.names if continuation.topics is None else continuation.topics
    after = AwaitMetadataNodes(
        caller=continuation.caller,
        controller_id=int(holder.data) if isinstance(holder, ZkNode) else -1,
        brokers=brokers,
        topics=asked,
    )
    gets = [ZkGet(path=broker_path(broker)) for broker in brokers]
    gets += [ZkGet(path=topic_path(topic)) if _sound(topic) else ZkGet(path=BROKER_IDS) for topic in asked]
    core.ask(after, *gets)


def on_nodes_read(core: Core, continuation: AwaitMetadataNodes, results: tuple[ZkResult, ...]) -> None:
    """Read the partitions' leaders next."""
    count = len(continuation.brokers)
    brokers: list[BrokerMetadata] = []
    for broker, node in zip(continuation.brokers, results[:count], strict=True):
        if isinstance(node, ZkNode):
            registration = decode_registration(node.data)
            brokers.append(BrokerMetadata(broker_id=broker, host=registration.host, port=registration.port))
    topics: list[tuple[str, ErrorCode]] = []
    partitions: list[tuple[TopicPartition, tuple[int, ...]]] = []
    for topic, node in zip(continuation.topics, results[count:], strict=True):
        if not _sound(topic):
            topics.append((topic, ErrorCode.INVALID_TOPIC))
        elif isinstance(node, ZkNode):
            topics.append((topic, ErrorCode.NONE))
            assignment = decode_assignment(node.data)
            partitions += [(TopicPartition(topic, p), r) for p, r in sorted(assignment.items())]
        else:
            # The connection is lost, the topic may exist: "unknown" would tell the client that it is gone.
            lost = node is ZkError.LOST
            error = ErrorCode.LEADER_NOT_AVAILABLE if lost else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            topics.append((topic, error))
    after = AwaitMetadataStates(
        caller=continuation.caller,
        controller_id=continuation.controller_id,
        brokers=tuple(brokers),
        topics=tuple(topics),
        partitions=tuple(partitions),
    )
    core.ask(after, *(ZkGet(path=leader_and_isr_path(tp)) for tp, _ in partitions))


def on_partitions_read(core: Core, continuation: AwaitMetadataStates, results: tuple[ZkResult, ...]) -> None:
    """Answer; a leader that is not registered counts as no leader."""
    live = {broker.broker_id for broker in continuation.brokers}
    found: dict[str, list[PartitionMetadata]] = {}
    for (tp, replicas), node in zip(continuation.partitions, results, strict=True):
        metadata = PartitionMetadata(
            tp=tp,
            error=ErrorCode.LEADER_NOT_AVAILABLE,
            leader=-1,
            leader_epoch=-1,
            replicas=replicas,
            isr=(),
        )
        if isinstance(node, ZkNode):
            state = decode_state(node)
            alive = state.leader in live
            metadata = PartitionMetadata(
                tp=tp,
                error=ErrorCode.NONE if alive else ErrorCode.LEADER_NOT_AVAILABLE,
                leader=state.leader if alive else -1,
                leader_epoch=state.leader_epoch if core.rules.epochs else -1,
                replicas=replicas,
                isr=state.isr,
            )
        found.setdefault(tp.topic, []).append(metadata)
    topics = tuple(
        TopicMetadata(topic=topic, error=error, partitions=tuple(found.get(topic, ())))
        for topic, error in continuation.topics
    )
    _answer_metadata(core, continuation.caller, continuation.brokers, continuation.controller_id, topics)


def _answer_metadata(
    core: Core,
    caller: Caller,
    brokers: tuple[BrokerMetadata, ...],
    controller_id: int,
    topics: tuple[TopicMetadata, ...],
) -> None:
    response = MetadataResponse(brokers=brokers, controller_id=controller_id, topics=topics)
    core.effects.append(Answer(to=caller, response=response))


# --- topics ------------------------------------------------------------------------------------------
def on_create_topics(core: Core, caller: Caller, request: CreateTopicsRequest) -> None:
    """Read the live brokers, then write the topics' paths; the controller does the rest (V3 B)."""
    core.ask(AwaitLiveBrokers(caller=caller, request=request), ZkChildren(path=BROKER_IDS))


def on_live_read(core: Core, continuation: AwaitLiveBrokers, result: ZkResult) -> None:
    """Check each topic and write the valid ones."""
    if not isinstance(result, ZkNames):
        late = tuple((topic.topic, ErrorCode.REQUEST_TIMED_OUT, LOST) for topic in continuation.request.topics)
        core.effects.append(Answer(to=continuation.caller, response=TopicErrors(errors=late)))
        return
    live = [int(name) for name in result.names]
    errors: list[tuple[str, ErrorCode, str]] = []
    writes: list[ZkMulti] = []
    names: list[str] = []
    for topic in continuation.request.topics:
        placed, error, text = _place(topic, sorted(live))
        if error is not ErrorCode.NONE or continuation.request.validate_only:
            errors.append((topic.topic, error, text))
            continue
        create = ZkCreate(path=topic_path(topic.topic), data=encode_assignment(dict(placed)))
        writes.append(ZkMulti(ops=(create,)))
        names.append(topic.topic)
    after = AwaitTopicsWrite(caller=continuation.caller, errors=tuple(errors), names=tuple(names), deleting=False)
    core.ask(after, *writes)


def _sound(topic: str) -> bool:
    within = 0 < len(topic) <= TOPIC_NAME_CHARACTERS_MAX and topic not in (".", "..")
    return within and set(topic) <= _TOPIC_CHARACTERS


def _place(topic: NewTopic, live: list[int]) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    """Return partition -> replicas, or an error: as the client assigned them, else round robin over the live."""
    if not _sound(topic.topic):
        text = f"topic {topic.topic[:80]!r}: expected 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'"
        return {}, ErrorCode.INVALID_TOPIC, text
    if topic.assignments:
        return _as_assigned(topic, live)
    if topic.partitions < 1:
        return {}, ErrorCode.INVALID_PARTITIONS, f"partitions {topic.partitions}: expected at least 1"
    if not 1 <= topic.replication_factor <= len(live):
        text = f"replication factor {topic.replication_factor}: expected 1 to {len(live)}, the live brokers"
        return {}, ErrorCode.INVALID_REPLICATION_FACTOR, text
    placed = {
        partition: tuple(live[(partition + i) % len(live)] for i in range(topic.replication_factor))
        for partition in range(topic.partitions)
    }
    return placed, ErrorCode.NONE, ""


def _as_assigned(topic: NewTopic, live: list[int]) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    placed = dict(topic.assignments)
    if sorted(placed) != list(range(len(topic.assignments))):
        text = f"partitions {sorted(placed)}: expected 0 to {len(topic.assignments) - 1}"
        return {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    for partition, replicas in placed.items():
        if not replicas or len(set(replicas)) != len(replicas) or not set(replicas) <= set(live):
            text = f"partition {partition} on {list(replicas)}: expected distinct live brokers of {live}"
            return {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    return placed, ErrorCode.NONE, ""


def on_delete_topics(core: Core, caller: Caller, request: DeleteTopicsRequest) -> None:
    """Read the topics' partitions, then delete their paths; the controller stops the replicas (V3 B)."""
    topics = tuple(dict.fromkeys(request.topics))
    sound = tuple(topic for topic in topics if _sound(topic))
    continuation = AwaitTopicsToDelete(
        caller=caller, topics=sound, unsound=tuple(t for t in topics if t not in sound)
    )
    core.ask(continuation, *(ZkGet(path=topic_path(topic)) for topic in sound))


def on_to_delete(core: Core, continuation: AwaitTopicsToDelete, results: tuple[ZkResult, ...]) -> None:
    """Delete each topic's path and everything below it, in one multi for each topic."""
    errors = [(topic, ErrorCode.INVALID_TOPIC, "") for topic in continuation.unsound]
    writes: list[ZkMulti] = []
    names: list[str] = []
    for topic, node in zip(continuation.topics, results, strict=True):
        if not isinstance(node, ZkNode):
            lost = node is ZkError.LOST
            error = ErrorCode.REQUEST_TIMED_OUT if lost else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            errors.append((topic, error, LOST if lost else ""))
            continue
        paths: list[str] = []
        for partition in decode_assignment(node.data):
            tp = TopicPartition(topic, partition)
            paths += [leader_and_isr_path(tp), partition_path(tp)]
        paths.append(topic_path(topic))
        writes.append(ZkMulti(ops=tuple(ZkDelete(path=path) for path in paths)))
        names.append(topic)
    after = AwaitTopicsWrite(caller=continuation.caller, errors=tuple(errors), names=tuple(names), deleting=True)
    core.ask(after, *writes)


def on_topics_written(core: Core, continuation: AwaitTopicsWrite, results: tuple[ZkResult, ...]) -> None:
    """Answer with a result for every topic."""
    errors = list(continuation.errors)
    for name, result in zip(continuation.names, results, strict=True):
        if isinstance(result, ZkDone):
            errors.append((name, ErrorCode.NONE, ""))
        elif result is ZkError.NODE_EXISTS:
            errors.append((name, ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} is there already"))
        elif result is ZkError.LOST:
            errors.append((name, ErrorCode.REQUEST_TIMED_OUT, LOST))
        else:
            errors.append((name, ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper: {result}"))
    response = TopicErrors(errors=tuple(errors), deleting=continuation.deleting)
    core.effects.append(Answer(to=continuation.caller, response=response))
