"""The live check of one partition: acknowledgements and reads against what is known to be committed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from checkers.facts.view import at, offsets_text
from checkers.live.electable import Electable, Gone
from checkers.live.high_watermarks import Fall, ToldToClients
from checkers.live.known import KnownRecords
from checkers.live.rules import ANOTHER, BACK, GONE, HIGH_WATERMARK, TWICE
from harness.events import Produce, Read, ScheduleStopped
from harness.model import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """
    The beginning of a client's call.

    Attributes:
        index: the index of its invoke.
        acked: the op that acknowledged the highest offset with acks=all until then; -1 for none.
        end: the offset after that one.
    """

    index: int
    acked: int = -1
    end: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionWatch:
    """
    What is remembered of one partition; it does not grow with the number of records (`KnownRecords`).

    Attributes:
        place: its topic and number.
        changed: the index of the last op after which a high watermark may lawfully be lower: an election, a fault.
    """

    place: tuple[str, int]
    changed: int = -1
    known: KnownRecords
    electable: Electable = field(default_factory=Electable)
    _told: ToldToClients = field(default_factory=ToldToClients)
    _acked: int = -1
    _end: int = 0
    _members: frozenset[str] = frozenset()

    def asked(self, op: Op) -> Asked:
        """Return the beginning of a call."""
        return Asked(index=op.index, acked=self._acked, end=self._end)

    def acknowledged(self, op: Op, sent: Produce, asked: Asked, *, since: int) -> ScheduleStopped | None:
        """
        Follow an acknowledgement with acks=all.

        Args:
            op: the acknowledgement.
            sent: its event.
            asked: its beginning.
            since: the index of the last op that may have ended copies: what was asked for before is not promised.
        """
        offset = -1 if sent.offset is None else sent.offset
        if offset < 0:
            return None
        if asked.index > self.changed and (self._acked <= self.changed or offset >= self._end):
            self._acked, self._end = op.index, offset + 1
        if asked.index < since:
            return None
        before = self.known.learn(offset, sent.value, op.index, acked=True)
        if before is None:
            return None
        said = f"{sent.value} was acknowledged with acks=all at {_of(offset)} at {at(op)}"
        if before.acked:
            text = (
                f"{said}; another record was acknowledged so there before (op {before.op}), and nothing excuses it"
            )
        else:
            text = f"{said}; a read showed another record there before (op {before.op})"
        rule = TWICE if before.acked else ANOTHER
        return self._seen(rule, text, ((offset, offset + 1),), before.op, op.index)

    def read(self, op: Op, read: Read, asked: Asked, *, since: int | None) -> ScheduleStopped | None:
        """Follow a read that succeeded; `since` as above, None if nothing that it shows is promised."""
        return next(self._wrong(op, read, asked, since), None) or self.told(op, read, asked)

    def told(self, op: Op, read: Read, asked: Asked) -> ScheduleStopped | None:
        """Follow the high watermark that a read was told."""
        if read.high_watermark is None:
            return None
        fall = self._told.step(op, read.high_watermark, asked.index, self.changed)
        if fall is None:
            return None
        text = f"{op.process} was told high watermark {fall.now} at {at(op)}; a read before it (op {fall.op}) was "
        return self.fell(fall, f"{text}told {fall.before}, and nothing may have lowered it since", op)

    def fell(self, fall: Fall, text: str, op: Op) -> ScheduleStopped:
        """Return a high watermark that fell."""
        return self._seen(HIGH_WATERMARK, text, ((fall.now, fall.before),), fall.op, op.index)

    def gone(self, gone: Gone, op: Op) -> ScheduleStopped:
        """Return committed records that a member of the ISR lost or lacks."""
        how = "joined the ISR without" if gone.joined else "is in the ISR and truncated"
        text = f"{gone.node} {how} {offsets_text([(gone.first, gone.end)])} at {at(op)}, which a leader's high "
        text += f"watermark had passed (op {gone.proof[0]})"
        return self._seen(GONE, text, ((gone.first, gone.end),), *gone.proof)

    def forget(self) -> None:
        """Hold nothing that was promised so far against anybody: a fault may have ended any of it."""
        self.known.forget()
        self.electable.forget()

    def joined(self, members: Collection[str]) -> bool:
        """Follow who is in a group of which a majority has what is committed; return True if that changed."""
        before, self._members = self._members, frozenset(members)
        return bool(before) and before != self._members

    def _wrong(self, op: Op, read: Read, asked: Asked, since: int | None) -> Iterator[ScheduleStopped]:
        records, high = read.records or (), read.high_watermark or 0
        said = f"{op.process}'s read at {at(op)}"
        back = next((later for (one, _), (later, _) in pairwise(records) if later <= one), None)
        if back is not None:
            yield self._seen(BACK, f"{said} goes back to {_of(back)}", ((back, back + 1),), op.index)
            return  # what follows needs offsets that rise
        if records and records[-1][0] >= high:
            above = records[-1][0]
            text = f"{said} shows {_of(above)}, not below its high watermark {high}"
            yield self._seen(BACK, text, ((above, above + 1),), op.index)
        if asked.acked > self.changed and high < asked.end:
            text = f"{said} ends at its high watermark {high}, below {_of(asked.end - 1)}, which was acknowledged "
            text += f"with acks=all before it began (op {asked.acked})"
            yield self._seen(BACK, text, ((high, asked.end),), asked.acked, op.index)
        if since is None or asked.index < since:
            return
        if unlike := self.known.compare(records):
            word = "read or acknowledged" if unlike.acked is None else "acknowledged" if unlike.acked else "read"
            text = f"{said} shows, at {offsets_text([unlike[:2]])}, otherwise than was {word} before"
            yield self._seen(ANOTHER, f"{text} (op {unlike.op})", (unlike[:2],), unlike.op, op.index)
        if lacks := self.known.skipped(records, high):
            offset, known = lacks
            text = f"{said} skips {_of(offset)}, which was {'acknowledged' if known.acked else 'read'} before"
            yield self._seen(BACK, f"{text} (op {known.op})", ((offset, offset + 1),), known.op, op.index)
        for offset, value in records:
            self.known.learn(offset, value, op.index, acked=False)

    def _seen(self, rule: str, text: str, offsets: tuple[tuple[int, int], ...], *proof: int) -> ScheduleStopped:
        return ScheduleStopped(
            rule=rule,
            topic=self.place[0],
            partition=self.place[1],
            offsets=offsets,
            sentence=f"{text[0].upper()}{text[1:]}.",
            proof=tuple(sorted({index for index in proof if index >= 0})),
        )


def _of(offset: int) -> str:
    return f"offset {offset}"
