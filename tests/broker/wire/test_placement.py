"""Kafka's bytes of elections and reassignments, held against kio's own."""

from __future__ import annotations

from datetime import timedelta

import pytest

from targets.broker.core import messages as m
from targets.broker.log import split_produced
from targets.broker.wire import versions
from targets.broker.wire.codec import decode_request, encode_response
from targets.broker.wire.entities import fill, request_type
from targets.broker.wire.scalars import WireError
from tests.broker.wire.kio_side import a_frame, incoming, kio_response, request_frame
from tests.broker.wire.samples import A0, B7, CLIENT_RESPONSES

T0, T1 = m.TopicPartition("t", 0), m.TopicPartition("t", 1)


def read(key: int, version: int) -> m.Request | None:
    return decode_request(a_frame(key, version), split_batches=split_produced).request


def test_reassignments_are_read_with_null_for_one_that_is_cancelled() -> None:
    """KIP-455: "The replicas to place the partitions on, or null to cancel a pending reassignment"."""
    asked = read(versions.ALTER_PARTITION_REASSIGNMENTS, 0)
    assert isinstance(asked, m.AlterReassignmentsRequest)
    wanted = (m.WantedReplicas(tp=T0, replicas=(2, 3)), m.WantedReplicas(tp=T1, replicas=None))
    assert wanted == asked.partitions
    listed = read(versions.LIST_PARTITION_REASSIGNMENTS, 0)
    assert isinstance(listed, m.ListReassignmentsRequest) and (T0, T1) == listed.partitions


@pytest.mark.parametrize("version", range(3))
def test_elections_are_read_and_v0_knows_the_preferred_replica_alone(version: int) -> None:
    asked = read(versions.ELECT_LEADERS, version)
    assert isinstance(asked, m.ElectLeadersRequest)
    assert ((T1, T0), version > 0) == (asked.partitions, asked.unclean)


def test_unknown_kind_of_election_is_refused() -> None:
    entity = fill(
        request_type(versions.ELECT_LEADERS, 1), election_type=7, topic_partitions=None, timeout=timedelta(0)
    )
    with pytest.raises(WireError, match="election type 7; expected 0"):
        decode_request(request_frame(versions.ELECT_LEADERS, 1, entity), split_batches=split_produced)


@pytest.mark.parametrize("version", range(3))
def test_answer_to_elections(version: int) -> None:
    response = CLIENT_RESPONSES[versions.ELECT_LEADERS]
    frame = encode_response(incoming(versions.ELECT_LEADERS, version), response)
    (topic,) = kio_response(frame, versions.ELECT_LEADERS, version).replica_election_results
    assert "a" == topic.topic
    found = [(each.partition_id, each.error_code, each.error_message) for each in topic.partition_result]
    assert [(0, 0, None), (1, 80, "away")] == found


def test_answers_about_reassignments() -> None:
    altered, listed = versions.ALTER_PARTITION_REASSIGNMENTS, versions.LIST_PARTITION_REASSIGNMENTS
    frame = encode_response(incoming(altered, 0), CLIENT_RESPONSES[altered])
    topics = kio_response(frame, altered, 0).responses
    rows = [(topic.name, *topic.partitions) for topic in topics]
    assert [(A0.topic, 0, None), (B7.topic, 85, "not moved")] == [
        (name, row.error_code, row.error_message) for name, row in rows
    ]
    frame = encode_response(incoming(listed, 0), CLIENT_RESPONSES[listed])
    (topic,) = kio_response(frame, listed, 0).topics
    (row,) = topic.partitions
    assert (1, (1, 2, 3), (3,), (1,)) == (
        row.partition_index,
        row.replicas,
        row.adding_replicas,
        row.removing_replicas,
    )
