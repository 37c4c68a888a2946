"""What a client knows about a batch after its request: acknowledged, certainly not appended, or unknown."""

from __future__ import annotations

from dataclasses import dataclass

from harness.kafka_errors import surely_not_appended, surely_not_deleted
from harness.model import OpType
from targets.kafka_family.clients.connection import NoAnswer, NotSent
from targets.kafka_family.wire.answers import Produced
from targets.kafka_family.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a batch; base is None without an offset."""

    type: OpType
    base: int | None = None
    error: str = ""

    def offset(self, at: int) -> int | None:
        """Return the offset of the batch's record at this place, counted from 0; None if it is not known."""
        return None if self.base is None else self.base + at


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
