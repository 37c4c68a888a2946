"""
The proxy drives the link core: it turns bytes into frames in lanes, and effects into writes, resets and timers.

All of this runs in the fabric's one thread. The proxy forwards the end of one side after all of its data. A
connection is over when both sides have ended, or after a reset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from harness.fabric.core.effects import Effect, Held, Later, Lose, Over, Pass, Record, Reset, Wake
from harness.fabric.core.lanes import Connection, Frame
from harness.fabric.core.links import LinkCore
from harness.fabric.core.rules import NS_PER_S
from harness.fabric.guard import Guard
from harness.fabric.holds import Hold
from harness.fabric.lane import Chunk, Lane
from harness.fabric.limits import CONNECT_S_MAX
from harness.fabric.side import Side
from harness.fabric.splitter import Part, Piece, Size, Splitter
from harness.fabric.witness import Recorder, Witness
from harness.launch import Address
from harness.target.wire import UNKNOWN, Direction, Link, Message, NotFramedError, Reading, Seen


@dataclass(slots=True, kw_only=True)
class Exchange:
    """State that all pipes share."""

    loop: asyncio.AbstractEventLoop
    record: Recorder
    core: LinkCore
    witness: Witness
    guard: Guard
    closing: bool = False

    @property
    def now_ns(self) -> int:
        """The loop's time."""
        return int(self.loop.time() * NS_PER_S)

    def obey(self, effects: Sequence[Effect]) -> None:
        """Carry out the core's effects, in their order."""
        for effect in effects:
            match effect:
                case Record():
                    self.record(effect.event)
                case Held():
                    effect.hold.note_held(effect.seen)
                case Over():
                    effect.hold.note_over()
                case Reset(connection=Pipe() as pipe):
                    pipe.end()
                case Wake():
                    for pipe in self.pipes():
                        pipe.pump()
                case _:
                    raise AssertionError(f"{effect}: expected an effect that belongs to no lane")

    def pipes(self) -> list[Pipe]:
        """List the connections that are still open, oldest first."""
        return [pipe for pipe in self.core.connections if isinstance(pipe, Pipe)]


class Pipe(Connection):
    """A connection through the fabric: the accepted side, the dialled side, and a lane in each direction."""

    def __init__(
        self, exchange: Exchange, link: Link, reading: Reading | None, upstream: Address, *, shared: bool = False
    ) -> None:
        self.down, self.up = Side(self), Side(self)
        self._exchange = exchange
        self._reading = reading
        self._upstream = upstream
        self.requests = self._lane(self.down, self.up, Direction.REQUEST)
        self.answers = self._lane(self.up, self.down, Direction.ANSWER)
        super().__init__(link, lanes=(self.requests, self.answers), shared=shared)
        self._dialling: asyncio.Task[None] | None = None

    # --- socket callbacks ------------------------------------------------------------------------------------
    def made(self, side: Side) -> bool:
        """Dial the node behind, and let frames pass once both sides are connected; False if the pipe is over."""
        loop = self._exchange.loop
        if self._exchange.closing or self.over:
            self.over = True
            return False
        if side is self.down:
            self._exchange.core.connections[self] = None
            # After the transport has begun to read: CPython 3.11.2 loses a pause that comes earlier.
            loop.call_soon(self.requests.stall, True)
            self._dialling = loop.create_task(self._dial())
        else:
            self.requests.stall(False)
        return True

    def received(self, side: Side, data: bytes) -> None:
        """Queue bytes that arrived; drop them if the receiving side is gone."""
        lane = self._from(side)
        if self.over or not lane.open:
            return
        was_opaque = lane.splitter.opaque
        self._add(lane, lane.splitter.feed(data))
        if lane.splitter.opaque and not was_opaque:
            self._turn_opaque(lane)
        self._pump(lane)

    def ended(self, side: Side) -> None:
        """Queue the end of a side, after all that it sent."""
        if side.ended:
            return
        side.ended = True
        lane = self._from(side)
        if lane.open and not self.over:
            waiting = lane.splitter.surrender()
            for _, data in waiting:
                self._exchange.guard.unsplit(data)
            self._add(lane, waiting)
            lane.frames.append(Frame(self._exchange.now_ns, end=True))
        self._pump(lane)
        self._settle()

    def stalled(self, side: Side, stalled: bool) -> None:
        """Stop reading from the sender while the side accepts no more."""
        self._to(side).stall(stalled)

    def lost(self, side: Side) -> None:
        """Handle a closed socket: drop the frames that were still to be written to it."""
        lane = self._to(side)
        self._exchange.obey(self._exchange.core.lose_receiver(lane))
        lane.empty()
        self.ended(side)
        self._settle()

    # --- the core's effects ----------------------------------------------------------------------------------
    def pump(self) -> None:
        """Judge the queued frames again, in both directions."""
        self._pump(self.requests)
        self._pump(self.answers)

    def conclude(self) -> None:
        """Say what waits unsplit, as the last that comes."""
        for lane in (self.requests, self.answers):
            for _, data in lane.splitter.surrender():
                self._exchange.guard.unsplit(data, last=True)

    def reset(self, reason: str) -> None:
        """Reset both sides; held frames are recorded as dropped for this reason."""
        self._exchange.obey(self._exchange.core.reset(self, reason))

    def end(self) -> None:
        """Close both sockets with a TCP reset; the core has cleared the lanes."""
        if self._dialling is not None:
            self._dialling.cancel()
        for lane in (self.answers, self.requests):
            lane.empty()
            lane.dest.reset()
        self._settle()

    def _pump(self, lane: Lane) -> None:
        """Forward frames from the front of the lane; stop at the first one that must wait."""
        out: list[bytes] = []
        now_ns, going = self._exchange.now_ns, True
        while going and lane.frames:
            going = False
            for effect in self._exchange.core.judge(self, lane, now_ns):
                match effect:
                    case Pass(frame=frame) | Lose(frame=frame):
                        going = True
                        lane.remove(frame)
                        if isinstance(effect, Pass):
                            self._hand_on(lane, frame, out)
                    case Later(at_ns=at_ns):
                        lane.wait_until(self._exchange.loop.call_at(at_ns / NS_PER_S, self._pump, lane))
                    case _:
                        self._exchange.obey((effect,))
        if self.over:
            return
        if out:
            lane.dest.write(b"".join(out) if len(out) > 1 else out[0])
        lane.flow()
        if lane.finished:
            self._settle()

    def _hand_on(self, lane: Lane, frame: Frame, out: list[bytes]) -> None:
        """Add the frame's bytes to `out`; report the frame once to the witness and to the holds that it passed."""
        if not isinstance(frame, Chunk):
            lane.finished = True
            return
        out.append(frame.data)
        if frame.seen is None:
            return
        if frame.copy:
            self._expect_again(frame.seen.correlation)
            return
        if frame.message is not None:
            self._exchange.witness.passed(frame.message)
        for hold in self._exchange.core.rules.holds:
            if isinstance(hold, Hold):
                hold.note_passed(frame.seen)

    # --- helpers ---------------------------------------------------------------------------------------------
    def _from(self, side: Side) -> Lane:
        return self.requests if side is self.down else self.answers

    def _to(self, side: Side) -> Lane:
        return self.answers if side is self.down else self.requests

    def _lane(self, source: Side, dest: Side, direction: Direction) -> Lane:
        reading, guard = self._reading, self._exchange.guard
        size: Size | None = None
        if reading is not None:
            size = partial(guard.size, reading, direction)
        return Lane(source=source, dest=dest, direction=direction, splitter=Splitter(size))

    def _add(self, lane: Lane, pieces: Iterable[Piece]) -> None:
        now_ns = self._exchange.now_ns
        for part, data in pieces:
            chunk = Chunk(now_ns, data=data)
            message = self._read(lane, data) if part is Part.HEAD else None
            if message is not None:
                chunk.seen, chunk.message = message.seen, message
                if self.shared:
                    lane.link = message.seen.link
                elif lane is self.requests:
                    self.link = message.seen.link
                else:
                    lane.surplus = not self.takes_answer(message.seen.correlation)
            elif part is not Part.REST:
                chunk.seen = Seen(link=self.link, api=UNKNOWN, direction=lane.direction)
                lane.surplus, lane.link = False, None
            chunk.link = lane.link
            if not lane.surplus:
                lane.add(chunk)

    def _read(self, lane: Lane, frame: bytes) -> Message | None:
        """Return what a frame says; None if the wire fails, and then nothing behind it is read either."""
        assert self._reading is not None, "only what a wire has split is read"
        try:
            message = self._exchange.guard.read(self._reading, frame, lane.direction)
        except NotFramedError as error:
            lane.splitter.opaque, lane.splitter.why = True, str(error)
            return None
        if message.error:
            self._exchange.witness.unreadable(message.seen, message.error)
        return message

    def _expect_again(self, correlation: int) -> None:
        """Have the reading expect a second answer; if it fails, the next bytes pass unread."""
        assert self._reading is not None, "only a frame that was read is sent twice"
        with suppress(NotFramedError):
            self._exchange.guard.call(self._reading.sent_again, correlation)

    def _turn_opaque(self, lane: Lane) -> None:
        """Stop reading frames on this connection, in both directions: its bytes are not in frames."""
        if lane.splitter.why != self._exchange.guard.failure:  # which the guard has recorded
            seen = Seen(link=self.link, api=UNKNOWN, direction=lane.direction)
            self._exchange.witness.unreadable(seen, lane.splitter.why)
        other = self._to(lane.source)
        self._add(other, other.splitter.surrender())
        self._pump(other)

    def _settle(self) -> None:
        """Forward the end of each finished side; remove the pipe once both sockets are closed."""
        if self.down.lost and self.up.lost:
            self.over = True
            self._exchange.core.connections.pop(self, None)
        elif not self.over:
            for lane in (self.answers, self.requests):
                if lane.finished:
                    lane.dest.finish()

    async def _dial(self) -> None:
        """Connect to the node behind; if it refuses, reset the accepted side, unless the link is cut."""
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                await self._exchange.loop.create_connection(
                    lambda: self.up, self._upstream.host, self._upstream.port
                )
        except OSError:
            self.torn = True
            if not any(map(self._exchange.core.rules.cut_of, self.links)):
                self.reset("its destination refused the connection")
