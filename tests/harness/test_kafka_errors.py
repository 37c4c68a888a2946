"""The table of error codes: Kafka's and librdkafka's names, and which codes prove that nothing was appended."""

from __future__ import annotations

import confluent_kafka
import pytest
from kio.schema.errors import ErrorCode

from harness.kafka_errors import KAFKA_ERRORS, MOVED, surely_not_appended


@pytest.mark.parametrize("code", KAFKA_ERRORS)
def test_code_has_the_name_that_kafka_or_librdkafka_calls_it(code: int) -> None:
    row = KAFKA_ERRORS[code]
    assert code == row.code
    theirs = confluent_kafka.KafkaError(code).name() if code < -1 else ErrorCode(code).name.upper()
    assert theirs == row.name


@pytest.mark.parametrize(
    ("code", "acks", "sure"),
    [
        (ErrorCode.not_enough_replicas, -1, True),
        (ErrorCode.invalid_timestamp, -1, True),
        (ErrorCode.not_enough_replicas_after_append, -1, False),
        (ErrorCode.request_timed_out, -1, False),
        (ErrorCode.kafka_storage_error, 1, False),
        (ErrorCode.unknown_server_error, 1, False),
        (ErrorCode.not_leader_or_follower, 1, True),
        (ErrorCode.not_leader_or_follower, -1, False),
        (ErrorCode.unknown_topic_or_partition, 0, True),
        (ErrorCode.unknown_topic_or_partition, -1, False),
    ],
)
def test_error_is_definite_only_where_kafka_answers_with_it_before_its_append(
    code: ErrorCode, acks: int, sure: bool
) -> None:
    """Source: Apache Kafka, ReplicaManager.appendRecords; DelayedProduce.tryComplete, cases A and B."""
    assert sure == surely_not_appended(code.value, acks)


def test_code_that_is_not_in_the_table_proves_nothing() -> None:
    code = ErrorCode.illegal_generation.value
    assert code not in KAFKA_ERRORS
    assert not surely_not_appended(code, 1)


def test_client_that_sends_again_by_itself_is_never_sure_with_acks_all() -> None:
    code = ErrorCode.not_enough_replicas.value
    assert not surely_not_appended(code, -1, resends=True)
    assert surely_not_appended(code, 1, resends=True)


def test_leader_is_looked_for_again_where_another_may_lead() -> None:
    names = {KAFKA_ERRORS[code].name for code in MOVED}
    assert {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    } == names
