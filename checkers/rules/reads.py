"""
What a client reads is the log below the high watermark: in order, whole, and never taken back.

A record that was acknowledged and is missing from the last read is judged by `lost`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from checkers.definition import Definition
from checkers.facts.acked import acked_records
from checkers.facts.compacted import may_be_gap
from checkers.facts.moments import is_polled
from checkers.facts.view import FinalLog, at, final_logs, key_of, leaders_log, offsets_text, traits
from harness.events import MetadataState, Read
from harness.model import Anomaly, Kind, Op, OpType, events_of, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.WRONG_READ,
        formula="ok(read R, high watermark h): offsets of R that do not rise; or an offset below h that R "
        "skips and the final leader's log holds; or an offset of R at or above h; or R[o] that no final log "
        "holds at o, or that the final leader's log or another read has otherwise; or ok(produce r, acks=all, "
        "o) before R began, in its epoch, and h <= o, r in the final log",
        words="A read goes back, skips a record, stops short of what is committed, or shows a record that is "
        "rewritten or gone later, or that no log ever held.",
        evidence="client: read, produce; log: batch; metadata: state",
        unchecked="A read that failed shows nothing; a log that could not be read is not compared. Where the "
        "metadata are polled, no read is too short: who led until then is not known.",
        source="KIP-101, Motivation: consumers see what is later truncated; Jepsen's checks of Kafka",
    ),
)

_Wrong = tuple[str, tuple[int, ...], tuple[int, ...]]


def reads(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find reads that go back, skip, stop short, or show what is not so later.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each read and each way in which it is wrong.

    Source:  KIP-101, Motivation; Jepsen's checks of Kafka.
    """
    found: list[Anomaly] = []
    topic, partition = key_of(ops)
    logs, log = final_logs(ops), leaders_log(ops)
    shown = [(op, read) for op, read in events_of(ops, Read) if op.type is OpType.OK]
    begun = {op.process: op.index for op, _ in events_of(ops, Read) if op.type is OpType.INVOKE}
    for op, read in shown:
        since = begun.get(op.process, op.index)
        wrongs = [
            *_order(read),
            *_skips(ops, read, log),
            *_short(ops, read, log, since),
            *_changed(ops, read, logs, log),
        ]
        wrongs += _other_reads(ops, op, read, shown)
        for text, offsets, proof in wrongs:
            ranges = ranges_of(offsets)
            found.append(
                Anomaly(
                    kind=Kind.WRONG_READ,
                    topic=topic,
                    partition=partition,
                    ranges=ranges,
                    sentence=f"{op.process}'s read at {at(op)} {text} {offsets_text(ranges)}.",
                    proof=tuple(sorted({op.index, *proof})),
                )
            )
    return found


def _order(read: Read) -> Iterator[_Wrong]:
    records = read.records or ()
    back = [later for (earlier, _), (later, _) in pairwise(records) if later <= earlier]
    if back:
        yield "goes back: it does not rise to", tuple(back), ()
    above = [offset for offset, _ in records if offset >= (read.high_watermark or 0)]
    if above:
        yield f"shows what is not below its high watermark, {read.high_watermark}:", tuple(above), ()


def _skips(ops: Sequence[Op], read: Read, log: FinalLog | None) -> Iterator[_Wrong]:
    """Yield offsets below the read's high watermark that it does not show, and the leader's log holds."""
    if log is None:
        return
    shown = {offset for offset, _ in read.records or ()}
    control = {offset for _, batch in log.batches if batch.control for offset, _, _ in batch.records}
    low = max(log.start, min(shown, default=log.start) if log.start > traits(ops).first_offset else 0)
    skipped = [
        offset
        for offset in sorted(log.records)
        if low <= offset < (read.high_watermark or 0) and offset not in shown and offset not in control
    ]
    skipped = [offset for offset in skipped if not may_be_gap(ops, offset)]
    if skipped:
        yield f"does not show, below its high watermark {read.high_watermark},", tuple(skipped), (log.index,)


def _short(ops: Sequence[Op], read: Read, log: FinalLog | None, since: int) -> Iterator[_Wrong]:
    """
    Yield acknowledged records at or above the read's high watermark that the log holds.

    A new leader's high watermark is lawfully below the old one's until its followers have fetched, so only records
    count that were acknowledged in the epoch in which the read began. Where the metadata are polled, that is not
    known: an election may lie between two looks.
    """
    if is_polled(ops):
        return
    epochs = [(op.index, state.epoch) for op, state in events_of(ops, MetadataState) if op.index < since]
    begun = next((index for index, epoch in epochs if epoch == epochs[-1][1]), since)
    short = [
        acked
        for acked in acked_records(ops)
        if acked.by_all
        and begun < acked.index < since
        and acked.offset >= (read.high_watermark or 0)
        and log is not None
        and (held := log.records.get(acked.offset)) is not None
        and held.value == acked.value
    ]
    if short:
        text = f"ends at its high watermark {read.high_watermark}, below what was acknowledged with acks=all:"
        yield text, tuple(acked.offset for acked in short), tuple(acked.index for acked in short)


def _changed(ops: Sequence[Op], read: Read, logs: dict[str, FinalLog], log: FinalLog | None) -> Iterator[_Wrong]:
    """Yield what the read shows and the leader's log does not hold there; `lost` has acknowledged records."""
    if log is None:
        return
    lost = {(acked.offset, acked.value) for acked in acked_records(ops)}
    gone: list[int] = []
    never: list[int] = []
    for offset, value in read.records or ():
        if offset < log.start:
            continue
        held = log.records.get(offset)
        if (held is None or held.value != value) and (offset, value) not in lost:
            anywhere = any((there := each.records.get(offset)) and there.value == value for each in logs.values())
            (gone if anywhere else never).append(offset)
    if gone:
        yield f"shows what {log.node}, the leader, does not hold at the end at", tuple(gone), (log.index,)
    if never:
        yield "shows what no log holds at", tuple(never), (log.index,)


def _other_reads(ops: Sequence[Op], op: Op, read: Read, shown: Sequence[tuple[Op, Read]]) -> Iterator[_Wrong]:
    """Yield what an earlier read showed otherwise below both high watermarks; `lost` has acknowledged records."""
    told = {(acked.offset, acked.value) for acked in acked_records(ops)}
    mine = dict(read.records or ())
    for other, earlier in shown:
        if other.index >= op.index:
            continue
        before = [(offset, value) for offset, value in earlier.records or () if (offset, value) not in told]
        unlike = [offset for offset, value in before if mine.get(offset, value) != value]
        low, high = min(mine, default=0), read.high_watermark or 0
        gone = [offset for offset, _ in before if offset not in mine and low <= offset < high]
        if unlike or gone:
            text = f"shows otherwise than {other.process}'s read at {at(other)} did, at"
            yield text, tuple(unlike + gone), (other.index,)
