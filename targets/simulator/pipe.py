"""A connection: two ends, and a lane of frames each way. Plain data; the network moves what is in it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from harness.fabric.rules import Direction, Link
from targets.broker.core.messages import Request
from targets.simulator.rules import SimHold

REQUESTS: Final = 0
ANSWERS: Final = 1
DIRECTIONS: Final = (Direction.REQUEST, Direction.ANSWER)


@dataclass(slots=True, eq=False)
class Frame:
    """
    Something under way.

    Shapes:  body is the receiver's business; request is what it asks or answers, None on a link to ZooKeeper.
             end: no frame but the end of the side that sent. copy: the second of a doubled request.
    """

    due_ns: int
    body: Any
    request: Request | None
    end: bool = False
    copy: bool = False
    hold: SimHold | None = None


@dataclass(slots=True, eq=False)
class Lane:
    """
    One direction: frames go on in their order; one that is stopped stops all behind it.

    Shapes:  open: whether who receives is still there. planned_ns is when its first frame is looked at, -1 when
             that is not planned. last_due_ns: no later frame overtakes it.
    """

    frames: deque[Frame] = field(default_factory=deque)
    open: bool = True
    planned_ns: int = -1
    last_due_ns: int = 0


@dataclass(slots=True, eq=False)
class Pipe:
    """
    One connection.

    Shapes:  link is (who dialled, who was dialled). outside: a client's, which no rule of the links is about.
             torn: a cut took frames of it, so it is reset when the cut heals. over: nothing passes any more.
             last_offsets is what the witness last told of each partition's fetches.
    """

    number: int
    link: Link
    channel: str
    outside: bool
    lanes: tuple[Lane, Lane] = field(default_factory=lambda: (Lane(), Lane()))
    torn: bool = False
    over: bool = False
    last_offsets: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def src(self) -> str:
        """Who dialled."""
        return self.link[0]

    @property
    def dst(self) -> str:
        """Who was dialled."""
        return self.link[1]

    def receiver(self, direction: int) -> str:
        """Who gets what goes in that direction."""
        return self.link[1 - direction]


class End(Protocol):
    """Who is at the end of pipes."""

    @property
    def listening(self) -> bool:
        """Whether somebody may dial it now."""

    def on_frame(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        """Take a frame that arrived."""

    def on_end(self, pipe: Pipe) -> None:
        """Take note that the connection is gone."""
