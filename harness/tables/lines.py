"""
Add the lines of a history to its rows, most of them without an Op in between.

A line of a common kind, written as `History` writes it, is read by a short way, which is four times as fast: what
it accepts gives the rows of its Op, and it leaves every other line to the Op. A test compares the two ways.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, TypeAlias

from harness.events import OpType, Source
from harness.events.codec import place_in
from harness.events.older import Renamed, renamed
from harness.history.file import NOTHING_YET, op_in
from harness.history.sequence import Breaks
from harness.model import Op
from harness.tables.parts import IrregularError
from harness.tables.rows import BATCH_VALUES, About, At, Rows, Shown

# A whole line whose names need no escape; none of its numbers is larger than 64 bits.
_NUMBER: Final = r"(0|[1-9][0-9]{0,17})"
_NAME: Final = r'"[ !#-\[\]-~]*"'
_LINE: Final = re.compile(
    rf'\{{"index":{_NUMBER},"time_ns":{_NUMBER},'
    rf'("source":{_NAME},"process":{_NAME},"type":{_NAME},"f":{_NAME}),"value":(\{{.*\}})\}}'
)
# One record that a read showed, and what follows it.
_RECORD: Final = re.compile(r'\[(0|[1-9][0-9]{0,17}),"([ !#-\[\]-~]*)"\]([,\]])')
_RECORDS: Final = '"records":['
# Beginnings of lines that are remembered; clients have ever new names.
_ABOUTS_MAX: Final = 10_000

_PRODUCE: Final = itemgetter("topic", "partition", "name", "acks", "codec", "value")
_PRODUCE_TYPES: Final = (str, int, str, int, str, str)
# Without what only odd batches have.
_BATCH_NAMES: Final = tuple(name for name in BATCH_VALUES if name not in ("problem", "control"))
_BATCH: Final = itemgetter(*_BATCH_NAMES)
_BATCH_TYPES: Final = (str, int, int, int, int, int, int, str, int, str, list)
_RECORD_TYPES: Final = frozenset({(int, str, str), (int, str, type(None))})
_ASKED_KEYS: Final = frozenset({"topic", "partition", "name", "acks", "codec", "value"})
_INVOKE_KEYS: Final = _ASKED_KEYS | {"digest"}
_OK_KEYS: Final = _ASKED_KEYS | {"offset"}
_BATCH_KEYS: Final = frozenset(_BATCH_NAMES)
_READ_KEYS: Final = frozenset({"topic", "partition", "records", "high_watermark"})

_log = logging.getLogger(__name__)

# Adds a line; returns False, before anything is added, if the line needs the long way.
_Add: TypeAlias = Callable[[Rows, About, At, str, str], bool]


class Lines:
    """
    Adds lines to rows.

    Args:
        path: the history, for warnings.
    """

    def __init__(self, rows: Rows, path: str) -> None:
        self.breaks = Breaks()
        self._rows = rows
        self._path = path
        self._number = 0
        self._refused = 0
        self._first = ""
        self._last = NOTHING_YET
        self._abouts: dict[str, tuple[About, _Add] | None] = {}

    def add(self, lines: bytes) -> None:
        """Add whole lines, each with its newline."""
        try:
            texts = lines.decode("ascii").split("\n")
        except UnicodeDecodeError:
            for line in lines.split(b"\n")[:-1]:
                self._add_op(line)
            return
        texts.pop()
        for text in texts:
            if not self._add_quickly(text):
                self._add_op(text.encode())

    def end(self, torn: int) -> None:
        """Add what never ended, and warn of lines that are no op, and of a torn last line of so many bytes."""
        if torn:
            _log.warning("%s: dropped the torn last line, %d bytes without an end", self._path, torn)
        if self._refused:  # one warning, however many there are: a file may be something else altogether
            _log.warning("%s; %d of %d lines are no op", self._first, self._refused, self._number)
        self._rows.end()

    def _add_op(self, line: bytes) -> None:
        self._number += 1
        op, error = op_in(line, self._number, self._last)
        if error:
            self._refused, self._first = self._refused + 1, self._first or f"{self._path}:{self._number}: {error}"
        self._last = op.index, op.time_ns
        self.breaks.add(op.index, op.time_ns)
        self._rows.add(op)

    def _add_quickly(self, line: str) -> bool:
        found = _LINE.fullmatch(line)
        if found is None:
            return False
        index_text, time_text, head, value = found.groups()
        try:
            kind = self._abouts[head]
        except KeyError:
            kind = self._abouts[head] = _kind_of(head)
            if len(self._abouts) > _ABOUTS_MAX:
                self._abouts.clear()
        if kind is None:
            return False
        about, add = kind
        at = int(index_text), int(time_text)
        try:
            if not add(self._rows, about, at, value, line):
                return False
        except IrregularError as error:
            self._rows.misfit(Op.from_json(line), str(error))
        self._number += 1
        self._last = at
        self.breaks.add(*at)
        return True


def _kind_of(head: str) -> tuple[About, _Add] | None:
    """Return what lines with this head have in common, and how they are added; None: by their op."""
    about = json.loads("{" + head + "}")
    try:
        source, type_ = Source(about["source"]), OpType(about["type"])
    except ValueError:
        return None
    f = about["f"]
    bulk = _BULK.get((source, f))
    add = _event if bulk is None else bulk.get(type_)
    if (older := renamed(source, f)) is not None:
        add = None if f in older.f else _unless_older(older)
    return None if add is None else (About.of(source, about["process"], type_, f), add)


# --- one kind of line after another ----------------------------------------------------------------------------
def _event(rows: Rows, about: About, at: At, value: str, _: str) -> bool:
    raw = _object(value)
    if raw is None:
        return False
    rows.event(about, at, place_in(raw), value)
    return True


def _unless_older(older: Renamed) -> _Add:
    """Return how events are added that may have old names: by their op, if they have."""

    def add(rows: Rows, about: About, at: At, value: str, line: str) -> bool:
        return not older.is_in(value) and _event(rows, about, at, value, line)

    return add


def _invoke(rows: Rows, about: About, at: At, value: str, line: str) -> bool:
    raw = _object(value)
    if raw is None or raw.keys() != _INVOKE_KEYS:
        return False
    asked, digest = _PRODUCE(raw), raw["digest"]
    if (*map(type, asked),) != _PRODUCE_TYPES or type(digest) is not str:
        return False
    rows.invoked((about.process, *asked), at, digest, lambda: Op.from_json(line))
    return True


def _acknowledged(rows: Rows, about: About, at: At, value: str, _: str) -> bool:
    raw = _object(value)
    if raw is None or raw.keys() != _OK_KEYS:
        return False
    asked, offset = _PRODUCE(raw), raw["offset"]
    if (*map(type, asked),) != _PRODUCE_TYPES or type(offset) is not int:
        return False
    rows.ended((about.process, *asked), at, (about.type, offset, ""))
    return True


def _batch(rows: Rows, about: About, at: At, value: str, _: str) -> bool:
    raw = _object(value)
    if raw is None or raw.keys() != _BATCH_KEYS:
        return False
    batch = _BATCH(raw)
    if (*map(type, batch),) != _BATCH_TYPES or not {*map(type, raw["records"])} <= {list}:
        return False
    if not {(*map(type, record),) for record in raw["records"]} <= _RECORD_TYPES:
        return False
    rows.batch(about.process, at, (*batch, "", None))
    return True


def _read(rows: Rows, about: About, at: At, value: str, _: str) -> bool:
    """Add a read with few of its records in memory: one line may have millions."""
    begin, end = value.find(_RECORDS) + len(_RECORDS), value.rfind("]]") + 2
    if not len(_RECORDS) <= begin < end:
        return False
    without = f"{value[:begin]}]{value[end:]}"
    raw = _object(without)
    if raw is None or raw.keys() != _READ_KEYS or raw["records"] != [] or _RECORDS in value[end:]:
        return False
    topic, partition, high_watermark = raw["topic"], raw["partition"], raw["high_watermark"]
    if type(topic) is not str or type(partition) is not int or type(high_watermark) is not int:
        return False
    place = (topic, partition)
    try:
        rows.read(about, at, place, lambda: _shown(value, begin, end), end=high_watermark, value=without)
    except _OtherwiseError:
        return False
    return True


class _OtherwiseError(Exception):
    """Records are not written as `History` writes them."""


def _shown(value: str, position: int, end: int) -> Iterator[Shown]:
    """Yield the records between two positions, the last with the bracket that ends the list."""
    while position < end:
        found = _RECORD.match(value, position)
        position = found.end() if found else end
        if found is None or (position == end) is not (found[3] == "]"):
            raise _OtherwiseError
        yield int(found[1]), found[2]


def _object(value: str) -> dict[str, Any] | None:
    """Return the JSON object, None if the text is not one and nothing else."""
    try:
        found, end = _decode(value)
    except (ValueError, RecursionError):
        return None
    return found if end == len(value) else None


_decode: Final = json.JSONDecoder().raw_decode
_BULK: Final[Mapping[tuple[Source, str], Mapping[OpType, _Add]]] = {
    (Source.CLIENT, "produce"): {OpType.INVOKE: _invoke, OpType.OK: _acknowledged},
    (Source.CLIENT, "read"): {OpType.OK: _read},
    (Source.LOG, "batch"): {OpType.OK: _batch},
    (Source.LOG, "snapshot"): {},
}
