"""
Judge one replica's log alone: order of offsets and epochs, holes, and the epoch checkpoint against the log.

Each note has the kind of anomaly that it proves, None when it only tells. The checkpoint may say more than
the log (an epoch in which nothing was written, starting anywhere up to the log's end), never less, and never
something else.

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
    """One finding about one replica; kind None: worth telling, proves nothing. [first, end) are offsets."""

    kind: Kind | None
    first: int
    end: int
    text: str


def notes(log: ReplicaLog) -> tuple[Note, ...]:
    """Give everything that is to be said of the replica alone: order, holes, checkpoints."""
    return (*_order(log), *_holes(log), *_epochs(log), *_high_watermark(log), *_remarks(log))


def _order(log: ReplicaLog) -> Iterator[Note]:
    """Offsets and epochs must rise from batch to batch."""
    highest = -1
    for batch in log.batches:
        if batch.problem:
            yield _note(Kind.DISORDER, batch, batch.problem)
        # -1 is a batch without an epoch: messages from before KIP-101, which may stand anywhere.
        if 0 <= batch.epoch < highest:
            yield _note(
                Kind.DISORDER,
                batch,
                f"leader epoch is {batch.epoch}, behind a batch of epoch {highest}; expected epochs to rise",
            )
        highest = max(highest, batch.epoch)


def _holes(log: ReplicaLog) -> Iterator[Note]:
    for first, end in holes(log):
        yield Note(kind=Kind.HOLE, first=first, end=end, text="no record stands there, and later ones do")


def _epochs(log: ReplicaLog) -> Iterator[Note]:
    """Every epoch in the log must stand in the checkpoint, and every entry must part the log rightly."""
    batches = [batch for batch in log.batches if batch.epoch >= 0 and batch.end > log.log_start_offset]
    if log.epochs is None:
        if batches:
            text = "no leader-epoch-checkpoint to hold against the log"
            yield Note(kind=None, first=log.log_start_offset, end=log.log_end_offset, text=text)
        return
    for (epoch, start), (after, later) in pairwise(log.epochs):
        if after <= epoch or later < start:
            yield _entry(after, later, f"stands behind epoch {epoch} at {start}; expected both to rise")
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
    """Before an entry's start only earlier epochs may have written, from it on none of them."""
    if start > log.log_end_offset:
        # A log that could not be read to its end may well reach there.
        torn = any(stop is None for _, stop in log.unread)
        text = f"lies beyond the log's end {log.log_end_offset}"
        yield _entry(epoch, start, text, kind=None if torn else Kind.CHECKPOINT)
    for batch in batches:
        if batch.base < start < batch.end and start > log.log_start_offset:
            yield _entry(epoch, start, f"falls inside the batch {batch.base} to {batch.last}")
        elif batch.end <= start and batch.epoch >= epoch:
            yield _entry(epoch, start, f"the batch at {batch.base}, before it, has epoch {batch.epoch}")
        elif batch.base >= start and batch.epoch < epoch:
            yield _entry(epoch, start, f"the batch at {batch.base}, behind it, has epoch {batch.epoch}")
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
