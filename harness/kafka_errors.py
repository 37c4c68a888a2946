"""
What an error proves about the records of a produce request: one table for all clients and for docs/errors.md.

An error is definite if the broker certainly did not append the records; a code that is not in the table is not
definite. With acks=all a broker waits after its append, and a waiting request fails with NOT_LEADER_OR_FOLLOWER or
UNKNOWN_TOPIC_OR_PARTITION if leadership moves meanwhile: these are UNLESS_ACKS_ALL.

Codes below -1 are librdkafka's own. Its delivery reports have a persistence status, which its Python binding does
not return, so a timeout counts as "may have been sent".

Source:  Apache Kafka, Errors.java, ReplicaManager.appendRecords and DelayedProduce.tryComplete; librdkafka,
         rd_kafka_handle_Produce_error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ACKS_ALL: Final = -1


class Definite(StrEnum):
    """Whether an error proves that nothing was appended."""

    YES = "yes"
    UNLESS_ACKS_ALL = "unless acks=all"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaError:
    """
    One error code in the answer to a produce request.

    Attributes:
        definite: whether it proves that nothing was appended.
        moved: another broker leads, or no leader is known yet, so the client must look up the leader again.
    """

    code: int
    name: str
    definite: Definite
    meaning: str
    moved: bool = False


def _row(code: int, name: str, definite: Definite, meaning: str, *, moved: bool = False) -> tuple[int, KafkaError]:
    return code, KafkaError(code=code, name=name, definite=definite, meaning=meaning, moved=moved)


_YES, _UNLESS, _NO = Definite.YES, Definite.UNLESS_ACKS_ALL, Definite.NO

KAFKA_ERRORS: Final[Mapping[int, KafkaError]] = dict(
    [
        _row(-1, "UNKNOWN_SERVER_ERROR", _NO, "The broker failed, before its append or after it."),
        _row(2, "CORRUPT_MESSAGE", _YES, "A checksum or a size is wrong; the whole request is checked first."),
        _row(3, "UNKNOWN_TOPIC_OR_PARTITION", _UNLESS, "The broker has no such partition.", moved=True),
        _row(5, "LEADER_NOT_AVAILABLE", _UNLESS, "The partition has no leader at present.", moved=True),
        _row(6, "NOT_LEADER_OR_FOLLOWER", _UNLESS, "The broker does not lead the partition.", moved=True),
        _row(7, "REQUEST_TIMED_OUT", _NO, "Appended; the ISR did not have it in time."),
        _row(10, "MESSAGE_TOO_LARGE", _YES, "A record is larger than the broker accepts."),
        _row(13, "NETWORK_EXCEPTION", _NO, "The connection was lost before the answer."),
        _row(17, "INVALID_TOPIC_EXCEPTION", _YES, "The topic's name is invalid, or clients may not write to it."),
        _row(18, "RECORD_LIST_TOO_LARGE", _YES, "The batch is larger than a segment."),
        _row(19, "NOT_ENOUGH_REPLICAS", _YES, "The ISR is smaller than min.insync.replicas; checked first."),
        _row(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", _NO, "Appended; the ISR shrank before it had the records."),
        _row(21, "INVALID_REQUIRED_ACKS", _YES, "Acks is not 0, 1 or -1."),
        _row(29, "TOPIC_AUTHORIZATION_FAILED", _YES, "The client may not write to the topic."),
        _row(31, "CLUSTER_AUTHORIZATION_FAILED", _YES, "The client may not produce in this way."),
        _row(32, "INVALID_TIMESTAMP", _YES, "A record's time is out of range; checked first."),
        _row(35, "UNSUPPORTED_VERSION", _YES, "The broker does not know this version of the request."),
        _row(42, "INVALID_REQUEST", _YES, "The request contradicts itself; it is checked first."),
        _row(43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", _YES, "The log's message format does not support the request."),
        _row(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", _YES, "It does not follow its producer's last batch in the log."),
        _row(46, "DUPLICATE_SEQUENCE_NUMBER", _NO, "An older batch of the producer has this sequence."),
        _row(47, "INVALID_PRODUCER_EPOCH", _YES, "The producer has a newer epoch by now."),
        _row(56, "KAFKA_STORAGE_ERROR", _NO, "The disk failed, perhaps in the middle of the append."),
        _row(59, "UNKNOWN_PRODUCER_ID", _YES, "The log has no batch of the producer any more; before 2.5."),
        _row(74, "FENCED_LEADER_EPOCH", _NO, "The client named an older epoch, in a fetch.", moved=True),
        _row(75, "UNKNOWN_LEADER_EPOCH", _NO, "The client named a newer epoch, in a fetch.", moved=True),
        _row(76, "UNSUPPORTED_COMPRESSION_TYPE", _YES, "This version of the request has no such codec."),
        _row(87, "INVALID_RECORD", _YES, "A record violates a rule of its topic; the whole batch is refused."),
        _row(-151, "_PURGE_INFLIGHT", _NO, "librdkafka dropped the record while its request was in flight."),
        _row(-152, "_PURGE_QUEUE", _YES, "librdkafka dropped the record from its queue, before it was sent."),
        _row(-166, "_TIMED_OUT_QUEUE", _YES, "The request did not leave librdkafka's queue in time."),
        _row(-185, "_TIMED_OUT", _NO, "The request was sent, and not answered in time."),
        _row(-188, "_UNKNOWN_TOPIC", _YES, "librdkafka does not know the topic, and sent nothing."),
        _row(-190, "_UNKNOWN_PARTITION", _YES, "librdkafka does not know the partition, and sent nothing."),
        _row(-192, "_MSG_TIMED_OUT", _NO, "The record timed out, in the queue or in flight."),
        _row(-195, "_TRANSPORT", _NO, "The connection was lost before the answer."),
    ]
)

MOVED: Final = frozenset(code for code, error in KAFKA_ERRORS.items() if error.moved)


# OFFSET_OUT_OF_RANGE, UNSUPPORTED_VERSION, INVALID_REQUEST and POLICY_VIOLATION, which a broker finds before it
# deletes anything; any other error may also come to a deletion that waits for followers.
_NOT_DELETED: Final = frozenset({1, 35, 42, 44})


def surely_not_deleted(code: int) -> bool:
    """Return True if a deletion of records that failed with this code certainly deleted none."""
    return code in _NOT_DELETED


def surely_not_appended(code: int, acks: int, *, resends: bool = False) -> bool:
    """
    Return True if a produce that failed with this code certainly appended nothing.

    Args:
        resends: the client itself sends a record again after a code that is `moved`. With acks=all an earlier
            attempt may have been appended, so the last error proves nothing.
    """
    if acks == ACKS_ALL and resends:
        return False
    error = KAFKA_ERRORS.get(code)
    definite = Definite.NO if error is None else error.definite
    return definite is Definite.YES or (definite is Definite.UNLESS_ACKS_ALL and acks != ACKS_ALL)
