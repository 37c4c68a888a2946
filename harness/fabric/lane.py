"""The proxy's lane: frames of bytes on their way from one socket to another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from harness.fabric.core import lanes
from harness.fabric.core.lanes import Frame
from harness.fabric.core.rules import Direction, Seen
from harness.fabric.frames import Splitter
from harness.fabric.limits import HELD_BYTES_MAX
from harness.fabric.side import Side
from harness.fabric.witness import Note


@dataclass(slots=True, eq=False)
class Chunk(Frame):
    """The bytes of a frame, or of its head, or a further piece of one that is too large to be gathered."""

    data: bytes = b""
    seen: Seen | None = None
    note: Note | None = None


@dataclass(slots=True, eq=False)
class Lane(lanes.Lane):
    """
    From the side that sends to the side that receives; the sender is read while there is room for more.

    Attributes:
        surplus: What arrives now is a piece of an answer that is dropped.
        finished: The end of the sending side was handed on.
        stalled: The receiving side accepts no more for now.
    """

    source: Side = field(kw_only=True)
    dest: Side = field(kw_only=True)
    direction: Direction = field(kw_only=True)
    splitter: Splitter = field(default_factory=Splitter)
    surplus: bool = False
    finished: bool = False
    stalled: bool = False
    queued_bytes: int = 0
    timer: asyncio.TimerHandle | None = None

    def add(self, chunk: Chunk) -> None:
        """Put a chunk behind all others."""
        self.frames.append(chunk)
        self.queued_bytes += len(chunk.data)

    def remove(self, frame: Frame) -> None:
        """Note that a frame left the lane; the copy of a doubled one has no bytes of its own."""
        if isinstance(frame, Chunk) and not frame.copy:
            self.queued_bytes -= len(frame.data)

    def wait_until(self, timer: asyncio.TimerHandle | None) -> None:
        """Replace the timer for a delayed frame."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = timer

    def empty(self) -> None:
        """Note that the core has cleared the lane."""
        self.queued_bytes = 0
        self.wait_until(None)
        self.stall(False)

    def stall(self, stalled: bool) -> None:
        """Note whether the receiving side accepts no more for now."""
        self.stalled = stalled
        self.flow()

    def flow(self) -> None:
        """Read on from the source, or not: not while what it sent finds no room."""
        self.source.read_on(not self.stalled and self.queued_bytes <= HELD_BYTES_MAX)
