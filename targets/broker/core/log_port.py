"""
The log as the core sees it: a synchronous port, implemented by files and by simulated pages.

An append that came back as an event would only add interleavings that no real broker has; only a flush, which
really completes later, comes back as an event, with the replica's generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from targets.broker.core.messages import Batch, TopicPartition
from targets.broker.core.sequences import Sequences
from targets.broker.core.tombstones import TombstoneDelay


class LeoAfterCut(StrEnum):
    """Where truncation inside a batch leaves the log end: at the requested offset (Kafka), or at a batch's end."""

    TARGET = "target"
    PHYSICAL = "physical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """
    A batch whose bytes are no longer those that were written.

    Attributes:
        offset: its first offset.
        end: the offset after its last one; the offset after the first one if its header cannot be read.
        path: its file, relative to the data directory.
        position: its first byte in the file.
        what: what is wrong with it, in words.
    """

    offset: int
    end: int
    path: str
    position: int
    what: str


class DamagedError(Exception):
    """What is asked for begins with a damaged batch, or cannot be told because of one."""

    def __init__(self, damaged: Damaged) -> None:
        """Say which batch it is."""
        super().__init__(f"{damaged.path} at byte {damaged.position}: {damaged.what}")
        self.damaged = damaged


class FormatError(Exception):
    """A producer's batch holds what the message format that it is to be written in has no place for."""


class AppendOrderError(Exception):
    """A follower got a batch whose first offset lies before its log's end (Kafka: out of order)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """
    The result of opening a log.

    Attributes:
        clean: the clean-shutdown marker was found, so the log was not scanned for damage.
        batch_epochs: (leader epoch, base offset) of the batches from the recovery point on, in log order,
            one entry whenever the epoch differs from the batch before.
        batch_ends: for each of these entries the offset after its last batch, as what compaction removed behind it
            may have been of another epoch; () if none is missing.
        file_epochs: the epoch checkpoint as found, () when none.
        high_watermark: the HW checkpoint, 0 when none.
        reason: why bytes were cut, "clean" when none were.
        sequences: what the log says of its idempotent producers.
    """

    clean: bool
    cut_bytes: int
    reason: str
    batch_epochs: tuple[tuple[int, int], ...]
    file_epochs: tuple[tuple[int, int], ...]
    high_watermark: int
    batch_ends: tuple[int, ...] = ()
    sequences: Sequences = field(default_factory=Sequences, compare=False)


# The newest message format, record batches, and the first one that stores a leader epoch (KIP-98, KIP-101).
LATEST_FORMAT: Final = 2
WITH_EPOCHS: Final = 2

# Kafka's offset index stores a batch's offset relative to its file's base in 31 bits.
OFFSETS_MAX: Final = 2**31 - 1


class File(NamedTuple):
    """
    One file of a log.

    Attributes:
        end: the offset after its last one.
        latest: the greatest timestamp of its batches and of all before them, in ms; negative if none has one.
    """

    base: int
    end: int
    size: int
    latest: int


class Moment(NamedTuple):
    """Where a log has reached a time: the first offset of a batch, and that batch's greatest timestamp, in ms."""

    offset: int
    timestamp_ms: int


# The log has not reached that time.
NEVER_YET = Moment(-1, -1)


class Cleaned(NamedTuple):
    """
    What a step of a cleaning did.

    Attributes:
        read: how many bytes it read, and what each file that it opened or replaced counts for.
        more: the cleaning is not done.
        upto: the offset below which one that is done has left one record of each key; -1 if none was done.
        size: how many bytes smaller the log is for it.
    """

    read: int = 0
    more: bool = False
    upto: int = -1
    size: int = 0


class LogPort(Protocol):
    """
    One replica's log. End offsets are exclusive; batches are whole.

    Raises:
        AppendOrderError: see above.
        DamagedError: see above; nothing was changed. Appends never raise it.
        OSError: the disk's own error, which ends the broker (fail-stop, V3 4).
    """

    tp: TopicPartition

    @property
    def topic_id(self) -> int:
        """Return the id of the topic that the log was made for, NO_TOPIC_ID if none is known."""

    @property
    def start_offset(self) -> int:
        """Return the first offset of the log."""

    @property
    def end_offset(self) -> int:
        """Return the log end offset (LEO): the offset of the next record."""

    def append_as_leader(
        self, batches: Sequence[Batch], leader_epoch: int, message_format: int = LATEST_FORMAT
    ) -> tuple[int, int]:
        """
        Assign offsets and epoch (-1: none) to the batches and append them in this message format, 1 or 2.

        Returns:
            (first offset, new log end offset).

        Raises:
            FormatError: see above; nothing was written.
        """

    def append_as_follower(self, batches: Sequence[Batch]) -> tuple[int, int]:
        """
        Append the batches verbatim; a gap before the first is accepted, as in Kafka.

        Returns:
            (first offset, new log end offset).
        """

    def read(
        self, offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[Batch, ...]:
        """
        Read whole batches, from the one that holds `offset` up to those that begin before `end_offset`.

        Returns at least one batch when there is one, however large, unless at_least_one is False: then no more
        than max_bytes; () at the end. In a hole: the next batch. Every batch is as it was written: those before a
        damaged one are returned, and a damaged one at the beginning is an error.
        """

    def headers(self, offset: int) -> Iterator[Batch]:
        """
        Yield the batches from the one that holds `offset` on, without reading their records.

        A payload holds the header alone, or nothing. Only a header that cannot be read is an error.
        """

    def check(self, offset: int, max_bytes: int) -> tuple[int, int]:
        """
        Read batches from an offset on, as `read` does, to see that none is damaged.

        Returns:
            (offset to go on from, bytes read).
        """

    def mend(self, batch: Batch) -> bool:
        """
        Write a batch again, durably, where the same batch is damaged; return False, and change nothing, elsewhere.

        It is the same if its offsets, its epoch, its checksum and its size are those with which it was written.
        """

    def position_of(self, offset: int) -> int:
        """
        Return how many bytes of the log lie before the first batch whose last offset is `offset` or later.

        It stays so until a truncation below the offset. Near the log's end no file is read for it.
        """

    def truncate_to(self, offset: int, leo: LeoAfterCut) -> int:
        """Remove every batch whose last offset is `offset` or later; return the new log end offset."""

    def truncate_fully(self, offset: int) -> None:
        """Remove all batches; the log starts and ends at `offset`."""

    def advance_start(self, offset: int) -> None:
        """
        Let the log start at an offset up to its end, durably, and delete the files that hold nothing past it.

        The newest file stays. Nothing changes if the log starts there or later.
        """

    def files(self) -> tuple[File, ...]:
        """Return the files of the log, the oldest first; nothing is read for it."""

    def roll(self) -> None:
        """Begin a new file at the log's end, unless the newest is empty."""

    def configure(self, segment_bytes: int, segment_ms: int) -> None:
        """Begin new files at another size or age from now on, as LogDir has them."""

    def clean(self, upto: int, delay: TombstoneDelay, bytes_max: int) -> Cleaned:
        """
        Go on with a cleaning, or begin one if there are new files: of each key the newest record stays.

        What is cleaned are the files but for the newest that end at `upto` or before. Offsets and epochs stay.
        One call reads at most so many bytes, or one batch. Whatever removes records otherwise ends a cleaning.

        Args:
            delay: how long tombstones stay; what holds is that with which the cleaning was begun.
        """

    def first_offset_at(self, timestamp_ms: int) -> Moment:
        """Return the first batch whose greatest timestamp is not earlier; NEVER_YET when there is none."""

    def write_epochs(self, entries: Sequence[tuple[int, int]], *, flush: bool) -> None:
        """Replace the epoch checkpoint file with (epoch, start offset) entries, durably when `flush`."""

    def adopt(self, topic_id: int) -> None:
        """Write down, durably, which topic the log belongs to (partition.metadata); NO_TOPIC_ID: none is known."""

    def delete(self) -> None:
        """Delete the replica from the disk."""


def number_bytes(number: int) -> bytes:
    """Return a number as records hold it, from message format 2 on; of the simulator's logs it has the size."""
    left = (number << 1) ^ (number >> 63)
    written = bytearray()
    while left > 127:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
