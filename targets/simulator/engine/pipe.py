"""A connection of the simulator: the link core's, with its virtual times. Plain data; the network moves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.fabric.core import lanes
from harness.fabric.core.lanes import ANSWERS, DIRECTIONS, REQUESTS, Connection
from harness.target.wire import UNKNOWN, Direction, Link, Seen

__all__ = ["ANSWERS", "DIRECTIONS", "REQUESTS", "End", "Frame", "Lane", "Pipe"]


@dataclass(slots=True, eq=False)
class Frame(lanes.Frame):
    """
    A frame in flight. A system has a class of its own, which says what rules see of it.

    Attributes:
        body: The receiver's business.
        request: The request that it is or answers, for what looks at frames on their way; None if nothing does.
        tag: The sender's number of the request, -1 for an unnumbered frame.
    """

    link: Link
    direction: Direction
    body: Any
    request: Any
    tag: int

    @property
    def seen(self) -> Seen:
        """Return what rules see of it, built only when rules exist."""
        return Seen(link=self.link, api=UNKNOWN, direction=self.direction, correlation=self.tag)


@dataclass(slots=True, eq=False)
class Lane(lanes.Lane):
    """
    One direction.

    Attributes:
        planned_ns: When its first frame is judged, -1 if that is not planned.
        last_due_ns: No later frame is due before it.
    """

    planned_ns: int = -1
    last_due_ns: int = 0


@dataclass(slots=True, eq=False)
class Pipe(Connection):
    """
    One connection; its link is (the side that opened it, the side that accepted it).

    Attributes:
        outside: True for a client's connection, to which only a cut of clients applies.
    """

    number: int
    channel: str
    outside: bool
    lanes: tuple[Lane, Lane] = field(default_factory=lambda: (Lane(), Lane()), kw_only=True)

    @property
    def src(self) -> str:
        """Return the side that opened it."""
        return self.link[0]

    @property
    def dst(self) -> str:
        """Return the side that accepted it."""
        return self.link[1]

    def frame(self, due_ns: int, direction: int, body: Any, request: Any, tag: int, *, end: bool) -> Frame:
        """Return a frame that is sent on it now, as its system reads it."""
        return Frame(due_ns, self.link, DIRECTIONS[direction], body, request, tag, end=end)

    def receiver(self, direction: int) -> str:
        """Return the receiver of frames in that direction."""
        return self.link[1 - direction]


class End(Protocol):
    """The endpoint of connections."""

    @property
    def listening(self) -> bool:
        """Return True if it accepts connections now."""

    def on_frame(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        """Process a frame that arrived."""

    def on_end(self, pipe: Pipe) -> None:
        """Process a closed connection."""
