"""
The sockets: a pipe for every connection, with the side that dialled and the side that was dialled.

All of this lives in the fabric's one thread. Both ends of TCP's half-closing are kept: one side's end is said
to the other after its data, and a connection is over when both have ended or a reset took it.

Source:  RFC 9293, 3.6; on Linux what arrived before a reset can still be read after it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import cast

from harness.fabric.frames import UNKNOWN
from harness.fabric.lane import Exchange, Lane
from harness.fabric.limits import CONNECT_S_MAX, READ_BYTES
from harness.fabric.reading import Read, Reading
from harness.fabric.rules import Direction, Link, Seen
from harness.fabric.witness import Note
from harness.hosts.base import Address


class Side(asyncio.Protocol):
    """One socket of a pipe; lost is true once it is gone, or could not be had."""

    def __init__(self, pipe: Pipe, reads: Lane, writes: Lane) -> None:
        self.reads = reads
        self.writes = writes
        self.lost = False
        self._pipe = pipe
        self._transport: asyncio.Transport | None = None
        self._reading = True
        self._finished = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket, unless the pipe was ended while it was on its way."""
        self._transport = cast(asyncio.Transport, transport)
        if not self._pipe.made(self):
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Give what arrived to the lane."""
        self.reads.feed(data)

    def eof_received(self) -> bool:
        """Give the end to the lane; keep the socket, for what is still to be written to it."""
        self.reads.end()
        return True

    def pause_writing(self) -> None:
        """Stop the sender: this side takes no more."""
        self.writes.stall(True)

    def resume_writing(self) -> None:
        """Let the sender go on."""
        self.writes.stall(False)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Hand on what had arrived before the socket died; drop what was still to be written to it."""
        if not self._pipe.over and not self.reads.ended:
            self._read_remainder()
        self.lost = True
        self.writes.forget("its destination's connection is closed")
        self.reads.end()
        self._pipe.settle()

    def write(self, data: bytes) -> None:
        """Send."""
        assert self._transport is not None, "a lane hands nothing on before both sides are connected"
        self._transport.write(data)

    def read_on(self, reading: bool) -> None:
        """Read from the socket, or leave what arrives there."""
        if self._transport is None or reading == self._reading:
            return
        self._reading = reading
        if reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def finish(self) -> None:
        """Say the end to this side's node, after what was written; close once it has said its own."""
        if self._transport is None or self.lost:
            return
        if self.reads.ended:
            self._transport.close()
        elif not self._finished and not self._transport.is_closing():
            self._finished = True
            self._transport.write_eof()

    def reset(self) -> None:
        """End the connection with a TCP reset, whatever is under way."""
        if self._transport is None:
            self.lost = True
        elif not self.lost:
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _read_remainder(self) -> None:
        """Read what the kernel still has: a failed write ends the transport before all was read."""
        assert self._transport is not None, "a connection is lost after it was made"
        descriptor = self._transport.get_extra_info("socket").fileno()
        try:
            while data := os.read(descriptor, READ_BYTES):
                self.reads.feed(data)
        except OSError:  # nothing is left, or nothing can be read any more
            return


class Pipe:
    """
    A connection through the fabric: two sides, and a lane each way.

    Shapes:  torn: a cut took bytes, so that the streams have gaps: the pipe is reset when the cut heals.
             over: it was reset, or both sides are gone.
    """

    def __init__(self, exchange: Exchange, reading: Reading, upstream: Address) -> None:
        self.exchange = exchange
        self.torn = False
        self.over = False
        self._reading = reading
        self._upstream = upstream
        self._last_offsets: dict[tuple[str, int], int] = {}
        self._dialling: asyncio.Task[None] | None = None
        self.requests = Lane(self, Direction.REQUEST)
        self.answers = Lane(self, Direction.ANSWER)
        self.down = Side(self, reads=self.requests, writes=self.answers)
        self.up = Side(self, reads=self.answers, writes=self.requests)
        self.requests.source, self.requests.dest = self.down, self.up
        self.answers.source, self.answers.dest = self.up, self.down

    @property
    def link(self) -> Link:
        """The pipe's link, as far as it is known."""
        return self._reading.link

    def made(self, side: Side) -> bool:
        """Dial for the side that came, open the way once both are there; False when it is too late."""
        if self.exchange.closing or self.over:
            self.over = True
            return False
        if side is self.down:
            self.exchange.pipes[self] = None
            # Once the transport has begun to read: CPython 3.11.2 forgets a pause that came before.
            self.exchange.loop.call_soon(self.requests.stall, True)
            self._dialling = self.exchange.loop.create_task(self._dial())
        else:
            self.requests.stall(False)
        return True

    def read(self, direction: Direction, data: bytes) -> Read:
        """Understand the head of a frame."""
        if direction is Direction.REQUEST:
            return self._reading.request(data)
        return self._reading.answer(data)

    def note(self, seen: Seen | None, note: Note) -> None:
        """Let the witness see a frame that is handed on."""
        assert seen is not None, "only the head of a frame is noted"
        self.exchange.witness.passed(seen.link, note, self._last_offsets)

    def doubled(self, seen: Seen) -> bool:
        """Prepare for a second answer to a request; False when its request may not be sent twice."""
        return self._reading.doubled(seen.correlation)

    def turn_opaque(self, direction: Direction, length: int) -> None:
        """Read nothing more of the connection, in the other direction either: it is not in frames."""
        error = f"frame length {length}; expected a frame: the connection passes unread"
        self.exchange.witness.unreadable(self.link, UNKNOWN, -1, direction, error)
        other = self.answers if direction is Direction.REQUEST else self.requests
        other.surrender()

    def settle(self) -> None:
        """Hand on the end of a side where all before it is handed on; forget a pipe that is over."""
        if self.down.lost and self.up.lost:
            self.over = True
            self.exchange.pipes.pop(self, None)
        elif not self.over and self.exchange.rules.cut_of(self.link) is None:
            for side in (self.down, self.up):
                if side.writes.done:
                    side.finish()

    def healed(self) -> None:
        """Go on after a cut, or end the connection if it has lost bytes to it."""
        if self.torn:
            self.reset("its connection has lost bytes to a cut")
        else:
            self.pump()

    def pump(self) -> None:
        """Judge again what is queued, both ways."""
        self.requests.pump()
        self.answers.pump()

    def reset(self, reason: str) -> None:
        """End both connections with a TCP reset; frames that are held are dropped for that reason."""
        self.over = True
        if self._dialling is not None:
            self._dialling.cancel()
        for side in (self.down, self.up):
            side.writes.forget(reason)
            side.reset()
        self.settle()

    async def _dial(self) -> None:
        """Connect to the node behind; one that refuses is refused to the side that came, unless cut off."""
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                await self.exchange.loop.create_connection(
                    lambda: self.up, self._upstream.host, self._upstream.port
                )
        except OSError:
            self.torn = True
            if self.exchange.rules.cut_of(self.link) is None:
                self.reset("its destination refused the connection")
