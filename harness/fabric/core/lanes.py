"""
A connection: a lane of frames each way, and which answers are surplus. Plain data; drivers add their own to it.

The end of a side is a frame of its lane too: it comes after all that was sent, so that what a killed node had
sent still arrives.
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
    Something under way.

    Attributes:
        came_ns: When it could go on if no rule were in force, by the driver's clock.
        end: No frame but the end of the side that sent.
        copy: The second of a doubled request.
        hold: The last hold that stopped it.
    """

    came_ns: int
    end: bool = field(default=False, kw_only=True)
    copy: bool = field(default=False, kw_only=True)
    hold: Hold | None = field(default=None, kw_only=True)

    @property
    def seen(self) -> Seen | None:
        """What rules know of it; None for the rest of a frame whose head was judged before."""
        return None


@dataclass(slots=True, eq=False)
class Lane:
    """
    One direction: frames go on in their order; one that is stopped stops all behind it.

    Attributes:
        open: Whether the receiving side is still there.
    """

    frames: deque[Frame] = field(default_factory=deque)
    open: bool = True


@dataclass(slots=True, eq=False)
class Connection:
    """
    One connection.

    Attributes:
        link: As far as it is known; a driver may learn the source from a request.
        torn: It lost frames to a cut, so that it is reset when the cut heals.
        over: It was reset, or both sides are gone.
        awaited: Answers to doubled requests, in order: (correlation, whether the answer is surplus).
    """

    link: Link
    lanes: tuple[Lane, Lane] = field(default_factory=lambda: (Lane(), Lane()), kw_only=True)
    torn: bool = field(default=False, kw_only=True)
    over: bool = field(default=False, kw_only=True)
    awaited: list[tuple[int, bool]] = field(default_factory=list, kw_only=True)

    def takes_answer(self, correlation: int) -> bool:
        """
        Note that an answer came, and return False for the second answer to a doubled request.

        Call it once for each answer as it enters its lane. Answers come in the order of their requests; a
        request before this one that has had no answer gets none any more.
        """
        for place, (awaited, surplus) in enumerate(self.awaited):
            if awaited == correlation:
                del self.awaited[: place + 1]
                return not surplus
        return True
