"""
A connection: one lane of frames in each direction, and the answers to drop. Plain data that drivers extend.

The end of a side is a frame of its lane too. It comes after all that the side sent, so that the data of a killed
node still arrives.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from harness.fabric.core.rules import Direction, Hold, Link, Seen

REQUESTS: Final = 0
ANSWERS: Final = 1
DIRECTIONS: Final = (Direction.REQUEST, Direction.ANSWER)


@dataclass(slots=True, eq=False)
class Frame:
    """
    A frame, or the end of a side, in a lane.

    Attributes:
        came_ns: When it could go on if no rule were in force, by the driver's clock.
        end: True for the end of the sending side, which is no frame.
        copy: True for the second copy of a doubled request.
        hold: The last hold that stopped it.
        link: Whose frame it is, if its connection carries what both ends ask; None: its connection's.
    """

    came_ns: int
    end: bool = field(default=False, kw_only=True)
    copy: bool = field(default=False, kw_only=True)
    hold: Hold | None = field(default=None, kw_only=True)
    link: Link | None = field(default=None, kw_only=True)

    @property
    def seen(self) -> Seen | None:
        """What rules match on; None for a later piece of a frame whose head was already judged."""
        return None


@dataclass(slots=True, eq=False)
class Lane:
    """
    One direction of a connection: frames keep their order, and a stopped frame stops all behind it.

    Attributes:
        open: Whether the receiving side is still connected.
    """

    frames: deque[Frame] = field(default_factory=deque)
    open: bool = True


@dataclass(slots=True, eq=False)
class Connection:
    """
    One connection.

    Attributes:
        link: The source may be unknown at first; a driver may learn it from a request.
        shared: Whether it carries what both ends ask: then each frame has a link of its own.
        torn: True once a cut took frames of it: it is reset when the cut heals.
        over: True once it was reset, or both sides are gone.
        awaited: Answers to doubled requests, in order: (correlation, whether the answer is surplus).
    """

    link: Link
    lanes: tuple[Lane, Lane] = field(default_factory=lambda: (Lane(), Lane()), kw_only=True)
    torn: bool = field(default=False, kw_only=True)
    over: bool = field(default=False, kw_only=True)
    awaited: list[tuple[int, bool]] = field(default_factory=list, kw_only=True)
    shared: bool = field(default=False, kw_only=True)

    @property
    def links(self) -> tuple[Link, ...]:
        """The links whose frames it may carry."""
        return (self.link, self.link[::-1]) if self.shared else (self.link,)

    def takes_answer(self, correlation: int) -> bool:
        """
        Return False for the second answer to a doubled request, and True for every other answer.

        Call it once for each answer as it enters its lane. Answers come in the order of their requests, so
        that earlier requests without an answer will get none and are removed.
        """
        for place, (awaited, surplus) in enumerate(self.awaited):
            if awaited == correlation:
                del self.awaited[: place + 1]
                return not surplus
        return True
