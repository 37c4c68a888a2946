"""
A lane: one direction of a connection, where frames stop, wait, are lost or go on.

All of this lives in the fabric's one thread. A lane hands on frames in their order; one that a rule stops,
stops all behind it. The end of a connection is handed on after all that came before it, so that what a killed
node had sent still arrives.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from harness import events
from harness.fabric.frames import UNKNOWN, Part, Piece, Splitter, is_whole
from harness.fabric.limits import HELD_BYTES_MAX
from harness.fabric.rules import Cut, Delay, Direction, Hold, Link, Rules, Seen, seen_value
from harness.fabric.witness import Note, Record, Witness

if TYPE_CHECKING:
    from harness.fabric.proxy import Pipe, Side


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What all pipes share; pipes are in the order in which they came."""

    loop: asyncio.AbstractEventLoop
    record: Record
    rules: Rules
    witness: Witness
    pipes: dict[Pipe, None] = field(default_factory=dict)
    closing: bool = False

    def note_lost(self, cut: Cut, link: Link) -> None:
        """Record that a cut bit on a link, the first time that it does."""
        if link not in cut.bitten:
            cut.bitten.add(link)
            self.record(events.Lost(link=link))


class _Fate(Enum):
    """What becomes of the frame at the front."""

    PASS = auto()
    STOP = auto()
    LOSE = auto()


@dataclass(slots=True, kw_only=True)
class _Frame:
    """Bytes under way; seen is None where a head before them decides."""

    data: bytes
    came: float
    seen: Seen | None = None
    note: Note | None = None
    hold: Hold | None = None


class Lane:
    """From the side that sends, by the rules, to the side that receives."""

    source: Side
    dest: Side

    def __init__(self, pipe: Pipe, direction: Direction) -> None:
        self.ended = False
        self._pipe = pipe
        self._exchange = pipe.exchange
        self._direction = direction
        self._splitter = Splitter()
        self._queue: deque[_Frame] = deque()
        self._queued_bytes = 0
        self._stalled = False
        self._swallowing = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def done(self) -> bool:
        """Whether nothing more will be handed on."""
        return self.dest.lost or (self.ended and not self._queue)

    @property
    def stopped_by(self) -> Hold | None:
        """The hold that has this lane's first frame."""
        return self._queue[0].hold if self._queue else None

    def feed(self, data: bytes) -> None:
        """Take bytes that arrived; they are gone when nobody is there to receive them."""
        if self.dest.lost:
            return
        was_opaque = self._splitter.opaque
        self._enqueue(self._splitter.feed(data))
        if self._splitter.opaque and not was_opaque:
            self._pipe.turn_opaque(self._direction, self._splitter.bad_length)
        self.pump()

    def end(self) -> None:
        """Take the end of the sending side, after all that it sent."""
        if not self.ended:
            self.ended = True
            self.surrender()

    def surrender(self) -> None:
        """Hand on what waits for the rest of its frame, and take all that follows as it comes."""
        self._enqueue(self._splitter.surrender())
        self.pump()

    def stall(self, stalled: bool) -> None:
        """Say whether the receiving side takes no more for now."""
        self._stalled = stalled
        self._flow()

    def pump(self) -> None:
        """Hand on what may go, from the front; stop at the first frame that may not."""
        out: list[bytes] = []
        while self._queue and not self.dest.lost:
            frame = self._queue[0]
            fate = self._fate(frame)
            if fate is _Fate.STOP:
                break
            if fate is _Fate.LOSE and self._lose(frame):
                return
            self._queue.popleft()
            self._queued_bytes -= len(frame.data)
            if fate is _Fate.PASS and not self._swallows(frame):
                out += [frame.data] * self._times(frame)
                self._note(frame)
        if out:
            self.dest.write(b"".join(out) if len(out) > 1 else out[0])
        self._flow()
        if self.ended:
            self._pipe.settle()

    def forget(self, reason: str) -> None:
        """Drop what is queued, since it can no longer arrive; what was held is recorded as dropped."""
        for frame in self._queue:
            self._record_drop(frame, reason)
        self._queue.clear()
        self._queued_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.stall(False)

    def _enqueue(self, pieces: list[Piece]) -> None:
        came = self._exchange.loop.time()
        for part, data in pieces:
            frame = _Frame(data=data, came=came)
            if part is Part.HEAD:
                frame.seen, frame.note = self._pipe.read(self._direction, data)
            elif part is Part.OPAQUE:
                frame.seen = Seen(link=self._pipe.link, api=UNKNOWN, direction=self._direction)
            self._queue.append(frame)
            self._queued_bytes += len(data)

    def _fate(self, frame: _Frame) -> _Fate:
        """Judge the first frame by the rules that stand now."""
        rules = self._exchange.rules
        if rules.idle:
            return _Fate.PASS
        if rules.cut_of(self._pipe.link) is not None:
            return _Fate.LOSE
        if frame.seen is None:
            return _Fate.PASS
        hold = rules.hold_of(frame.seen)
        if hold is None:
            return self._delayed(frame, frame.seen, rules.delay_of(frame.seen))
        if frame.hold is not hold:
            frame.hold = hold
            # The history has it before anyone who waits for it goes on.
            self._exchange.record(events.Held(**seen_value(frame.seen)))
            hold.note_held(frame.seen)
        return _Fate.STOP

    def _delayed(self, frame: _Frame, seen: Seen, delay: Delay | None) -> _Fate:
        if delay is None or (due := frame.came + delay.seconds) <= self._exchange.loop.time():
            return _Fate.PASS
        if seen.link not in delay.bitten:
            delay.bitten.add(seen.link)
            self._exchange.record(events.Delayed(**seen_value(seen)))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._exchange.loop.call_at(due, self.pump)
        return _Fate.STOP

    def _lose(self, frame: _Frame) -> bool:
        """Lose a frame to the cut of its link; say whether the cut ended the whole connection."""
        cut = self._exchange.rules.cut_of(self._pipe.link)
        assert cut is not None, "only a cut loses frames"
        cut.frames_lost += 1
        self._exchange.note_lost(cut, self._pipe.link)
        self._pipe.torn = True
        if cut.close:
            self._pipe.reset("its link is cut")
        else:
            self._record_drop(frame, "its link is cut")
        return cut.close

    def _swallows(self, frame: _Frame) -> bool:
        """Whether a frame is the answer to the second of a doubled request, or a further piece of such a one."""
        if frame.seen is not None:
            self._swallowing = frame.seen.surplus
        return self._swallowing

    def _times(self, frame: _Frame) -> int:
        """How often a frame goes on: twice where a rule doubles it, which only a whole frame can be."""
        if frame.seen is None or not is_whole(frame.data):
            return 1
        double = self._exchange.rules.double_of(frame.seen)
        if double is None or not self._pipe.doubled(frame.seen):
            return 1
        double.frames_doubled += 1
        self._exchange.record(events.Doubled(**seen_value(frame.seen)))
        return 2

    def _note(self, frame: _Frame) -> None:
        """Tell the witness and the holds that a frame is handed on."""
        if frame.note is not None:
            self._pipe.note(frame.seen, frame.note)
        if frame.seen is not None:
            for hold in self._exchange.rules.holds:
                hold.note_passed(frame.seen)

    def _record_drop(self, frame: _Frame, reason: str) -> None:
        if frame.hold is not None and frame.seen is not None:
            self._exchange.record(events.Dropped(**seen_value(frame.seen), reason=reason))

    def _flow(self) -> None:
        """Read on from the source, or not: not while what it sent finds no room."""
        self.source.read_on(not self._stalled and self._queued_bytes <= HELD_BYTES_MAX)
