"""
Turn a history's ops into rows of the tables, one op after another, in memory that does not grow with the history.

What depends on the order of ops is decided here, once, and stored with the row: the highest offset acknowledged
before a produce, a batch that does not continue its log. Queries then need no order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from struct import unpack
from typing import Any, Final, TypeAlias

from harness.events import WITH_EPOCHS, Batch, Produce, Read, Snapshot
from harness.model import HistoryError, Op, OpType, Source
from harness.tables.parts import INT32_MAX, INT64_MAX, End, IrregularError, Log, PartSoFar
from harness.tables.places import SHIFT
from harness.tables.schema import ROWS, SCHEMAS

Key: TypeAlias = tuple[str, int]
# Offset and value.
Shown: TypeAlias = tuple[int, str]
Row: TypeAlias = tuple[Any, ...]
# Index and time.
At: TypeAlias = tuple[int, int]
# What an invoke and its completion have in common: process, topic, partition, name, acks, codec, value.
Asked: TypeAlias = tuple[str, str, int, str, int, str, str]

_HEXADECIMAL: Final = "0123456789abcdef"
BATCH_VALUES: Final = (
    *("topic", "partition", "base", "last", "epoch", "magic", "crc", "codec", "position", "segment", "records"),
    *("problem", "control"),
)
_OF_BATCH: Final = attrgetter(*BATCH_VALUES)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """
    What many ops have in common.

    Attributes:
        is_of_part: it is about the partition that it names, if it names one.
        is_floored: it shows where a log ends, or where a client may read to.
    """

    source: str
    process: str
    type: str
    f: str
    is_of_part: bool
    is_floored: bool

    @staticmethod
    def of(source: Source, process: str, type_: OpType, f: str) -> About:
        """Return what is common to the ops of this sort of this process."""
        return About(
            source=source.value,
            process=process,
            type=type_.value,
            f=f,
            is_of_part=source is not Source.RUNNER and source is not Source.NEMESIS,
            is_floored=(source, f) in _FLOORED,
        )


@dataclass(slots=True)
class _Sent:
    """The invoke of a produce that has not ended; `op` returns it."""

    at: At
    digest: int | None
    floor: int
    rising: bool
    op: Callable[[], Op]


class Rows:
    """
    The rows of the ops so far.

    Attributes:
        rows: the rows of each table that were not taken yet, as tuples of its columns but the DERIVED.
        irregular: `topic-partition` -> why an op of that partition does not fit.
        parts: the topic and partition of all ops that are about one.
        logs: the partition's place in parts, the replica and the snapshot's index of each log.
        reach: how many places after its own the records of a batch that is not odd lie at most.
        on_rows: called when one op has added many rows and adds more; it may take some.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        self.irregular: dict[str, str] = {}
        self.parts: list[Key] = []
        self.logs: list[tuple[int, str, int]] = []
        self.reach = 0
        self.on_rows: Callable[[], None] = lambda: None
        self._parts: dict[Key, PartSoFar] = {}
        self._waiting: dict[Asked, _Sent] = {}

    def add(self, op: Op) -> None:
        """Add the rows of the next op."""
        bulk = _BULK.get((op.source, op.f))
        if bulk is None:
            self._event(op)
            return
        try:
            event = op.event
            if op.type not in event.TYPES:
                raise IrregularError(f"has type {op.type.value}")
            bulk(self, op, event)
        except (HistoryError, IrregularError) as error:
            self.misfit(op, str(error))

    def end(self) -> None:
        """Add what was invoked and never completed, as events."""
        for sent in self._waiting.values():
            self._event(sent.op())
        self._waiting.clear()

    # --- from values that have the types of the event's fields ------------------------------------------------
    def event(self, about: About, at: At, place: Key | None, value: str) -> None:
        """Add an event; value is its JSON."""
        part = self._part(place) if place is not None and about.is_of_part else None
        self.rows["events"].append(
            (
                *(*at, about.source, about.process, about.type, about.f),
                *(place or (None, None)),
                part.id if part is not None else None,
                part.promised if part is not None and about.is_floored else None,
                value,
            )
        )

    def misfit(self, op: Op, why: str) -> None:
        """Add an op that does not fit as an event, and note that its partition is irregular."""
        topic, partition = op.place or ("", -1)
        self.irregular.setdefault(f"{topic}-{partition}", f"op {op.index}: {op.source} {op.f!r} {why}")
        self._event(op)

    def invoked(self, asked: Asked, at: At, digest: str, op: Callable[[], Op]) -> None:
        """Keep the invoke of a produce until it ends; raise IrregularError if it was invoked before."""
        if asked in self._waiting:
            raise IrregularError("was invoked before")
        if abs(asked[4]) >= INT64_MAX:
            raise IrregularError("has acks beyond 64 bits")
        said = digest_of(digest) if digest else None
        part = self._part(asked[1:3])
        self._waiting[asked] = _Sent(at, said, part.acked, part.rises(asked[6]), op)

    def ended(self, asked: Asked, at: At, end: End, digest: str = "") -> None:
        """Add a produce that ended; raise IrregularError if it was not invoked, or cannot have ended like this."""
        sent = self._waiting.pop(asked, None)
        if sent is None:
            raise IrregularError("ended without an invoke")
        process, topic, partition, name, acks, codec, value = asked
        part = self._part((topic, partition))
        try:
            if digest:
                raise IrregularError("ended with the digest of an invoke")
            behind = part.end(sent.at[0], process, acks, end)
        except IrregularError:
            self._event(sent.op())
            raise
        self.rows["produces"].append(
            (
                *(topic, partition, part.id, process, name, acks, codec, value, sent.digest),
                *(*sent.at, *at, *end, sent.floor, behind, sent.rising),
            )
        )

    def read(
        self, about: About, at: At, place: Key, records: Callable[[], Iterable[Shown]], *, end: int, value: str
    ) -> None:
        """
        Add a read and what it showed; raise IrregularError if it goes back, or shows what is not below its end.

        Args:
            records: returns the value's offsets and values; called twice, because there may be very many.
            value: JSON without the records.
        """
        last = -1
        for offset, _ in records():
            if offset <= last:
                raise IrregularError("goes back" if last >= 0 else "shows what is below offset 0")
            last = offset
        if last >= min(end, INT64_MAX):
            raise IrregularError("shows what is not below its high watermark")
        where, rows = (*place, self._part(place).id, at[0]), self.rows["reads"]
        for rank, (offset, text) in enumerate(records()):
            rows.append((*where, rank, offset, text))
            if len(rows) >= ROWS:
                self.on_rows()
                rows = self.rows["reads"]
        self.event(about, at, place, value)

    def batch(self, replica: str, at: At, batch: Sequence[Any]) -> None:
        """
        Add a batch and its records; raise IrregularError if it does not fit.

        Args:
            batch: the values of BATCH_VALUES.
        """
        topic, partition, base, last, epoch, magic, crc, codec, position, segment, records, problem, control = (
            batch
        )
        part = self._part((topic, partition))
        log = part.logs.get(replica)
        if log is None:
            raise IrregularError("comes before its snapshot")
        if max(abs(base), abs(last), abs(crc), abs(epoch), abs(magic), abs(position)) >= INT64_MAX:
            raise IrregularError("has a number beyond 64 bits")
        offsets, digests, values = zip(*records, strict=True) if records else ((), (), ())
        if base < 0 or (offsets and not base <= min(offsets) <= max(offsets) <= last):
            raise IrregularError("holds a record outside of the offsets that it claims")
        numbers = _digests(digests)
        if None in values:
            raise IrregularError("has a record without a value")
        odd = (
            base != log.next
            or last != base + len(offsets) - 1
            or offsets != tuple(range(base, base + len(offsets)))
            or (0 <= epoch < log.newest and (log.like is None or epoch != log.like[0]))
            or (magic < WITH_EPOCHS and epoch >= 0)
            or base < _segment_start(segment)
            or bool(problem)
            or control is not None
        )
        if not odd:
            self.reach = max(self.reach, (last >> SHIFT) - (base >> SHIFT))
        like = (epoch, magic, codec)
        log.stretch += base < log.next or like != log.like
        where = (topic, partition, part.id, replica, log.log)
        self.rows["records"] += [
            (*where, at[0], offset, digest, value)
            for offset, digest, value in zip(offsets, numbers, values, strict=True)
        ]
        self.rows["batches"].append(
            (
                *(*where, log.number, log.stretch, *at, base, log.before, last, epoch, magic, crc),
                *(codec, position, segment, control, problem, odd),
            )
        )
        log.number, log.before = log.number + 1, base
        log.next = max(log.next, last + 1)
        log.newest, log.like = max(log.newest, epoch), like

    # --- from ops, one kind after another ---------------------------------------------------------------------
    def _event(self, op: Op) -> None:
        about = About.of(op.source, op.process, op.type, op.f)
        self.event(about, (op.index, op.time_ns), op.place, _json(dict(op.value)))

    def _part(self, place: Key) -> PartSoFar:
        found = self._parts.get(place)
        if found is None:
            if not -1 <= place[1] <= INT32_MAX:
                raise IrregularError(f"has partition {place[1]}; expected 32 bits")
            found = self._parts[place] = PartSoFar(len(self.parts))
            self.parts.append(place)
        return found

    def _produce(self, op: Op, sent: Produce) -> None:
        asked, at = (op.process, *sent.asked), (op.index, op.time_ns)
        if op.type is not OpType.INVOKE:
            self.ended(asked, at, (op.type.value, sent.offset, sent.error), sent.digest)
        elif sent.offset is not None or sent.error:
            raise IrregularError("is an invoke with an outcome")
        else:
            self.invoked(asked, at, sent.digest, lambda: op)

    def _read(self, op: Op, read: Read) -> None:
        records = read.records
        if op.type is not OpType.OK or records is None:
            self._event(op)
            return
        about, at = About.of(op.source, op.process, op.type, op.f), (op.index, op.time_ns)
        value = _json({**op.value, "records": []})
        place, end = (read.topic, read.partition), read.high_watermark or 0
        self.read(about, at, place, lambda: records, end=end, value=value)

    def _snapshot(self, op: Op, event: Any) -> None:
        if isinstance(event, Snapshot):
            part = self._part((event.topic, event.partition))
            part.logs[op.process] = Log(log=len(self.logs), next=event.log_start_offset)
            self.logs.append((part.id, op.process, op.index))
        self._event(op)

    def _batch(self, op: Op, batch: Batch) -> None:
        if batch.store:  # few have a second store, whose batches are judged beside the rows
            self._event(op)
            return
        self.batch(op.process, (op.index, op.time_ns), _OF_BATCH(batch))


@lru_cache(maxsize=1_000)
def _segment_start(segment: str) -> int:
    """Return the first offset of a segment, which is its file's name; -1 for another name."""
    name = segment.partition(".")[0]
    return int(name) if name.isdecimal() else -1


def _digests(texts: Sequence[str]) -> Sequence[int]:
    """Return the numbers of digests."""
    together = "".join(texts)
    if {*map(len, texts)} == {16} and not together.strip(_HEXADECIMAL):
        return unpack(f">{len(texts)}q", bytes.fromhex(together))
    return [digest_of(text) for text in texts]


def digest_of(text: str) -> int:
    """Return a digest's 64 bits as a signed number, 0 for none; raise IrregularError if it is no digest."""
    if not text:
        return 0
    if len(text) != 16 or text.strip(_HEXADECIMAL):
        raise IrregularError(f"has digest {text!r:.40}; expected 16 hexadecimal digits")
    return int.from_bytes(bytes.fromhex(text), "big", signed=True)


def digest_text(digest: int) -> str:
    """Return a digest as a history has it."""
    return digest.to_bytes(8, "big", signed=True).hex()


_BULK: Final[dict[tuple[Source, str], Any]] = {
    (Source.CLIENT, "produce"): Rows._produce,
    (Source.CLIENT, "read"): Rows._read,
    (Source.LOG, "snapshot"): Rows._snapshot,
    (Source.LOG, "batch"): Rows._batch,
}
_FLOORED: Final = frozenset({(Source.FABRIC, "fetch"), (Source.CLIENT, "read")})
_json: Final = json.JSONEncoder(separators=(",", ":")).encode
