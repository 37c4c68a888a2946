"""What consumers were answered: every poll that came back, and the first that showed each record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from checkers.facts.anew import appended_anew
from checkers.facts.fact import fact
from checkers.facts.places import places_of
from checkers.facts.sent import sent_values
from checkers.facts.view import at, leaders_log, setup_of
from harness.events import Poll, Read
from harness.model import Op, OpType, events_of

# An offset and the value that a consumer was shown there, as in the poll's event.
Shown: TypeAlias = tuple[int, str]


class Polled(NamedTuple):
    """A poll that was answered, and the op that asked for it."""

    invoked: Op
    ok: Op
    event: Poll

    @property
    def records(self) -> tuple[Shown, ...]:
        """The records that came."""
        return self.event.records or ()

    @property
    def high_watermark(self) -> int:
        """The high watermark in the answer."""
        return self.event.high_watermark or 0

    @property
    def said(self) -> str:
        """Who asked whom, if that is told, and when: `client-5's poll of A at 1.234 s`."""
        whom = f" of {self.event.node}" if self.event.node else ""
        return f"{self.ok.process}'s poll{whom} at {at(self.ok)}"


@fact
def polls(ops: Sequence[Op]) -> list[Polled]:
    """Return every poll that was answered, in the order of the answers."""
    asked: dict[str, Op] = {}
    found: list[Polled] = []
    for op, event in events_of(ops, Poll):
        if op.type is OpType.INVOKE:
            asked[op.process] = op
        elif (
            op.type is OpType.OK and event.high_watermark is not None
        ):  # else `whole` names it, or it proves nothing
            found.append(Polled(asked.get(op.process, op), op, event))
    return found


@fact
def first_polls(ops: Sequence[Op]) -> Mapping[Shown, Polled]:
    """Return each record that a poll showed, with the first poll that did; records are shared with the events."""
    found: dict[Shown, Polled] = {}
    for polled in polls(ops):
        for record in polled.records:
            found.setdefault(record, polled)
    return found


@fact
def polled_places(ops: Sequence[Op]) -> Mapping[str, frozenset[int]]:
    """Return the offsets at which polls showed each value."""
    one: dict[str, int] = {}
    many: dict[str, set[int]] = {}
    for offset, value in first_polls(ops):
        if one.setdefault(value, offset) != offset:
            many.setdefault(value, {one[value]}).add(offset)
    return {value: frozenset(many.get(value, (offset,))) for value, offset in one.items()}


@fact
def twice_polled(ops: Sequence[Op]) -> Mapping[str, frozenset[int]]:
    """
    Return the values that polls and final logs together show at more offsets than they were sent to.

    What final logs alone show so is left to `contents`; a client that sends again makes such copies lawfully,
    unless it is idempotent, and the brokers must know its batch again: not once they have lost it.
    """
    setup, sent, places = setup_of(ops), sent_values(ops), places_of(ops)
    found: dict[str, frozenset[int]] = {}
    once = setup is not None and setup.sends_once
    for value, seen in polled_places(ops).items() if setup is not None and (once or setup.idempotent) else ():
        known, held = sent.get(value), {place.offset for place in places.get(value, ())}
        if known is None or not (once or known.numbered) or not known.appends_max:
            continue
        if not len(held) <= known.appends_max < len(seen | held):
            continue
        if once or len(seen - held) > 1 or not _anew(ops, value, *(seen - held)):
            found[value] = seen | held
    return found


def _anew(ops: Sequence[Op], value: str, offset: int) -> bool:
    """Return True if a record that polls showed at an offset was lost before final logs got it elsewhere."""
    polled = first_polls(ops)[offset, value]
    return appended_anew(ops, offset, polled.event.node, polled.ok.index, places_of(ops)[value])


@fact
def shown_by_reads(ops: Sequence[Op]) -> Mapping[Shown, Op]:
    """Return each record that a final read showed, with the first read that did."""
    found: dict[Shown, Op] = {}
    for op, read in events_of(ops, Read):
        for record in (read.records or ()) if op.type is OpType.OK else ():
            found.setdefault(record, op)
    return found


@fact
def gone(ops: Sequence[Op]) -> Mapping[Shown, Polled]:
    """Return what polls showed and the last leader's final log does not hold at its offset."""
    log = leaders_log(ops)
    if log is None:
        return {}
    held = {(offset, record.value) for offset, record in log.records.items()} if polls(ops) else frozenset[Shown]()
    return {
        shown: polled
        for shown, polled in first_polls(ops).items()
        if shown not in held and shown[0] >= log.start  # retention or DeleteRecords removed what is below
    }


def values_at(shown: Iterable[Shown]) -> dict[int, list[str]]:
    """Return the values of each offset that was shown with more than one."""
    one: dict[int, str] = {}
    many: dict[int, list[str]] = {}
    for offset, value in shown:
        if one.setdefault(offset, value) != value:
            values = many.setdefault(offset, [one[offset]])
            if value not in values:
                values.append(value)
    return many
