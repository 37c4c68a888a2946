"""
Rules of links: which frames are held, delayed, doubled or lost, and the patterns that rules match with.

A link is (from, to) in the direction of its requests: the answers to A's requests to B are on link (A, B) too.
"*" matches any node and the metadata, "?" is an unknown source. "clients" are all clients of the run together,
whose links a rule takes only if it names them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from harness.target.wire import ANY, CLIENTS, METADATA, UNKNOWN, Direction, Link, Seen

# The ends of links and the fields of frames are the wire's; a user of rules has them from here.
__all__ = [
    "ALL_OF_1000",
    "ANY",
    "CLIENTS",
    "METADATA",
    "NS_PER_S",
    "UNKNOWN",
    "Cut",
    "Delay",
    "Direction",
    "Double",
    "HeldFrame",
    "Hold",
    "Link",
    "Pattern",
    "Rules",
    "Seen",
    "affected",
    "link_matches",
]

NS_PER_S: Final = 1_000_000_000
ALL_OF_1000: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFrame:
    """A frame that a hold stopped; offset is its highest fetch offset, None if it has none."""

    link: Link
    api: str
    direction: Direction
    version: int
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """
    Which frames a rule matches; "*" matches any word, source or destination.

    Attributes:
        from_offset: Match only fetches from an offset of at least this.
        topic: Match only fetches about this topic; from_offset then applies to this topic alone.
        multi: Match only what asks for several operations, all done or none, and its answers.
    """

    api: str
    src: str
    dst: str
    direction: Direction
    from_offset: int | None = None
    topic: str | None = None
    multi: bool = False

    def matches(self, seen: Seen) -> bool:
        """Return True if the pattern matches this frame."""
        if seen.direction is not self.direction or self.api not in (ANY, seen.api):
            return False
        if not link_matches((self.src, self.dst), seen.link) or (self.multi and not seen.multi):
            return False
        if self.from_offset is None and self.topic is None:
            return True
        least = -1 if self.from_offset is None else self.from_offset
        return any(offset >= least and self.topic in (None, topic) for topic, offset in seen.offsets)

    def __str__(self) -> str:
        where = f"{self.api} {self.direction.value} on {self.src}->{self.dst}"
        since = "" if self.from_offset is None else f" from offset {self.from_offset}"
        return where + since + ("" if self.topic is None else f" of topic {self.topic}")


@dataclass(slots=True, kw_only=True, eq=False)
class Cut:
    """
    Frames on these links are lost, and with `close` their connections are reset.

    A cut that takes only a share loses a frame with its connection, since TCP would send a lost frame again.

    Attributes:
        of_1000: How many of a thousand frames it takes.
        seed: What decides which ones; it changes with each frame.
        lost: The frames that it took, by link.
        bitten: The links on which it took a frame or a connection.
    """

    links: tuple[Link, ...]
    close: bool
    of_1000: int = ALL_OF_1000
    seed: int = 0
    lost: dict[Link, int] = field(default_factory=dict)
    bitten: set[Link] = field(default_factory=set)

    @property
    def frames_lost(self) -> int:
        """The frames that it took on all links."""
        return sum(self.lost.values())

    @property
    def takes_all(self) -> bool:
        """Whether it takes every frame."""
        return self.of_1000 >= ALL_OF_1000

    def takes_next(self) -> bool:
        """Decide the fate of one more frame, by a linear congruence (the constants of POSIX's example rand)."""
        self.seed = (self.seed * 1103515245 + 12345) % (1 << 31)
        return (self.seed >> 16) % ALL_OF_1000 < self.of_1000

    def covers(self, link: Link) -> bool:
        """Return True if the cut takes this link's frames."""
        return any(link_matches(cut, link) for cut in self.links)


@dataclass(slots=True, kw_only=True, eq=False)
class Delay:
    """
    Matching frames, and all behind them, go on this much later than they came.

    Attributes:
        bitten: The links on which it took a frame.
        late: The frames that it let go on after its time, by link.
    """

    pattern: Pattern
    seconds: float
    bitten: set[Link] = field(default_factory=set)
    late: dict[Link, int] = field(default_factory=dict)

    @property
    def delay_ns(self) -> int:
        """The delay in nanoseconds."""
        return int(self.seconds * NS_PER_S)


@dataclass(slots=True, kw_only=True, eq=False)
class Double:
    """Matching requests are delivered twice, and the second answer is dropped."""

    pattern: Pattern
    frames_doubled: int = 0


class Hold:
    """Matching frames stop, and all behind them in the same connection and direction."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.over = False
        self._held: list[HeldFrame] = []

    def __repr__(self) -> str:
        return f"Hold({self.pattern})"

    @property
    def held(self) -> tuple[HeldFrame, ...]:
        """All frames that the hold has stopped so far, in order."""
        return tuple(self._held)

    def note_held(self, seen: Seen) -> HeldFrame:
        """Record a frame that the hold stopped."""
        topic = self.pattern.topic
        offsets = [offset for name, offset in seen.offsets if topic in (None, name)]
        frame = HeldFrame(
            link=seen.link,
            api=seen.api,
            direction=seen.direction,
            version=seen.version,
            offset=max(offsets, default=None),
        )
        self._held.append(frame)
        return frame

    def note_over(self) -> None:
        """Record that the hold was released or dropped."""
        self.over = True


@dataclass(slots=True)
class Rules:
    """All rules in force, oldest first; the first that matches a frame applies."""

    holds: list[Hold] = field(default_factory=list)
    delays: list[Delay] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    doubles: list[Double] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """Whether no rule is in force, so that every frame passes."""
        return not (self.holds or self.cuts or self.delays or self.doubles)

    def has(self, rule: object) -> bool:
        """Return True if the rule is in force."""
        return any(rule is each for each in (*self.holds, *self.delays, *self.cuts, *self.doubles))

    def cut_of(self, link: Link) -> Cut | None:
        """Return the first cut that takes all of the link's frames."""
        return next((cut for cut in self.cuts if cut.takes_all and cut.covers(link)), None)

    def loss_of(self, link: Link) -> Cut | None:
        """Return the first cut that takes a share of the link's frames."""
        return next((cut for cut in self.cuts if not cut.takes_all and cut.covers(link)), None)

    def hold_of(self, seen: Seen) -> Hold | None:
        """Return the first hold that stops the frame."""
        return next((hold for hold in self.holds if hold.pattern.matches(seen)), None)

    def delay_of(self, seen: Seen) -> Delay | None:
        """Return the first delay that matches the frame."""
        return next((delay for delay in self.delays if delay.pattern.matches(seen)), None)

    def double_of(self, seen: Seen) -> Double | None:
        """Return the first doubling that matches the frame."""
        return next((double for double in self.doubles if double.pattern.matches(seen)), None)


def affected(rule: object) -> dict[Link, int]:
    """Return the frames that a rule has taken so far, by link; a link has 0 if it took only connections there."""
    match rule:
        case Cut():
            return {link: rule.lost.get(link, 0) for link in sorted(rule.bitten)}
        case Delay():
            return dict(sorted(rule.late.items()))
        case Hold():
            links = [frame.link for frame in rule.held]
            return {link: links.count(link) for link in sorted(set(links))}
    return {}


def link_matches(asked: Link, link: Link) -> bool:
    """Return True if the link `asked`, in which either end may be "*", matches the other link."""
    if link[0] == CLIENTS != asked[0]:
        return False
    return asked[0] in (ANY, link[0]) and asked[1] in (ANY, link[1])
