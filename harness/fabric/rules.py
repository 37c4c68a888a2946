"""
Which frames a link holds, delays or loses: patterns, and the handles that the fabric gives out for them.

A link is (from, to) in the direction of its requests: the answers to A's requests to B are on link (A, B) too.
Nothing here does IO. Rules belong to the fabric's thread; a Hold's `wait` and `held` are for any thread.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from harness.fabric.frames import ANY
from harness.fabric.limits import PASSED_KINDS_MAX
from harness.model import PreconditionError

Link: TypeAlias = tuple[str, str]


class Direction(StrEnum):
    """Of a frame on its link: a request goes along it, an answer against it."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """
    What the fabric knows of a frame when it judges it.

    Shapes:  offsets are a Fetch's (topic, fetch offset) for every partition that it is about, its session's
             included; () for all else. An answer has those of its request. A topic may be an id (Fetch v13+).
             correlation is the frame's correlation id, -1 where it has none. surplus: the answer to the second
             of a request that was doubled, for which nobody waits.
    """

    link: Link
    api: str
    direction: Direction
    version: int = -1
    offsets: tuple[tuple[str, int], ...] = ()
    correlation: int = -1
    surplus: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFrame:
    """A frame that a hold stopped; offset is the highest fetch offset that it is about, None if none."""

    link: Link
    api: str
    direction: Direction
    version: int
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """
    Which frames a rule is about; "*" stands for any api, source or destination.

    Shapes:  with from_offset, only Fetch frames about a fetch offset of at least that; with topic, only
             Fetch frames about that topic, and from_offset then looks at that topic alone.
    """

    api: str
    src: str
    dst: str
    direction: Direction
    from_offset: int | None = None
    topic: str | None = None

    def matches(self, seen: Seen) -> bool:
        """Whether the rule is about this frame."""
        if seen.direction is not self.direction or self.api not in (ANY, seen.api):
            return False
        if not link_matches((self.src, self.dst), seen.link):
            return False
        if self.from_offset is None and self.topic is None:
            return True
        least = -1 if self.from_offset is None else self.from_offset
        return any(offset >= least and self.topic in (None, topic) for topic, offset in seen.offsets)

    def value(self) -> dict[str, Any]:
        """Return the pattern as the fields of an event (harness.events.LinkRule, Heal)."""
        return {
            "link": (self.src, self.dst),
            "api": self.api,
            "direction": self.direction.value,
            "from_offset": self.from_offset,
            "topic": self.topic,
        }

    def __str__(self) -> str:
        where = f"{self.api} {self.direction.value} on {self.src}->{self.dst}"
        since = "" if self.from_offset is None else f" from offset {self.from_offset}"
        return where + since + ("" if self.topic is None else f" of topic {self.topic}")


@dataclass(slots=True, kw_only=True, eq=False)
class Cut:
    """
    A handle: frames on these links are lost, and with `close` their connections are reset.

    Shapes:  frames_lost rises as the cut bites, bitten are the links on which it did; both are only written in
             the fabric's thread.
    """

    links: tuple[Link, ...]
    close: bool
    frames_lost: int = 0
    bitten: set[Link] = field(default_factory=set)

    def covers(self, link: Link) -> bool:
        """Whether the cut takes that link's frames."""
        return any(link_matches(cut, link) for cut in self.links)


@dataclass(slots=True, kw_only=True, eq=False)
class Delay:
    """
    A handle: matching frames, and what is behind them, go on that much later than they came.

    Shapes:  bitten are the links on which it did; only written in the fabric's thread.
    """

    pattern: Pattern
    seconds: float
    bitten: set[Link] = field(default_factory=set)


@dataclass(slots=True, kw_only=True, eq=False)
class Double:
    """
    A handle: matching requests are delivered twice, and the second answer goes to nobody.

    Shapes:  frames_doubled rises as it bites; it is only written in the fabric's thread.
    """

    pattern: Pattern
    frames_doubled: int = 0


class Hold:
    """
    A handle: matching frames stop, and all that is behind them on their connection and direction.

    Raises:  wait raises PreconditionError, which names the hold and what passed by instead.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._changed = threading.Condition()
        self._held: list[HeldFrame] = []
        self._passed: dict[tuple[Link, str, str], tuple[int, int | None]] = {}
        self._over = False

    def __repr__(self) -> str:
        return f"Hold({self.pattern})"

    @property
    def held(self) -> tuple[HeldFrame, ...]:
        """All frames that the hold has stopped so far, in order."""
        with self._changed:
            return tuple(self._held)

    def wait(self, timeout_s: float, *, count: int = 1) -> HeldFrame:
        """Block until the hold has stopped `count` frames; give the last of those."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._held) >= count or self._over, timeout_s)
            if len(self._held) >= count:
                return self._held[count - 1]
            why = "it was released or dropped" if self._over else f"{timeout_s} s have passed"
            raise PreconditionError(
                f"hold of {self.pattern}: {len(self._held)} frames were held when {why}; "
                f"expected {count}. Passed by instead: {self._passed_text() or 'nothing'}"
            )

    def note_held(self, seen: Seen) -> HeldFrame:
        """Say that the hold stopped a frame; wakes who waits."""
        topic = self.pattern.topic
        offsets = [offset for name, offset in seen.offsets if topic in (None, name)]
        frame = HeldFrame(
            link=seen.link,
            api=seen.api,
            direction=seen.direction,
            version=seen.version,
            offset=max(offsets, default=None),
        )
        with self._changed:
            self._held.append(frame)
            self._changed.notify_all()
        return frame

    def note_passed(self, seen: Seen) -> None:
        """Say that a frame went on while the hold stood; the first PASSED_KINDS_MAX kinds are kept."""
        kind = (seen.link, seen.api, seen.direction.value)
        offset = max((offset for _, offset in seen.offsets), default=None)
        with self._changed:
            if kind in self._passed or len(self._passed) < PASSED_KINDS_MAX:
                self._passed[kind] = (self._passed.get(kind, (0, None))[0] + 1, offset)

    def note_over(self) -> None:
        """Say that the hold stands no longer; wakes who waits."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _passed_text(self) -> str:
        return ", ".join(
            f"{count} x {api} {direction} on {link[0]}->{link[1]}"
            + ("" if offset is None else f" (last at offset {offset})")
            for (link, api, direction), (count, offset) in self._passed.items()
        )


@dataclass(slots=True)
class Rules:
    """All rules that stand now, in the order in which they were made: the first hold that matches has it."""

    holds: list[Hold] = field(default_factory=list)
    delays: list[Delay] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    doubles: list[Double] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to stop, delay or lose a frame for."""
        return not (self.holds or self.cuts or self.delays)

    def cut_of(self, link: Link) -> Cut | None:
        """The first cut that takes the link's frames."""
        return next((cut for cut in self.cuts if cut.covers(link)), None)

    def hold_of(self, seen: Seen) -> Hold | None:
        """The first hold that stops the frame."""
        return next((hold for hold in self.holds if hold.pattern.matches(seen)), None)

    def delay_of(self, seen: Seen) -> Delay | None:
        """The first delay that is about the frame."""
        return next((delay for delay in self.delays if delay.pattern.matches(seen)), None)

    def double_of(self, seen: Seen) -> Double | None:
        """The first doubling that is about the frame."""
        return next((double for double in self.doubles if double.pattern.matches(seen)), None)


def seen_value(seen: Seen) -> dict[str, Any]:
    """Return a frame as the fields of an event (harness.events.OfFrame)."""
    return {
        "link": seen.link,
        "api": seen.api,
        "direction": seen.direction.value,
        "offset": max((offset for _, offset in seen.offsets), default=None),
    }


def link_matches(asked: Link, link: Link) -> bool:
    """Whether a link, in which either end may be "*", stands for that link."""
    return asked[0] in (ANY, link[0]) and asked[1] in (ANY, link[1])
