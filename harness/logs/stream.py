"""
A replica's log while it is read, batch by batch or record by record, and the whole of it.

A node may write to the log meanwhile. So a reading says at its end whether it may mix two states of the log; then
the log is read again, until the result is one state or SETTLE_S_MAX have passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from harness import limits
from harness.cleanup.process import until
from harness.events.log import WITH_EPOCHS
from harness.logs.names import shown
from harness.logs.record import Record
from harness.logs.replica import BatchSeen, ReplicaLog

# How long a log may keep changing while it is read. A write takes milliseconds.
SETTLE_S_MAX: Final = 2.0

T = TypeVar("T")


class Reading(Protocol):
    """
    One reading of one replica's log: first its batches, each once, then what is known of the whole.

    What cannot be read is a problem of the log, and no exception: damage is what a run may be about.
    """

    def batches(self, value_characters_max: int | None) -> Iterator[BatchSeen]:
        """
        Yield the batches in file order, one by one: a log may be larger than memory.

        Args:
            value_characters_max: How much of a record's value is kept; None: all of it.
        """

    def log(self) -> ReplicaLog:
        """
        Return what is known so far, without the batches.

        The epochs and the topic's id are known before the first batch, the log's start and what compaction may
        have removed from the first batch on. The end is that of the furthest batch so far.
        """

    def unsettled(self) -> str:
        """Return why what was read may mix two states of the log, "" if it does not; asked after the batches."""

    def close(self) -> None:
        """Close all files; safe to call twice."""


Open = Callable[[], Reading]


def read_whole(opened: Open) -> ReplicaLog:
    """Read a log with its batches, each value whole."""

    def read() -> tuple[ReplicaLog, str]:
        with closing(opened()) as reading:
            batches = tuple(reading.batches(None))
            return replace(reading.log(), batches=batches), reading.unsettled()

    log, unsettled = settled(read)
    name = shown(f"{log.topic}-{log.partition}")
    return replace(log, problems=(*log.problems, f"{name}: {unsettled}")) if unsettled else log


def settled(read: Callable[[], tuple[T, str]]) -> tuple[T, str]:
    """Return what `read` returns; call it again while it says that the log changed, for up to SETTLE_S_MAX."""
    found: list[tuple[T, str]] = []

    def is_settled() -> bool:
        found[:] = [read()]
        return not found[0][1]

    until(is_settled, SETTLE_S_MAX)
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """
    A part of a log that could not be read.

    Attributes:
        why: Where and what, for people: `log, line 7: no number`.
        end: The offset after it; None if it is not known where it ends.
    """

    why: str
    first: int
    end: int | None = None


class RecordsReading:
    """
    One reading of a log that keeps records one by one, or whose reader yields them so: each is a batch of its own.

    It needs no checksum: the iterator yields an Unread for what it finds damaged, and goes on or ends.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        records: Iterable[Record | Unread],
        *,
        start: int = 0,
        epochs: Sequence[tuple[int, int]] | None = None,
        high_watermark: int | None = None,
        file: str = "log",
    ) -> None:
        """
        Keep what is known beside the records.

        Args:
            records: In the order of the files; an iterator is closed at the end if it can be.
            start: The log's first offset.
            epochs: The (epoch, start offset) entries that are kept beside the log, if any.
            file: Which file the records are in.
        """
        self._records = iter(records)
        self._file = file
        self._log = ReplicaLog(
            topic=topic,
            partition=partition,
            log_start_offset=start,
            log_end_offset=start,
            batches=(),
            epochs=None if epochs is None else tuple(epochs),
            high_watermark=high_watermark,
        )
        self._end = start
        self._unread: list[Unread] = []

    def batches(self, value_characters_max: int | None) -> Iterator[BatchSeen]:
        """Yield each record as a batch of its own."""
        for place, found in enumerate(self._records):
            if isinstance(found, Unread):
                self._unread.append(found)
                self._end = max(self._end, found.first if found.end is None else found.end)
                if len(self._unread) >= limits.LOG_FINDINGS_MAX:
                    why = f"more than {limits.LOG_FINDINGS_MAX} unreadable parts; the rest is not read"
                    self._unread.append(Unread(why=why, first=self._end))
                    return
                continue
            self._end = max(self._end, found.offset + 1)
            yield BatchSeen(
                base=found.offset,
                last=found.offset,
                epoch=found.epoch,
                magic=WITH_EPOCHS if found.epoch >= 0 else WITH_EPOCHS - 1,
                crc=0,
                codec="none",
                position=place,  # its number: where its bytes are, only its reader knows
                segment=self._file,
                records=((found.offset, found.digest, found.beginning(value_characters_max)),),
                about=() if value_characters_max is None else (found.about(value_characters_max),),
                single=True,
            )

    def log(self) -> ReplicaLog:
        """Return what is known so far, without the records."""
        return ReplicaLog(
            topic=self._log.topic,
            partition=self._log.partition,
            log_start_offset=self._log.log_start_offset,
            log_end_offset=self._end,
            batches=(),
            epochs=self._log.epochs,
            high_watermark=self._log.high_watermark,
            problems=tuple(each.why for each in self._unread),
            unread=tuple((each.first, each.end) for each in self._unread),
        )

    def unsettled(self) -> str:
        """Return "": a record that is half written is the reader's to leave out."""
        return ""

    def close(self) -> None:
        """Close the iterator of records."""
        close = getattr(self._records, "close", None)
        if close is not None:
            close()
