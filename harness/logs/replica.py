"""
One replica's log as data, whichever system wrote it: its batches, and what is known of it beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.events import Batch, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeen:
    """
    One batch as it is on the disk; a log without batches has one for each record.

    Attributes:
        last: The last offset, inclusive.
        epoch: The leader epoch that the log has for it; -1 if it has none.
        magic: The number of its format: from 2 on it may have an epoch, from 1 on its records have a time.
        crc: Its checksum as stored; 0 if it has none.
        codec: How its records are compressed; `none` if they are not.
        position: The batch's first byte in its segment.
        segment: The segment's file name.
        records: (offset, digest, value's text or None) of each record; () if they could not be read.
        problem: How the batch breaks the order of offsets; "" if it does not.
        control: True for a transaction marker, which no client wrote or reads; its value names its kind, such as
            `commit marker`.
        unopened: Why the records could not be read; "" if they could.
        about: Of each record all but its value, for a comparison; () where values are kept whole.
        single: The log keeps records one by one, so that no batch holds together what was sent together.
    """

    base: int
    last: int
    epoch: int
    magic: int
    crc: int
    codec: str
    position: int
    segment: str
    records: tuple[tuple[int, str, str | None], ...]
    problem: str = ""
    control: bool = False
    unopened: str = ""
    about: tuple[str, ...] = ()
    single: bool = False

    @property
    def end(self) -> int:
        """The offset after the batch's last one."""
        return self.last + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """
    One replica's log, as read from its files.

    Attributes:
        log_end_offset: Exclusive: the end of the last sound batch, or the last segment's first offset if that
            segment is empty.
        batches: In file order.
        epochs: The (epoch, start offset) entries that are kept beside the log; None if there are none, or they
            cannot be read.
        high_watermark: As the files have it; None if they do not, or it cannot be read.
        problems: What could not be read. A batch that was read but is out of order has its own problem text.
        unread: The [first, end) ranges of offsets that could not be read; end None if unknown.
        cleaned_to: The log was compacted below this offset, so that missing offsets there prove nothing; 0: never.
        topic_id: The cluster's id of the topic; None if it has none.
        remarks: Observations that are no fault, such as a running broker that holds the log.
    """

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    batches: tuple[BatchSeen, ...]
    epochs: tuple[tuple[int, int], ...] | None
    high_watermark: int | None
    problems: tuple[str, ...] = ()
    unread: tuple[tuple[int, int | None], ...] = ()
    cleaned_to: int = 0
    topic_id: str | None = None
    remarks: tuple[str, ...] = ()


def snapshot_events(log: ReplicaLog, second: tuple[str, Sequence[BatchSeen]] = ("", ())) -> list[Snapshot | Batch]:
    """
    Return the events that a history has of a replica's log: its snapshot, then each batch.

    Args:
        second: The name of a second store of the replica, and what it has.
    """
    store, others = second
    snapshot = Snapshot(
        topic=log.topic,
        partition=log.partition,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        epochs=log.epochs,
        problems=log.problems,
        batches=len(log.batches) + len(others),
        unread=tuple(_known(log)) or None,
    )
    return [snapshot, *_events(log, log.batches), *_events(log, others, store)]


def _events(log: ReplicaLog, batches: Iterable[BatchSeen], store: str = "") -> Iterator[Batch]:
    for batch in batches:
        yield Batch(
            topic=log.topic,
            partition=log.partition,
            base=batch.base,
            last=batch.last,
            epoch=batch.epoch,
            magic=batch.magic,
            crc=batch.crc,
            codec=batch.codec,
            position=batch.position,
            segment=batch.segment,
            records=batch.records,
            problem=batch.problem,
            control=batch.control or None,
            store=store,
        )


def _known(log: ReplicaLog) -> Iterator[tuple[int, int]]:
    """Yield what of a log could not be read, as far as it is known how long that is."""
    for first, end in log.unread:
        until = log.log_end_offset if end is None else end
        if first < until:
            yield first, until
