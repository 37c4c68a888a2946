"""
What a log says of its idempotent producers: each one's epoch, and its last batches by sequence.

Plain data, which those who append to a log or read its headers keep (`note`). What a truncation has left is found
without reading the whole log: of what was known earlier some states are kept, close together near the log's end
and ever farther apart before, so that no more has to be read again than was removed, or than lies between two.
Source:  KIP-98, Idempotent Producer Guarantees; Kafka, ProducerStateManager, whose states are `.snapshot` files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from targets.broker.core.messages import NO_PRODUCER_ID, Batch
from targets.broker.limits import Limits

# A producer may have so many batches in flight, each of which it may send again (KAFKA-5494).
BATCHES_KEPT: Final = 5
# Batches between two states that are kept.
STATE_BATCHES: Final = 4_096
# Sequences are 31 bits wide; after the last one comes 0.
_SEQUENCES: Final = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequenced:
    """A batch of an idempotent producer: its first and last sequence, its offset, and the offset after it."""

    first: int
    last: int
    base: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerState:
    """What a log says of an idempotent producer: its epoch, and its last batches in it, at least one."""

    epoch: int
    batches: tuple[Sequenced, ...]

    @property
    def next_sequence(self) -> int:
        """Return the sequence with which its next batch begins."""
        return sequence_after(self.batches[-1].last, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What was known before the batch at `offset`, the log's `batches`-th from 0."""

    offset: int
    batches: int
    known: dict[int, ProducerState]


@dataclass(slots=True, kw_only=True)
class Sequences:
    """
    The producers of one log.

    Attributes:
        producers_max: how many are known; beyond it, who has been silent for longest is forgotten.
        known: by id, who has been silent for longest first.
        batches: how many were noted, those without a producer's id too.
        earlier: states to go back to, the oldest first.
    """

    producers_max: int = Limits().producers_max
    known: dict[int, ProducerState] = field(default_factory=dict)
    batches: int = 0
    earlier: list[Earlier] = field(default_factory=list)

    @staticmethod
    def of(batches: Iterable[Batch]) -> Sequences:
        """Return what a log with these batches says."""
        found = Sequences()
        for batch in batches:
            found.note(
                batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.base_offset, batch.next_offset
            )
        return found

    def note(self, producer_id: int, epoch: int, sequence: int, base: int, end: int) -> None:
        """Note the log's next batch, from its base offset to the offset after it, as its producer's last one."""
        if self.batches and self.batches % STATE_BATCHES == 0:
            self._keep(base)
        self.batches += 1
        if producer_id == NO_PRODUCER_ID:
            return
        old = self.known.pop(producer_id, None)
        before = old.batches if old is not None and old.epoch == epoch else ()
        last = Sequenced(first=sequence, last=sequence_after(sequence, end - base - 1), base=base, end=end)
        self.known[producer_id] = ProducerState(epoch=epoch, batches=(*before, last)[-BATCHES_KEPT:])
        if len(self.known) > self.producers_max:
            del self.known[next(iter(self.known))]

    def cut(self, end: int) -> int | None:
        """
        Go back to the newest state that was kept of what lies below a log's new end.

        Returns:
            The offset from which on batches are to be noted again; None: from the log's start.
        """
        while self.earlier and self.earlier[-1].offset > end:
            self.earlier.pop()
        if not self.earlier:
            self.known, self.batches = {}, 0
            return None
        newest = self.earlier[-1]
        self.known, self.batches = dict(newest.known), newest.batches
        return newest.offset

    def _keep(self, offset: int) -> None:
        """Keep this state, and remove those whose neighbours are as close to each other as to the log's end."""
        if self.earlier and self.earlier[-1].batches == self.batches:
            return  # it was gone back to
        self.earlier.append(Earlier(offset=offset, batches=self.batches, known=dict(self.known)))
        for at in range(len(self.earlier) - 2, 0, -1):
            before, after = self.earlier[at - 1], self.earlier[at + 1]
            if after.batches - before.batches <= self.batches - after.batches:
                del self.earlier[at]


def sequence_after(sequence: int, count: int) -> int:
    """Return the sequence that comes so many after another (Kafka, DefaultRecordBatch.incrementSequence)."""
    return (sequence + count) % _SEQUENCES
