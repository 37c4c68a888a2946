"""
Turn a history's ops into rows of the tables, one op after another, in memory that does not grow with the history.

What depends on the order of ops is decided here, once, and stored with the row: the highest offset acknowledged
before a produce, a batch that does not continue its log. Queries then need no order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, TypeAlias

from harness.events import WITH_EPOCHS, Batch, Produce, Read, Snapshot
from harness.kafka_errors import ACKS_ALL
from harness.model import HistoryError, Op, OpType, Source
from harness.tables.places import SHIFT
from harness.tables.schema import SCHEMAS

Key: TypeAlias = tuple[str, int]
Row: TypeAlias = tuple[Any, ...]

_INT64_MAX: Final = 2**63 - 1
_DIGITS: Final = "0123456789"
# Beginnings of values that are remembered; values that begin in more ways may not be unique.
_BEGINNINGS_MAX: Final = 10_000


class _IrregularError(Exception):
    """An op of a client or a log that does not fit the tables."""


@dataclass(slots=True)
class _Log:
    """One replica's log, as far as it was read after its snapshot."""

    log: int
    next: int
    number: int = 0
    before: int | None = None
    stretch: int = 0
    newest: int = -1
    like: tuple[int, int, str] | None = None


@dataclass(slots=True)
class _Part:
    """What is remembered of one partition: the highest offsets that were acknowledged, and each replica's log."""

    id: int
    acked: int = -1
    promised: int = -1
    by_process: dict[str, tuple[int, int]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    logs: dict[str, _Log] = field(default_factory=dict)


class Rows:
    """
    The rows of the ops so far.

    Attributes:
        rows: the rows of each table that were not taken yet, as tuples of its columns but the DERIVED.
        irregular: `topic-partition` -> why an op of that partition does not fit.
        parts: the topic and partition of all ops that are about one.
        logs: the partition's place in parts, the replica and the snapshot's index of each log.
        reach: how many places after its own the records of a batch that is not odd lie at most.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        self.irregular: dict[str, str] = {}
        self.parts: list[Key] = []
        self.logs: list[tuple[int, str, int]] = []
        self.reach = 0
        self._parts: dict[Key, _Part] = {}
        self._waiting: dict[tuple[Any, ...], tuple[Op, Produce, int, bool]] = {}

    def add(self, op: Op) -> None:
        """Add the rows of the next op."""
        bulk = _BULK.get((op.source, op.f))
        if bulk is None:
            self._event(op)
            return
        try:
            event = op.event
            if op.type not in event.TYPES:
                raise _IrregularError(f"has type {op.type.value}")
            bulk(self, op, event)
        except (HistoryError, _IrregularError) as error:
            self._misfit(op, str(error))

    def end(self) -> None:
        """Add what was invoked and never completed, as events."""
        for op, *_ in self._waiting.values():
            self._event(op)
        self._waiting.clear()

    # --- one kind of op after another -------------------------------------------------------------------------
    def _event(self, op: Op) -> None:
        place = op.place
        about = None if op.source is Source.RUNNER or op.source is Source.NEMESIS else place
        part = None if about is None else self._part(about)
        floor = part.promised if part is not None and (op.source, op.f) in _FLOORED else None
        value = json.dumps(dict(op.value), separators=(",", ":"))
        row = (op.index, op.time_ns, op.source.value, op.process, op.type.value, op.f)
        self.rows["events"].append((*row, *(place or (None, None)), part.id if part else None, floor, value))

    def _misfit(self, op: Op, why: str) -> None:
        topic, partition = op.place or ("", -1)
        self.irregular.setdefault(f"{topic}-{partition}", f"op {op.index}: {op.source} {op.f!r} {why}")
        self._event(op)

    def _part(self, place: Key) -> _Part:
        found = self._parts.get(place)
        if found is None:
            found = self._parts[place] = _Part(len(self.parts))
            self.parts.append(place)
        return found

    def _produce(self, op: Op, sent: Produce) -> None:
        part = self._part((sent.topic, sent.partition))
        key = (op.process, *sent.asked)
        if op.type is OpType.INVOKE:
            if key in self._waiting:
                raise _IrregularError("was invoked before")
            if sent.offset is not None or sent.error:
                raise _IrregularError("is an invoke with an outcome")
            _digest(sent.digest)
            self._waiting[key] = (op, sent, part.acked, _rises(part, sent.value))
            return
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            raise _IrregularError("ended without an invoke")
        invoke, asked, floor, rising = waiting
        try:
            behind = _outcome(part, invoke, op, sent)
        except _IrregularError:
            self._event(invoke)
            raise
        self.rows["produces"].append(
            (
                *(sent.topic, sent.partition, part.id, op.process, sent.name, sent.acks, sent.codec, sent.value),
                _digest(asked.digest) if asked.digest else None,
                *(invoke.index, invoke.time_ns, op.index, op.time_ns, op.type.value, sent.offset, sent.error),
                *(floor, behind, rising),
            )
        )

    def _read(self, op: Op, read: Read) -> None:
        if op.type is not OpType.OK or read.records is None:
            self._event(op)
            return
        here = (read.topic, read.partition, self._part((read.topic, read.partition)).id)
        rows = [(*here, op.index, rank, offset, value) for rank, (offset, value) in enumerate(read.records)]
        offsets = [offset for offset, _ in read.records]
        if any(later <= earlier for earlier, later in pairwise(offsets)):
            raise _IrregularError("goes back")
        if offsets and not 0 <= offsets[0] <= offsets[-1] < min(read.high_watermark or 0, _INT64_MAX):
            raise _IrregularError("shows what is not below its high watermark")
        self.rows["reads"] += rows
        self._event(replace(op, value={**op.value, "records": []}))

    def _snapshot(self, op: Op, event: Any) -> None:
        if isinstance(event, Snapshot):
            part = self._part((event.topic, event.partition))
            part.logs[op.process] = _Log(log=len(self.logs), next=event.log_start_offset)
            self.logs.append((part.id, op.process, op.index))
        self._event(op)

    def _batch(self, op: Op, batch: Batch) -> None:
        part = self._part((batch.topic, batch.partition))
        log = part.logs.get(op.process)
        if log is None:
            raise _IrregularError("comes before its snapshot")
        if max(abs(batch.base), abs(batch.last), abs(batch.crc), abs(batch.epoch)) >= _INT64_MAX:
            raise _IrregularError("has a number beyond 64 bits")
        if batch.base < 0 or any(not batch.base <= offset <= batch.last for offset, _, _ in batch.records):
            raise _IrregularError("holds a record outside of the offsets that it claims")
        where = (batch.topic, batch.partition, part.id, op.process, log.log)
        records = [
            (*where, op.index, offset, _digest(digest), _text(value)) for offset, digest, value in batch.records
        ]
        odd = _is_odd(batch, log)
        if not odd:
            self.reach = max(self.reach, (batch.last >> SHIFT) - (batch.base >> SHIFT))
        like = (batch.epoch, batch.magic, batch.codec)
        log.stretch += batch.base < log.next or like != log.like
        self.rows["records"] += records
        self.rows["batches"].append(
            (
                *(*where, log.number, log.stretch, op.index, op.time_ns),
                *(batch.base, log.before, batch.last, batch.epoch, batch.magic, batch.crc, batch.codec),
                *(batch.position, batch.segment, batch.control, batch.problem, odd),
            )
        )
        log.number, log.before = log.number + 1, batch.base
        log.next = max(log.next, batch.last + 1)
        log.newest, log.like = max(log.newest, batch.epoch), like


def _outcome(part: _Part, invoke: Op, op: Op, sent: Produce) -> int:
    """Take an outcome into account; return the highest offset that its process was told before, -1 for none."""
    ok = op.type is OpType.OK
    if sent.digest or (not ok and (sent.offset is not None or not sent.error)) or (ok and sent.error):
        raise _IrregularError("ended with keys that do not fit its type")
    if ok and (sent.offset is None or sent.offset < 0) and sent.acks != 0:
        raise _IrregularError("was acknowledged without an offset")
    last, highest = part.by_process.get(op.process, (-1, -1))
    if not ok:
        return highest
    if invoke.index < last:
        raise _IrregularError("was acknowledged after what its process sent later")
    offset = -1 if sent.offset is None else sent.offset
    if offset >= _INT64_MAX:
        raise _IrregularError("has an offset beyond 64 bits")
    part.by_process[op.process] = (invoke.index, max(highest, offset))
    part.acked = max(part.acked, offset)
    if sent.acks == ACKS_ALL:
        part.promised = max(part.promised, offset)
    return highest


def _rises(part: _Part, value: str) -> bool:
    """Return True if no value before can be the same: they begin otherwise, or end with a lower number."""
    beginning = value.rstrip(_DIGITS)
    digits = value[len(beginning) :]
    number = int(digits) if 0 < len(digits) < 19 else -1
    last = part.numbers.get(beginning, -1)
    if number <= last or (last < 0 and len(part.numbers) >= _BEGINNINGS_MAX):
        return False
    part.numbers[beginning] = number
    return True


def _is_odd(batch: Batch, log: _Log) -> bool:
    """Return True if a rule may have something to say of the batch, or of the step from the one before."""
    first = batch.segment_start
    offsets = [offset for offset, _, _ in batch.records]
    return (
        batch.base != log.next
        or offsets != list(range(batch.base, batch.base + len(offsets)))
        or batch.last != batch.base + len(offsets) - 1
        or (0 <= batch.epoch < log.newest and (log.like is None or batch.epoch != log.like[0]))
        or (batch.magic < WITH_EPOCHS and batch.epoch >= 0)
        or (first is not None and batch.base < first)
        or bool(batch.problem)
        or batch.control is not None
    )


def _digest(text: str) -> int:
    """Return a digest's 64 bits as a signed number."""
    if text and len(text) == 16 and not text.strip("0123456789abcdef"):
        return int.from_bytes(bytes.fromhex(text), "big", signed=True)
    if text:
        raise _IrregularError(f"has digest {text!r:.40}; expected 16 hexadecimal digits")
    return 0


def digest_text(digest: int) -> str:
    """Return a digest as a history has it."""
    return digest.to_bytes(8, "big", signed=True).hex()


def _text(value: str | None) -> str:
    if value is None:
        raise _IrregularError("has a record without a value")
    return value


_BULK: Final[dict[tuple[Source, str], Any]] = {
    (Source.CLIENT, "produce"): Rows._produce,
    (Source.CLIENT, "read"): Rows._read,
    (Source.LOG, "snapshot"): Rows._snapshot,
    (Source.LOG, "batch"): Rows._batch,
}
# Ops that show where a log ends, or where a client may read to.
_FLOORED: Final = frozenset({(Source.FABRIC, "fetch"), (Source.CLIENT, "read")})
