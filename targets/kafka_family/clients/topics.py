"""
A client's requests about topics: the controller, CreateTopics, CreatePartitions and DeleteTopics.

Each is asked of the controller, once; any other broker answers NOT_CONTROLLER and does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import kio.schema.create_partitions.v0.request as create_partitions_v0_request
import kio.schema.create_partitions.v0.response as create_partitions_v0_response
import kio.schema.create_topics.v2.request as create_v2_request
import kio.schema.create_topics.v2.response as create_v2_response
import kio.schema.delete_topics.v1.request as delete_v1_request
import kio.schema.delete_topics.v1.response as delete_v1_response
from kio.schema.errors import ErrorCode

from targets.kafka_family.clients.connection import Connection
from targets.kafka_family.clients.questions import addresses_of, metadata_of, the_one

_CREATE: Final[tuple[Any, Any]] = (create_v2_request, create_v2_response)
_ADD: Final[tuple[Any, Any]] = (create_partitions_v0_request, create_partitions_v0_response)
_DELETE: Final[tuple[Any, Any]] = (delete_v1_request, delete_v1_response)


# The answers after which what was asked of a topic may have happened all the same.
DOUBTFUL: Final = frozenset({ErrorCode.request_timed_out, ErrorCode.unknown_server_error})


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """
    What one node believes of the others.

    Attributes:
        controller: "host:port" of the controller, "" for none.
        ids: "host:port" of each live broker -> its id.
    """

    controller: str
    ids: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer about one topic; the text is the broker's, and may be empty."""

    error: ErrorCode
    text: str = ""

    @property
    def refusal(self) -> str:
        """The error in words, "" for none."""
        return "" if self.error is ErrorCode.none else f"{self.error.name.upper()}, {self.text}"


def brokers(connection: Connection, topic: str) -> Brokers:
    """Ask a node which brokers live and which is the controller; the topic need not be there, and is not made."""
    found = metadata_of(connection, [topic])
    addresses = addresses_of(found)
    return Brokers(
        controller=addresses.get(found.controller_id, ""),
        ids={address: broker for broker, address in addresses.items()},
    )


def create(connection: Connection, topic: str, assignments: Sequence[Sequence[int]], timeout_s: float) -> Answer:
    """Create a topic with a partition on each of these groups of brokers."""
    request, response = _CREATE
    asked = request.CreateTopicsRequest(
        topics=(
            request.CreatableTopic(
                name=topic,
                num_partitions=-1,
                replication_factor=-1,
                assignments=tuple(
                    request.CreatableReplicaAssignment(partition_index=at, broker_ids=tuple(ids))
                    for at, ids in enumerate(assignments)
                ),
                configs=(),
            ),
        ),
        timeout=timedelta(seconds=timeout_s),
        validate_only=False,
    )
    (made,) = the_one(connection.ask(asked, response.CreateTopicsResponse).topics)
    return Answer(error=made.error_code, text=made.error_message or "")


def add(
    connection: Connection, topic: str, count: int, assignments: Sequence[Sequence[int]], timeout_s: float
) -> Answer:
    """Have a topic have so many partitions, the new ones on each of these groups of brokers."""
    request, response = _ADD
    asked = request.CreatePartitionsRequest(
        topics=(
            request.CreatePartitionsTopic(
                name=topic,
                count=count,
                assignments=tuple(
                    request.CreatePartitionsAssignment(broker_ids=tuple(ids)) for ids in assignments
                ),
            ),
        ),
        timeout=timedelta(seconds=timeout_s),
        validate_only=False,
    )
    (made,) = the_one(connection.ask(asked, response.CreatePartitionsResponse).results)
    return Answer(error=made.error_code, text=made.error_message or "")


def delete(connection: Connection, topic: str, timeout_s: float) -> Answer:
    """Delete a topic."""
    request, response = _DELETE
    asked = request.DeleteTopicsRequest(topic_names=(topic,), timeout=timedelta(seconds=timeout_s))
    (gone,) = the_one(connection.ask(asked, response.DeleteTopicsResponse).responses)
    return Answer(error=gone.error_code)
