"""Where replicas and leaders are: ElectLeaders (api 43), Alter- and ListPartitionReassignments (45 and 46)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    PartitionError,
    PartitionErrors,
    ReassignmentsResponse,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.wire.entities import NO_TIME, Schema, fill, kio_error, listed, ms_of, topics_of
from targets.broker.wire.offsets import once
from targets.broker.wire.produce import SplitBatches
from targets.broker.wire.scalars import WireError

# KIP-460: the election types of ElectLeaders.
_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_ERROR_TEXT_MAX: Final = 1000


def _row(index: str) -> Callable[[PartitionError], dict[str, Any]]:
    return lambda found: {
        index: found.tp.partition,
        "error_code": kio_error(found.error),
        "error_message": found.text[:_ERROR_TEXT_MAX] or None,
    }


def _named(topics: Sequence[Any] | None, name: str, numbers: str) -> tuple[TopicPartition, ...] | None:
    """Return the partitions that an array of topics names, each once; null names all."""
    if topics is None:
        return None
    named = ((topic, number) for topic in topics for number in listed(getattr(topic, numbers), numbers))
    return tuple(dict.fromkeys(TopicPartition(getattr(topic, name), number) for topic, number in named))


def read_alter_request(entity: Any, _split: SplitBatches) -> AlterReassignmentsRequest:
    """Convert kio's entity to the core's request; of a partition that is named twice the last one counts."""
    return AlterReassignmentsRequest(
        partitions=once(
            WantedReplicas(
                tp=TopicPartition(topic.name, partition.partition_index),
                replicas=None if partition.replicas is None else tuple(partition.replicas),
            )
            for topic in listed(entity.topics, "topics")
            for partition in listed(topic.partitions, "partitions")
        ),
        timeout_ms=ms_of(entity.timeout),
    )


def write_alter_response(entity: Schema, response: PartitionErrors) -> Any:
    """Convert the core's response to kio's entity of that version."""
    return fill(
        entity,
        throttle_time=NO_TIME,
        error_code=kio_error(response.error),
        error_message=None,
        responses=topics_of(entity, "responses", response.errors, _row("partition_index"), name="name"),
    )


def read_list_request(entity: Any, _split: SplitBatches) -> ListReassignmentsRequest:
    """Convert kio's entity to the core's request."""
    partitions = _named(entity.topics, "name", "partition_indexes")
    return ListReassignmentsRequest(partitions=partitions, timeout_ms=ms_of(entity.timeout))


def write_list_response(entity: Schema, response: ReassignmentsResponse) -> Any:
    """Convert the core's response to kio's entity of that version."""
    return fill(
        entity,
        throttle_time=NO_TIME,
        error_code=kio_error(response.error),
        error_message=None,
        topics=topics_of(
            entity,
            "topics",
            response.reassignments,
            lambda found: {
                "partition_index": found.tp.partition,
                "replicas": found.replicas,
                "adding_replicas": found.adding,
                "removing_replicas": found.removing,
            },
            name="name",
        ),
    )


def read_elect_request(entity: Any, _split: SplitBatches) -> ElectLeadersRequest:
    """Convert kio's entity to the core's request; v0 knows the preferred replica alone."""
    kind = int(getattr(entity, "election_type", _PREFERRED))
    if kind not in (_PREFERRED, _UNCLEAN):
        raise WireError(f"election type {kind}; expected {_PREFERRED} (preferred) or {_UNCLEAN} (unclean)")
    partitions = _named(entity.topic_partitions, "topic", "partitions")
    return ElectLeadersRequest(
        partitions=partitions, timeout_ms=max(0, ms_of(entity.timeout)), unclean=kind == _UNCLEAN
    )


def write_elect_response(entity: Schema, response: PartitionErrors) -> Any:
    """Convert the core's response to kio's entity of that version; v0 has no error of the whole request."""
    return fill(
        entity,
        throttle_time=NO_TIME,
        error_code=kio_error(response.error),
        replica_election_results=topics_of(
            entity,
            "replica_election_results",
            response.errors,
            _row("partition_id"),
            name="topic",
            inner="partition_result",
        ),
    )
