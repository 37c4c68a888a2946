"""LeaderAndISR (api 4) and StopReplica (api 5), both sides: a controller's commands and a broker's answers."""

from __future__ import annotations

from typing import Any, Final

from targets.broker.core.messages import (
    LeaderAndIsr,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplica,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from targets.broker.core.names import is_topic_name
from targets.broker.wire.entities import Schema, error_of, fill, item_type, kio_error, listed, topic_id_of
from targets.broker.wire.produce import SplitBatches
from targets.broker.wire.scalars import WireError

# The broker epoch of v0, which has no such field.
_ANY_REGISTRATION: Final = -1
# The leader epoch of v0 and v1, which stop a replica whatever its own (KIP-570).
_ANY_EPOCH: Final = -1
# In place of a broker's id: the partition has no leader.
_NOBODY: Final = -1


def read_leader_request(entity: Any, _split: SplitBatches) -> LeaderAndIsrRequest:
    """Convert the entity to the core's request."""
    return LeaderAndIsrRequest(
        controller_id=entity.controller_id,
        controller_epoch=entity.controller_epoch,
        broker_epoch=getattr(entity, "broker_epoch", _ANY_REGISTRATION),
        ack_timeout_ms=entity.ack_timeout,
        is_init=bool(entity.is_init),
        partitions=tuple(_read_state(partition) for partition in listed(entity.partitions, "partitions")),
    )


def _read_state(state: Any) -> LeaderAndIsr:
    tp = _sound(state)
    isr, replicas = tuple(listed(state.isr, "isr")), tuple(listed(state.replicas, "replicas"))
    least = min(state.leader, *isr, *replicas, _NOBODY)
    if least < _NOBODY:
        raise WireError(f"partition {tp}: broker id {least}; expected {_NOBODY} or more")
    return LeaderAndIsr(
        tp=tp,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=isr,
        zk_version=state.zk_version,
        replicas=replicas,
        topic_id=topic_id_of(state),
    )


def _sound(named: Any) -> TopicPartition:
    """Return the partition that a command names; its name becomes a folder's."""
    if not is_topic_name(named.topic) or named.partition < 0:
        raise WireError(
            f"partition {named.topic[:80]!r} {named.partition}: expected a topic of 1 to 249 of a-z, A-Z, 0-9, "
            "'.', '_', '-', not '.' or '..', and a number from 0 on"
        )
    return TopicPartition(named.topic, named.partition)


def write_leader_request(entity: Schema, request: LeaderAndIsrRequest) -> Any:
    """Convert the core's request to the entity."""
    partition_type = item_type(entity, "partitions")
    return fill(
        entity,
        ack_timeout=request.ack_timeout_ms,
        is_init=int(request.is_init),
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        partitions=tuple(
            fill(
                partition_type,
                topic=partition.tp.topic,
                partition=partition.tp.partition,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=partition.isr,
                zk_version=partition.zk_version,
                replicas=partition.replicas,
                topic_id=partition.topic_id,
            )
            for partition in request.partitions
        ),
    )


def read_stop_request(entity: Any, _split: SplitBatches) -> StopReplicaRequest:
    """Convert the entity to the core's request."""
    return StopReplicaRequest(
        controller_id=entity.controller_id,
        controller_epoch=entity.controller_epoch,
        broker_epoch=getattr(entity, "broker_epoch", _ANY_REGISTRATION),
        ack_timeout_ms=entity.ack_timeout,
        partitions=tuple(
            StopReplica(
                tp=_sound(partition),
                leader_epoch=getattr(partition, "leader_epoch", _ANY_EPOCH),
                topic_id=topic_id_of(partition),
            )
            for partition in listed(entity.partitions, "partitions")
        ),
    )


def write_stop_request(entity: Schema, request: StopReplicaRequest) -> Any:
    """Convert the core's request to the entity."""
    partition_type = item_type(entity, "partitions")
    return fill(
        entity,
        ack_timeout=request.ack_timeout_ms,
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        partitions=tuple(
            fill(
                partition_type,
                topic=asked.tp.topic,
                partition=asked.tp.partition,
                leader_epoch=asked.leader_epoch,
                topic_id=asked.topic_id,
            )
            for asked in request.partitions
        ),
    )


def write_response(entity: Schema, response: LeaderAndIsrResponse | StopReplicaResponse) -> Any:
    """Convert the core's response to either entity."""
    partition_type = item_type(entity, "partitions")
    return fill(
        entity,
        error_code=kio_error(response.error),
        partitions=tuple(
            fill(partition_type, topic=tp.topic, partition=tp.partition, error_code=kio_error(error))
            for tp, error in response.errors
        ),
    )


def read_leader_response(entity: Any, _split: SplitBatches) -> LeaderAndIsrResponse:
    """Convert the entity to the core's response."""
    return LeaderAndIsrResponse(error=error_of(entity.error_code), errors=_errors(entity))


def read_stop_response(entity: Any, _split: SplitBatches) -> StopReplicaResponse:
    """Convert the entity to the core's response."""
    return StopReplicaResponse(error=error_of(entity.error_code), errors=_errors(entity))


def _errors(entity: Any) -> tuple[Any, ...]:
    return tuple(
        (TopicPartition(partition.topic, partition.partition), error_of(partition.error_code))
        for partition in listed(entity.partitions, "partitions")
    )
