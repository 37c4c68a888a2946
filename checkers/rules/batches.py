"""A final log holds what it claims: a batch all records of its offsets, the snapshot what its batches hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.abridged import Abridged, sends_left_out
from checkers.facts.compacted import kept_of
from checkers.facts.outages import outages
from checkers.facts.sent import sent_values
from checkers.facts.view import FinalLog, final_logs, key_of, offsets_text, setup_of, traits
from harness.events import WITH_EPOCHS, Append, Batch, Follower, Leader, Printed, Recovered, Truncate
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.INCOMPLETE,
        formula="a batch of a final log with {offsets of its records} != {base, …, last}, less what compaction "
        "may have removed, or base below the first offset of its segment; or a snapshot with log_end_offset != "
        "max(last + 1 of its batches, log_start_offset), or log_start_offset > log_end_offset, or high_watermark "
        "> every end that the log ever had; or a batch of a message format below 2 with an epoch >= 0",
        words="A log claims offsets that it does not hold: records are missing inside a batch, or the end or the "
        "high watermark's checkpoint lies where no batch is. Compaction may remove a record only if a newer one "
        "of its key is there. Or a batch claims an epoch that its message format cannot hold.",
        evidence="log: snapshot, batch; broker: append, truncate, recovered, printed; nemesis: faults",
        unchecked="A log with problems is unreadable; batches whose records could not be read are not judged. "
        "Where offsets need not follow each other, records rise within what their batch claims, and a log may "
        "claim to end above its last one.",
        source="Apache Kafka, DefaultRecordBatch.java (lastOffsetDelta, record count); KAFKA-6361, case 3",
    ),
)


def batches(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find batches and snapshots of final logs that claim offsets, or an epoch, which they do not hold.

    Batches below the log's start are lawful: DeleteRecords moves the start, and the segment keeps its records.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each contradiction of each log.

    Source:  Apache Kafka, DefaultRecordBatch.java; KAFKA-6361, case 3: an end inside a batch that was removed.
    """
    topic, partition = key_of(ops)
    return [
        Anomaly(
            kind=Kind.INCOMPLETE,
            topic=topic,
            partition=partition,
            ranges=(span,),
            nodes=(node,),
            sentence=f"{node}'s {text}.",
            proof=proof,
        )
        for node, log in final_logs(ops).items()
        for span, text, proof in (*_in_batches(ops, log), *_in_snapshot(ops, log))
    ]


_Lack = tuple[tuple[int, int], str, tuple[int, ...]]


def _in_batches(ops: Sequence[Op], log: FinalLog) -> Iterator[_Lack]:
    for index, batch in log.batches:
        span = (batch.base, max(batch.last, batch.base) + 1)
        held = [offset for offset, _, _ in batch.records]
        readable = not isinstance(batch, Abridged) and (held or not log.snapshot.problems)
        if readable and not _whole(ops, batch, held):
            yield span, f"batch at {offsets_text([span])} {_lack(batch, held)}", (index,)
        if batch.magic < WITH_EPOCHS and batch.epoch >= 0:
            text = (
                f"batch at {offsets_text([span])} claims epoch {batch.epoch}, which message format {batch.magic}"
            )
            yield span, f"{text} cannot hold", (index,)
        first = batch.segment_start
        if first is not None and batch.base < first:
            text = f"batch at {offsets_text([span])} stands in a segment that begins at {first}"
            yield span, text, (log.index, index)


def _whole(ops: Sequence[Op], batch: Batch, held: Sequence[int]) -> bool:
    """
    Return True if the batch has one record for each offset that it claims, but for those that compaction removed.

    Where offsets need not follow each other, its records rise within what it claims. It may claim absurdly many.
    """
    if not traits(ops).dense:
        return held == sorted({offset for offset in held if batch.base <= offset <= batch.last})
    if batch.last - batch.base + 1 == len(held):
        return held == list(range(batch.base, batch.last + 1))
    if held != sorted({offset for offset in held if batch.base <= offset <= batch.last}):
        return False
    kept, have = kept_of(ops, batch.base, batch.last + 1), frozenset(held)
    due = sum(end - first for first, end in kept)
    return due <= len(held) and all(offset in have for first, end in kept for offset in range(first, end))


def _lack(batch: Batch, held: Sequence[int]) -> str:
    missing: list[tuple[int, int]] = []
    expected = batch.base
    for offset in sorted({offset for offset in held if batch.base <= offset <= batch.last}):
        if offset > expected:
            missing.append((expected, offset))
        expected = offset + 1
    if expected <= batch.last:
        missing.append((expected, batch.last + 1))
    if missing:
        return f"has no record at {offsets_text(missing)}"
    return f"claims {max(0, batch.last - batch.base + 1)} records and holds {len(held)}"


def _in_snapshot(ops: Sequence[Op], log: FinalLog) -> Iterator[_Lack]:
    reached = max((batch.last + 1 for _, batch in log.batches), default=log.start)
    proof = (log.index, *(index for index, batch in log.batches if batch.last + 1 == reached))
    if log.start > log.end:
        yield (log.end, log.start), f"log begins at {log.start}, above its end {log.end}", proof
    elif log.end > max(reached, log.start) and not log.snapshot.problems and traits(ops).dense:
        yield (reached, log.end), f"log claims to end at {log.end}, and its batches end at {reached}", proof
    elif log.end < reached:
        yield (log.end, reached), f"log claims to end at {log.end}, and its batches reach {reached}", proof
    mark = log.snapshot.high_watermark
    if mark is not None and mark > max(log.end, reached):
        ever = _furthest(ops, log.node)
        if ever is not None and mark > ever:
            text = f"checkpoint says that the high watermark was {mark}, and its log never had more than {ever}"
            yield (max(log.end, reached), mark), f"{text} records", (log.index,)


def _furthest(ops: Sequence[Op], node: str) -> int | None:
    """
    Return the furthest end that the node's log ever had; None if that is not known.

    Only then is the checkpoint wrong: a log that was cut, or lost its end with the power, keeps the checkpoint of
    its high watermark for some time.
    """
    ends = [appended.end for op, appended in events_of(ops, Append) if op.process == node]
    ends += [each.start for op, each in events_of(ops, Truncate) if op.process == node]
    ends += [led.log_end_offset for op, led in events_of(ops, Leader) if op.process == node]
    ends += [each.log_end_offset for op, each in events_of(ops, Follower) if op.process == node]
    ends += [each.log_end_offset for op, each in events_of(ops, Recovered) if op.process == node]
    if ends:
        return max(ends)
    if _was_cut(ops, node):
        # No log is longer than all records that were ever sent, if each was sent once.
        setup = setup_of(ops)
        sent = sum(max(len(each.invokes), each.ended) for each in sent_values(ops).values()) + sends_left_out(ops)
        counts = setup is not None and setup.sends_once and sent and traits(ops).dense
        return sent + traits(ops).first_offset if counts else None
    log = final_logs(ops)[node]
    return max((batch.last + 1 for _, batch in log.batches), default=log.start)


def _was_cut(ops: Sequence[Op], node: str) -> bool:
    """Return True if a node that emits no events printed that it truncated its log, or lost its power."""
    printed = any(op.process == node and line.what == "truncate" for op, line in events_of(ops, Printed))
    return printed or any(outage.node == node and outage.power_lost for outage in outages(ops))
