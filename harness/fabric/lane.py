"""The proxy's lane: frames of bytes on their way from one socket to another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from harness.fabric.core import lanes
from harness.fabric.core.lanes import Frame
from harness.fabric.limits import HELD_BYTES_MAX
from harness.fabric.side import Side
from harness.fabric.splitter import Splitter
from harness.target.wire import Direction, Link, Message, Seen


@dataclass(slots=True, eq=False)
class Chunk(Frame):
    """The bytes of a whole frame, or a piece of one that is too large to be collected whole."""

    data: bytes = b""
    seen: Seen | None = None
    message: Message | None = None


@dataclass(slots=True, eq=False)
class Lane(lanes.Lane):
    """
    A lane from the sending side to the receiving side; the sender is read while there is room for more.

    Attributes:
        surplus: True while the bytes that arrive belong to an answer that is dropped.
        link: Whose frame they belong to, on a connection that carries what both ends ask.
        finished: True once the end of the sending side was forwarded.
        stalled: True while the receiving side accepts no more.
    """

    source: Side = field(kw_only=True)
    dest: Side = field(kw_only=True)
    direction: Direction = field(kw_only=True)
    splitter: Splitter = field(kw_only=True)
    surplus: bool = False
    link: Link | None = None
    finished: bool = False
    stalled: bool = False
    queued_bytes: int = 0
    timer: asyncio.TimerHandle | None = None

    def add(self, chunk: Chunk) -> None:
        """Append a chunk."""
        self.frames.append(chunk)
        self.queued_bytes += len(chunk.data)

    def remove(self, frame: Frame) -> None:
        """Subtract the bytes of a frame that left the lane; a doubled frame's copy was not counted."""
        if isinstance(frame, Chunk) and not frame.copy:
            self.queued_bytes -= len(frame.data)

    def wait_until(self, timer: asyncio.TimerHandle | None) -> None:
        """Replace the timer for a delayed frame."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = timer

    def empty(self) -> None:
        """Reset the lane's own state after the core has cleared its frames."""
        self.queued_bytes = 0
        self.wait_until(None)
        self.stall(False)

    def stall(self, stalled: bool) -> None:
        """Set whether the receiving side accepts no more for now."""
        self.stalled = stalled
        self.flow()

    def flow(self) -> None:
        """Read from the source only while there is room for its bytes."""
        self.source.read_on(not self.stalled and self.queued_bytes <= HELD_BYTES_MAX)
