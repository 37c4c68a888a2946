"""What an answer of Kafka's wire, or an error of a library that speaks it, proves of a request."""

from __future__ import annotations

from typing import Any

from harness.clients.outcome import Outcome
from harness.kafka_errors import KAFKA_ERRORS, surely_not_appended, surely_not_deleted
from harness.model import OpType
from targets.kafka_family.clients.connection import NoAnswer, NotSent
from targets.kafka_family.wire.answers import Produced
from targets.kafka_family.wire.errors import ErrorCode


def outcome_of(produced: Produced | None, acks: int) -> Outcome:
    """Return the outcome of a request that was sent; None for the answer of acks=0, which does not come."""
    if produced is None:
        return Outcome(type=OpType.OK)
    if produced.error is ErrorCode.NONE:
        return Outcome(type=OpType.OK, base=produced.base_offset)
    surely_not = surely_not_appended(produced.error.value, acks)
    return Outcome(type=OpType.FAIL if surely_not else OpType.INFO, error=produced.error.name)


def outcome_without(error: NotSent | NoAnswer) -> Outcome:
    """Return the outcome of a request without an answer: it failed only if it was never sent."""
    return Outcome(type=OpType.FAIL if isinstance(error, NotSent) else OpType.INFO, error=str(error))


def deleted_outcome(error: ErrorCode) -> OpType:
    """Return the outcome of a deletion of records that was answered with this code."""
    if error is ErrorCode.NONE:
        return OpType.OK
    return OpType.FAIL if surely_not_deleted(error.value) else OpType.INFO


def refused(code: int | None, name: str, acks: int, *, unsent: bool = False, resends: bool = False) -> Outcome:
    """
    Return the outcome of a record that a library reports as failed.

    Args:
        code: Kafka's number of the error, None if it is one of the library's own.
        name: of the error, if Kafka's table has none for its code.
        unsent: the error proves that the request was not written to a connection.
        resends: the record may have been sent before, which the last error says nothing about.
    """
    known = KAFKA_ERRORS.get(code) if code is not None else None
    surely_not = not resends and (unsent or (known is not None and surely_not_appended(known.code, acks)))
    return Outcome(type=OpType.FAIL if surely_not else OpType.INFO, error=name if known is None else known.name)


def refused_by(theirs: Any, error: BaseException, acks: int, *, unsent: bool, resends: bool) -> Outcome:
    """
    Return the outcome of a record that kafka-python, or aiokafka, which began as a copy of it, reports as failed.

    Args:
        theirs: the library's module of errors.
        unsent: as in `refused`, where the error alone does not prove it.
        resends: the library may have sent the record before.
    """
    code = error.errno if isinstance(error, theirs.BrokerResponseError) else None
    return refused(
        code,
        type(error).__name__,
        acks,
        unsent=unsent or isinstance(error, theirs.NodeNotReadyError),
        resends=resends and not unsent,
    )
