"""
How an idempotent producer numbers its batches: its id and epoch, and for each partition the next sequence.

A batch keeps its numbers in every try, so that brokers know it again. After one whose end is not known, or that
was refused, the producer goes on in the next epoch, in which every partition begins at 0.
Source:  KIP-98; KIP-360: the producer raises its epoch by itself, which it may as it has no transactions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.workload.plan import Place

NO_ID: Final = -1
# So many tries that are not answered take all the time that a producer has for a batch.
IDEMPOTENT_TRIES: Final = 4
EPOCH_MAX: Final = 2**15 - 1
SEQUENCES: Final = 2**31


class Numbers(NamedTuple):
    """The numbers of a batch."""

    producer_id: int = NO_ID
    epoch: int = NO_ID
    sequence: int = NO_ID


# Those of a producer that is not idempotent.
UNNUMBERED: Final = Numbers()


class Numbering:
    """The numbers of one producer; it needs an id first."""

    def __init__(self) -> None:
        self._id = self._epoch = NO_ID
        self._next: dict[Place, int] = {}

    @property
    def has_id(self) -> bool:
        """Return False if an id must be asked for."""
        return self._id != NO_ID

    def begin(self, producer_id: int, epoch: int) -> None:
        """Take an id that a broker gave."""
        self._id, self._epoch = producer_id, epoch
        self._next.clear()

    def number(self, place: Place, records: int) -> Numbers:
        """Return the numbers of the next batch of a partition."""
        sequence = self._next.get(place, 0)
        self._next[place] = (sequence + records) % SEQUENCES
        return Numbers(self._id, self._epoch, sequence)

    def doubt(self) -> None:
        """Go on in another epoch, or once there is none with another id: a batch's end is not known."""
        self._next.clear()
        if self._epoch < EPOCH_MAX:
            self._epoch += 1
        else:
            self._id = NO_ID
