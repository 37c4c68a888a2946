"""
A socket of the proxy, as its connection sees it.

All of this runs in the fabric's one thread. A half-closed connection stays half-closed through the proxy.

Source:  RFC 9293, 3.6; on Linux what arrived before a reset can still be read after it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import Protocol, cast

from harness.fabric.limits import READ_BYTES


class Owner(Protocol):
    """The connection that a socket belongs to, with its callbacks for the socket's events."""

    over: bool

    def made(self, side: Side) -> bool:
        """Accept the socket; return False if the connection is already over."""

    def received(self, side: Side, data: bytes) -> None:
        """Handle bytes that arrived."""

    def ended(self, side: Side) -> None:
        """Handle the end of the node's data."""

    def stalled(self, side: Side, stalled: bool) -> None:
        """Stop forwarding to the socket for now, or continue."""

    def lost(self, side: Side) -> None:
        """Handle the closing of the socket."""


class Side(asyncio.Protocol):
    """
    One socket of a connection.

    Attributes:
        lost: The socket is closed, or was never connected.
        ended: Its node sends no more data.
    """

    def __init__(self, owner: Owner) -> None:
        self.lost = False
        self.ended = False
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._reading = True
        self._finished = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket, unless the connection ended while it was being made."""
        self._transport = cast(asyncio.Transport, transport)
        if not self._owner.made(self):
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Pass on what arrived."""
        self._owner.received(self, data)

    def eof_received(self) -> bool:
        """Pass on the end; keep the socket open for the data that is still to be written to it."""
        self._owner.ended(self)
        return True

    def pause_writing(self) -> None:
        """Stop the sender: the socket accepts no more."""
        self._owner.stalled(self, True)

    def resume_writing(self) -> None:
        """Let the sender go on."""
        self._owner.stalled(self, False)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Pass on the bytes that arrived before the socket closed, then its end."""
        if not self._owner.over and not self.ended:
            self._read_remainder()
        self.lost = True
        self._owner.lost(self)

    def write(self, data: bytes) -> None:
        """Write the bytes to the socket."""
        assert self._transport is not None, "frames go on only after both sides are connected"
        self._transport.write(data)

    def read_on(self, reading: bool) -> None:
        """Read from the socket, or leave arriving bytes in the kernel."""
        if self._transport is None or reading == self._reading:
            return
        self._reading = reading
        if reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def finish(self) -> None:
        """Send the end of data to the node, after all that was written; close if the node has ended too."""
        if self._transport is None or self.lost:
            return
        if self.ended:
            self._transport.close()
        elif not self._finished and not self._transport.is_closing():
            self._finished = True
            with suppress(OSError):  # its node was killed, and the loop has yet to hear of the reset
                self._transport.write_eof()

    def reset(self) -> None:
        """Close the socket with a TCP reset; unwritten data is lost."""
        if self._transport is None:
            self.lost = True
        elif not self.lost:
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _read_remainder(self) -> None:
        """Read the bytes that the kernel still has: a failed write closes the transport before all are read."""
        assert self._transport is not None, "a connection is lost after it was made"
        descriptor = self._transport.get_extra_info("socket").fileno()
        try:
            while data := os.read(descriptor, READ_BYTES):
                self._owner.received(self, data)
        except OSError:  # no bytes are left, or the socket cannot be read any more
            return
