"""
Check one replica's log alone: order of offsets and epochs, holes, and the epoch checkpoint against the log.

Each note has the kind of anomaly that it proves, None if it proves none. The checkpoint may have more epochs than
the log: an epoch in which nothing was written may start anywhere up to the log's end. It must not have fewer, and
must not contradict the log.

Source:  KIP-101; KAFKA-16541 (after a crash the file may hold stale entries, never fewer).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from harness.logdir.lineage import holes
from harness.logdir.scan import BatchSeen, ReplicaLog
from harness.model import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One finding about one replica, for the offsets [first, end); kind None: a remark that proves no anomaly."""

    kind: Kind | None
    first: int
    end: int
    text: str


def notes(log: ReplicaLog) -> tuple[Note, ...]:
    """Return all findings about the replica alone: order, holes, checkpoints, remarks."""
    return (*_order(log), *_holes(log), *_epochs(log), *_high_watermark(log), *_remarks(log))


def _order(log: ReplicaLog) -> Iterator[Note]:
    """Report batches whose offset or leader epoch goes back."""
    highest = -1
    for batch in log.batches:
        if batch.problem:
            yield _note(Kind.DISORDER, batch, batch.problem)
        # -1 is a batch without an epoch: messages from before KIP-101, which may be anywhere.
        if 0 <= batch.epoch < highest:
            yield _note(
                Kind.DISORDER,
                batch,
                f"leader epoch is {batch.epoch}, after a batch of epoch {highest}; expected epochs to rise",
            )
        highest = max(highest, batch.epoch)


def _holes(log: ReplicaLog) -> Iterator[Note]:
    for first, end in holes(log):
        yield Note(kind=Kind.HOLE, first=first, end=end, text="no record is there, although later ones are")


def _epochs(log: ReplicaLog) -> Iterator[Note]:
    """Report epochs that the checkpoint lacks, and entries that contradict the log."""
    batches = [batch for batch in log.batches if batch.epoch >= 0 and batch.end > log.log_start_offset]
    if log.epochs is None:
        if batches:
            text = "no leader-epoch-checkpoint to compare with the log"
            yield Note(kind=None, first=log.log_start_offset, end=log.log_end_offset, text=text)
        return
    for (epoch, start), (after, later) in pairwise(log.epochs):
        if after <= epoch or later < start:
            yield _entry(after, later, f"follows epoch {epoch} at {start}; expected both to rise")
    known = {epoch for epoch, _ in log.epochs}
    missing: dict[int, BatchSeen] = {}
    for batch in batches:
        if batch.epoch not in known:
            missing.setdefault(batch.epoch, batch)
    for epoch, batch in missing.items():
        yield _note(
            Kind.CHECKPOINT,
            batch,
            f"the checkpoint has no entry for epoch {epoch}, which begins at {batch.base}",
        )
    for epoch, start in log.epochs:
        yield from _entry_against(log, batches, epoch, start)


def _entry_against(log: ReplicaLog, batches: list[BatchSeen], epoch: int, start: int) -> Iterator[Note]:
    """Report an entry if a batch before its start has no earlier epoch, or a batch after it has one."""
    if start > log.log_end_offset:
        # A log that could not be read to its end may reach that offset.
        torn = any(stop is None for _, stop in log.unread)
        text = f"lies beyond the log's end {log.log_end_offset}"
        yield _entry(epoch, start, text, kind=None if torn else Kind.CHECKPOINT)
    for batch in batches:
        if batch.base < start < batch.end and start > log.log_start_offset:
            yield _entry(epoch, start, f"falls inside the batch {batch.base} to {batch.last}")
        elif batch.end <= start and batch.epoch >= epoch:
            yield _entry(epoch, start, f"the batch at {batch.base}, before it, has epoch {batch.epoch}")
        elif batch.base >= start and batch.epoch < epoch:
            yield _entry(epoch, start, f"the batch at {batch.base}, after it, has epoch {batch.epoch}")
        else:
            continue
        return


def _high_watermark(log: ReplicaLog) -> Iterator[Note]:
    if log.high_watermark is not None and log.high_watermark > log.log_end_offset:
        text = f"its high watermark checkpoint {log.high_watermark} lies beyond its end: a tail was lost or cut"
        yield Note(kind=None, first=log.log_end_offset, end=log.high_watermark, text=text)


def _remarks(log: ReplicaLog) -> Iterator[Note]:
    for remark in log.remarks:
        yield Note(kind=None, first=log.log_end_offset, end=log.log_end_offset, text=remark)


def _note(kind: Kind, batch: BatchSeen, text: str) -> Note:
    where = f"{batch.segment}, position {batch.position}"
    return Note(kind=kind, first=batch.base, end=batch.end, text=f"{where}: {text}")


def _entry(epoch: int, start: int, text: str, *, kind: Kind | None = Kind.CHECKPOINT) -> Note:
    return Note(kind=kind, first=start, end=start, text=f"checkpoint entry ({epoch}, {start}): {text}")
