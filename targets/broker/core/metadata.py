"""
Metadata for clients, read from ZooKeeper for each answer.

Source:  Kafka Replication Design V3, Overview: "the published decisions are the source of truth and they are used
         by clients for request routing".
"""

from __future__ import annotations

from dataclasses import dataclass

from targets.broker.core import readable
from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import (
    BrokerMetadata,
    ErrorCode,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from targets.broker.core.names import is_topic_name
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER,
    ZkChildren,
    ZkError,
    ZkGet,
    ZkNames,
    ZkNode,
    ZkResult,
    broker_path,
    leader_and_isr_path,
    topic_path,
)


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
    brokers = readable.broker_ids(core, ids.names)
    asked = readable.topic_names(core, topics.names) if continuation.topics is None else continuation.topics
    number = readable.read_number(core, CONTROLLER, holder) if isinstance(holder, ZkNode) else None
    after = AwaitMetadataNodes(
        caller=continuation.caller,
        controller_id=-1 if number is None else number,
        brokers=brokers,
        topics=asked,
    )
    gets = [ZkGet(path=broker_path(broker)) for broker in brokers]
    gets += [ZkGet(path=topic_path(topic)) for topic in asked if is_topic_name(topic)]
    core.ask(after, *gets)


def on_nodes_read(core: Core, continuation: AwaitMetadataNodes, results: tuple[ZkResult, ...]) -> None:
    """Read the partitions' leaders next."""
    count = len(continuation.brokers)
    brokers: list[BrokerMetadata] = []
    for broker, node in zip(continuation.brokers, results[:count], strict=True):
        registration = readable.read_registration(core, broker, node) if isinstance(node, ZkNode) else None
        if registration is not None:
            brokers.append(BrokerMetadata(broker_id=broker, host=registration.host, port=registration.port))
    topics: list[tuple[str, ErrorCode]] = []
    partitions: list[tuple[TopicPartition, tuple[int, ...]]] = []
    nodes = iter(results[count:])
    for topic in continuation.topics:
        if not is_topic_name(topic):
            topics.append((topic, ErrorCode.INVALID_TOPIC))
            continue
        node = next(nodes)
        assignment = readable.read_assignment(core, topic, node) if isinstance(node, ZkNode) else None
        if assignment is not None:
            topics.append((topic, ErrorCode.NONE))
            partitions += [(TopicPartition(topic, p), r) for p, r in sorted(assignment.replicas.items())]
        else:
            # The connection is lost or the node cannot be read: "unknown" would tell the client that it is gone.
            there = node is ZkError.LOST or isinstance(node, ZkNode)
            error = ErrorCode.LEADER_NOT_AVAILABLE if there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
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
        state = readable.read_state(core, tp, node) if isinstance(node, ZkNode) else None
        if state is not None:
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
