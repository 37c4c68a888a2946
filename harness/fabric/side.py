"""
A socket of the proxy, as its connection sees it.

All of this runs in the fabric's one thread. Both ends of TCP's half-closing are kept.

Source:  RFC 9293, 3.6; on Linux what arrived before a reset can still be read after it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Protocol, cast

from harness.fabric.limits import READ_BYTES


class Owner(Protocol):
    """The connection that a socket is of, and what it does when something happens to the socket."""

    over: bool

    def made(self, side: Side) -> bool:
        """Accept the socket; False when the connection is over already."""

    def received(self, side: Side, data: bytes) -> None:
        """Take what arrived."""

    def ended(self, side: Side) -> None:
        """Take the end of what the socket's node sends."""

    def stalled(self, side: Side, stalled: bool) -> None:
        """Stop handing on to the socket for now, or go on."""

    def lost(self, side: Side) -> None:
        """Take the end of the socket."""


class Side(asyncio.Protocol):
    """
    One socket of a connection.

    Attributes:
        lost: The socket is gone, or could not be had.
        ended: Its node sends no more.
    """

    def __init__(self, owner: Owner) -> None:
        self.lost = False
        self.ended = False
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._reading = True
        self._finished = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket, unless the connection was ended while it was on its way."""
        self._transport = cast(asyncio.Transport, transport)
        if not self._owner.made(self):
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Pass on what arrived."""
        self._owner.received(self, data)

    def eof_received(self) -> bool:
        """Pass on the end; keep the socket, for what is still to be written to it."""
        self._owner.ended(self)
        return True

    def pause_writing(self) -> None:
        """Stop the sender: the socket accepts no more."""
        self._owner.stalled(self, True)

    def resume_writing(self) -> None:
        """Let the sender go on."""
        self._owner.stalled(self, False)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Pass on what had arrived before the socket died, then its end."""
        if not self._owner.over and not self.ended:
            self._read_remainder()
        self.lost = True
        self._owner.lost(self)

    def write(self, data: bytes) -> None:
        """Send."""
        assert self._transport is not None, "frames go on only after both sides are connected"
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
        """Send the end to this side's node, after what was written; close once it has sent its own."""
        if self._transport is None or self.lost:
            return
        if self.ended:
            self._transport.close()
        elif not self._finished and not self._transport.is_closing():
            self._finished = True
            self._transport.write_eof()

    def reset(self) -> None:
        """End the socket with a TCP reset, whatever is under way."""
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
                self._owner.received(self, data)
        except OSError:  # nothing is left, or nothing can be read any more
            return
