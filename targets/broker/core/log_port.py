"""
The log as the core sees it: a synchronous port, implemented by files and by simulated pages.

An append that came back as an event would only add interleavings that no real broker has; only what really
completes later (a flush) comes back as an event, carrying the partition's generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from targets.broker.core.messages import Batch, TopicPartition


class LeoAfterCut(StrEnum):
    """Where a log ends after a cut inside a batch: the offset asked for (as Kafka), or what is really there."""

    TARGET = "target"
    PHYSICAL = "physical"


class AppendOrderError(Exception):
    """A follower was handed a batch whose first offset lies before its log's end (Kafka: out of order)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """
    What opening a log found.

    Shapes:  clean: the clean-shutdown marker was there, so nothing was scanned for damage. batch_epochs are
             (leader epoch, base offset) of every batch from the recovery point on, in log order, whenever the
             epoch differs from the batch before. file_epochs is the epoch checkpoint as found, () when none;
             high_watermark is its checkpoint, 0 when none. reason says why bytes were cut, "clean" when none.
    """

    clean: bool
    cut_bytes: int
    reason: str
    batch_epochs: tuple[tuple[int, int], ...]
    file_epochs: tuple[tuple[int, int], ...]
    high_watermark: int


class LogPort(Protocol):
    """
    One replica's log. Offsets are exclusive ends; batches are whole.

    Raises:  AppendOrderError; anything else that a disk does wrong ends the broker (fail-stop, V3 4).
    """

    tp: TopicPartition

    @property
    def start_offset(self) -> int:
        """The first offset that the log holds."""

    @property
    def end_offset(self) -> int:
        """The log end offset (LEO): the offset that the next record gets."""

    def append_as_leader(self, batches: Sequence[Batch], leader_epoch: int) -> tuple[int, int]:
        """Give the batches their offsets and epoch (-1: message format without epochs) and append them.

        Returns  (first offset, new log end offset).
        """

    def append_as_follower(self, batches: Sequence[Batch]) -> tuple[int, int]:
        """Append the batches verbatim; a gap before the first is accepted, as Kafka accepts it.

        Returns  (first offset, new log end offset).
        """

    def read(self, offset: int, end_offset: int, max_bytes: int) -> tuple[Batch, ...]:
        """Read whole batches, from the one that holds `offset` up to those that begin before `end_offset`.

        Gives at least one batch when there is one, however large; () at the end. In a hole: the next batch.
        """

    def truncate_to(self, offset: int, leo: LeoAfterCut) -> int:
        """Remove every batch whose last offset is `offset` or later; return the new log end offset."""

    def truncate_fully(self, offset: int) -> None:
        """Remove all batches; the log starts and ends at `offset`."""

    def first_offset_at(self, timestamp_ms: int) -> int:
        """The offset of the first batch whose greatest timestamp is not before it; -1 when there is none."""

    def write_epochs(self, entries: Sequence[tuple[int, int]], *, flush: bool) -> None:
        """Replace the epoch checkpoint file with (epoch, start offset) entries, durably when `flush`."""

    def delete(self) -> None:
        """Remove the replica from the disk."""
