"""
Batches of idempotent producers: one that the log has is not appended again, one out of sequence is refused.

Appends of leader and follower alike are noted, so that whoever becomes leader knows what it has. A recovered log
comes with what it says, and after a truncation what is left is read again, as far as needed.
Source:  KIP-98, Idempotent Producer Guarantees; KIP-360; Kafka, ProducerStateManager and ProducerAppendInfo.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from targets.broker.core import damage
from targets.broker.core.log_port import DamagedError
from targets.broker.core.messages import NO_PRODUCER_ID, Batch, ErrorCode
from targets.broker.core.sequences import ProducerState, Sequenced, Sequences, sequence_after
from targets.broker.core.state import Core, Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The error for a producer's batches, or the batch in the log that they repeat; neither: append them."""

    error: ErrorCode = ErrorCode.NONE
    text: str = ""
    repeated: Sequenced | None = None


_APPEND: Final = Checked()


def check(core: Core, replica: Replica, batches: tuple[Batch, ...]) -> Checked:
    """
    Decide whether batches may be appended, are in the log already, or must be refused.

    A producer that is not known may begin with any sequence: its records may have been removed (KIP-360).
    """
    batch = next((batch for batch in batches if batch.producer_id != NO_PRODUCER_ID), None)
    if batch is None or not core.rules.idempotence:
        return _APPEND
    if len(batches) > 1:
        text = f"{len(batches)} batches, one of producer {batch.producer_id}; expected one alone"
        return Checked(error=ErrorCode.INVALID_RECORD, text=text)
    if batch.base_sequence < 0:
        text = f"base sequence {batch.base_sequence} of producer {batch.producer_id}; expected 0 or more"
        return Checked(error=ErrorCode.INVALID_RECORD, text=text)
    known = replica.sequences.known.get(batch.producer_id)
    return _APPEND if known is None else _compare(batch, known)


def _compare(batch: Batch, known: ProducerState) -> Checked:
    """Compare a batch with what is known of its producer."""
    who = f"producer {batch.producer_id}"
    if batch.producer_epoch < known.epoch:
        text = f"epoch {batch.producer_epoch} of {who}; expected at least {known.epoch}"
        return Checked(error=ErrorCode.INVALID_PRODUCER_EPOCH, text=text)
    due = 0
    if batch.producer_epoch == known.epoch:
        first = batch.base_sequence
        sent = (first, sequence_after(first, batch.last_offset - batch.base_offset))
        repeated = next((old for old in known.batches if (old.first, old.last) == sent), None)
        if repeated is not None:
            return Checked(repeated=repeated)
        due = known.next_sequence
    if batch.base_sequence != due:
        text = f"base sequence {batch.base_sequence} of {who}; expected {due}"
        return Checked(error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text=text)
    return _APPEND


def appended(core: Core, replica: Replica, batches: Iterable[Batch], base: int | None = None) -> None:
    """
    Note batches that were appended.

    Args:
        base: the offset that the first one got; None where the batches have their own.
    """
    if not core.rules.idempotence:
        return
    for batch in batches:
        first = batch.base_offset if base is None else base
        end = first + batch.next_offset - batch.base_offset
        replica.sequences.note(batch.producer_id, batch.producer_epoch, batch.base_sequence, first, end)
        base = None if base is None else end


def begin_anew(replica: Replica) -> None:
    """Forget all producers with the records of a log that begins anew (Kafka, truncateFullyAndStartAt)."""
    replica.sequences = Sequences(producers_max=replica.sequences.producers_max)


def was_cut(core: Core, replica: Replica) -> None:
    """Go back to what a truncation has left of the log; what is damaged there tells nothing."""
    if not core.rules.idempotence:
        return
    end = replica.log.end_offset
    at = replica.sequences.cut(end)
    at = replica.log.start_offset if at is None else at
    while at < end:
        try:
            for batch in replica.log.headers(at):
                appended(core, replica, (batch,))
                at = batch.next_offset
            return
        except DamagedError as error:
            damage.found(core, replica, error.damaged)
            # As damage.look_through: behind a header that cannot be read the next batch may not be found.
            at = max(at + 1, error.damaged.end) if error.damaged.offset >= at else end
