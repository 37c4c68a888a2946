"""
Check one replica's log alone: order of offsets and epochs, holes, and the epoch checkpoint against the log.

Each note has the kind of anomaly that it proves, None if it proves none. The checkpoint may have more epochs than
the log: an epoch in which nothing was written may start anywhere up to the log's end. It must not have fewer, and
must not contradict the log.

Source:  KIP-101; KAFKA-16541 (after a crash the file may hold stale entries, never fewer).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

from harness.logs.lineage import holes
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.model import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """
    One finding about one replica, for the offsets [first, end); kind None: a remark that proves no anomaly.

    Attributes:
        after_crash: A loss of unflushed writes leaves this, until the replica's broker has recovered it.
    """

    kind: Kind | None
    first: int
    end: int
    text: str
    after_crash: bool = False


def notes(log: ReplicaLog) -> tuple[Note, ...]:
    """Return all findings about the replica alone: order, holes, checkpoints, remarks."""
    checks = Checks(log.epochs)
    for batch in log.batches:
        checks.add(batch, start=log.log_start_offset)
    return checks.notes(log, holes(log))


class Checks:
    """The checks of one replica, batch by batch, in a time that grows with the batches plus the entries."""

    def __init__(self, epochs: tuple[tuple[int, int], ...] | None) -> None:
        """Take the checkpoint's entries; None if there is no checkpoint."""
        self._epochs = epochs
        self._known = {epoch for epoch, _ in epochs or ()}
        self.order: list[Note] = []
        self._highest = -1
        self._seen_epoch = False
        self._missing: dict[int, Note] = {}
        # Entries whose start no batch has reached yet, the last one first; then those that were reached, of which
        # the highest epoch comes first: (-epoch, index).
        self._ahead = sorted(enumerate(epochs or ()), key=lambda each: -each[1][1])
        self._reached: list[tuple[int, int]] = []
        # The first batch of each epoch that was higher than all before: (epoch, base).
        self._peaks: list[tuple[int, int]] = []
        self._against: dict[int, Note] = {}

    def add(self, batch: BatchSeen, *, start: int) -> None:
        """Check the next batch of the log that begins at `start`."""
        if batch.problem:
            self.order.append(_note(Kind.DISORDER, batch, batch.problem))
        # -1 is a batch without an epoch: messages from before KIP-101, which may be anywhere.
        if 0 <= batch.epoch < self._highest:
            text = (
                f"leader epoch is {batch.epoch}, after a batch of epoch {self._highest}; expected epochs to rise"
            )
            self.order.append(_note(Kind.DISORDER, batch, text))
        self._highest = max(self._highest, batch.epoch)
        if batch.epoch < 0 or batch.end <= start:
            return
        self._seen_epoch = True
        if self._epochs is not None and batch.epoch not in self._known:
            text = f"the checkpoint has no entry for epoch {batch.epoch}, which begins at {batch.base}"
            self._missing.setdefault(batch.epoch, _note(Kind.CHECKPOINT, batch, text))
        self._check_entries(batch, start)
        if not self._peaks or batch.epoch > self._peaks[-1][0]:
            self._peaks.append((batch.epoch, batch.base))

    def notes(self, log: ReplicaLog, missing: Iterable[tuple[int, int]]) -> tuple[Note, ...]:
        """Return all findings, after the last batch; `missing` are the log's holes."""
        holed = (
            Note(kind=Kind.HOLE, first=first, end=end, text="no record is there, although later ones are")
            for first, end in missing
        )
        return (*self.order, *holed, *self._checkpoint(log), *_high_watermark(log), *_remarks(log))

    def _check_entries(self, batch: BatchSeen, start: int) -> None:
        """Report entries that the batch contradicts: it lies across one's start, or after it in a lower epoch."""
        while self._ahead and self._ahead[-1][1][1] < batch.end:
            index, (epoch, first) = self._ahead.pop()
            if self._check_before(index, epoch, first):
                continue
            if batch.base < first and first > start:
                text = f"falls inside the batch {batch.base} to {batch.last}"
                self._against[index] = _entry(epoch, first, text)
            else:
                heappush(self._reached, (-epoch, index))
        while self._reached and -self._reached[0][0] > batch.epoch:
            epoch, first = self._entry_at(self._reached[0][1])
            if batch.base < first:
                break  # the batch went back, which is reported as such
            _, index = heappop(self._reached)
            text = f"the batch at {batch.base}, after it, has epoch {batch.epoch}"
            self._against[index] = _entry(epoch, first, text)

    def _check_before(self, index: int, epoch: int, first: int) -> bool:
        """Report an entry if a batch so far, all of which are before its start, has its epoch or a later one."""
        at = bisect_left(self._peaks, (epoch,))
        if at == len(self._peaks):
            return False
        reached, base = self._peaks[at]
        self._against[index] = _entry(epoch, first, f"the batch at {base}, before it, has epoch {reached}")
        return True

    def _entry_at(self, index: int) -> tuple[int, int]:
        assert self._epochs is not None, "an entry is of a checkpoint"
        return self._epochs[index]

    def _checkpoint(self, log: ReplicaLog) -> Iterator[Note]:
        """Report epochs that the checkpoint lacks, and entries that contradict each other or the log."""
        if self._epochs is None:
            if self._seen_epoch:
                text = "no epoch checkpoint to compare with the log"
                yield Note(kind=None, first=log.log_start_offset, end=log.log_end_offset, text=text)
            return
        for (epoch, start), (after, later) in pairwise(self._epochs):
            if after <= epoch or later < start:
                yield _entry(after, later, f"follows epoch {epoch} at {start}; expected both to rise")
        yield from self._missing.values()
        while self._ahead:
            index, (epoch, start) = self._ahead.pop()
            self._check_before(index, epoch, start)
        # A log that could not be read to its end may reach an offset beyond it.
        beyond = None if any(stop is None for _, stop in log.unread) else Kind.CHECKPOINT
        for index, (epoch, start) in enumerate(self._epochs):
            if start > log.log_end_offset:
                text = f"lies beyond the log's end {log.log_end_offset}"
                yield _entry(epoch, start, text, kind=beyond, after_crash=True)
            if index in self._against:
                yield self._against[index]


def _high_watermark(log: ReplicaLog) -> Iterator[Note]:
    if log.high_watermark is not None and log.high_watermark > log.log_end_offset:
        text = f"its high watermark checkpoint {log.high_watermark} lies beyond its end: a tail was lost or cut"
        yield Note(kind=None, first=log.log_end_offset, end=log.high_watermark, text=text, after_crash=True)


def _remarks(log: ReplicaLog) -> Iterator[Note]:
    for remark in log.remarks:
        yield Note(kind=None, first=log.log_end_offset, end=log.log_end_offset, text=remark)


def _note(kind: Kind, batch: BatchSeen, text: str) -> Note:
    where = f"{batch.segment}, position {batch.position}"
    return Note(kind=kind, first=batch.base, end=batch.end, text=f"{where}: {text}")


def _entry(
    epoch: int, start: int, text: str, *, kind: Kind | None = Kind.CHECKPOINT, after_crash: bool = False
) -> Note:
    text = f"checkpoint entry ({epoch}, {start}): {text}"
    return Note(kind=kind, first=start, end=start, text=text, after_crash=after_crash)
