"""
What a scenario does to links, and that it bit: a cut, a delay or a doubling must have taken a frame.

    hold answers|requests API A -> B [from N]       release all | release [answers|requests] API A -> B
    drop API A -> B                                 throw away what is held there, reset its connections
    cut A -> B [close] | cut A <-> B [close]        delay answers|requests API A -> B SECONDS
    double API A -> B                               heal all (holds too) | heal A -> B

A link is (from, to) in the direction of its requests; "zookeeper" is the other end of a node's own way there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from harness.cluster import Cluster
from harness.marks import Marks
from harness.model import PreconditionError, UsageError
from harness.news import News
from harness.parts import Held

DIRECTIONS: Final = {"requests": "request", "answers": "answer"}
VERBS: Final = ("hold", "release", "drop", "cut", "delay", "double", "heal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    A cut, a delay or a doubling that the scenario made.

    Shapes:  text is its step; ends are (src, dst) for each link; bites is the op by which the fabric tells that
             it took a frame, since how many such ops there had been before.
    """

    text: str
    ends: tuple[tuple[str, str], ...]
    api: str
    bites: str
    since: int
    handle: object


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    """A hold that stands, in the scenario's words."""

    direction: str
    api: str
    src: str
    dst: str
    handle: Held

    def is_named(self, api: str, src: str, dst: str, direction: str) -> bool:
        """Whether a scenario means this one; no direction means either."""
        return (self.api, self.src, self.dst) == (api, src, dst) and direction in ("", self.direction)

    def __str__(self) -> str:
        return f"{self.direction} {self.api} {self.src} -> {self.dst}"


class LinkSteps:
    """
    The steps of one run that are about links.

    Shapes:  api_of gives the api that a scenario's word for one means.
    Raises:  PreconditionError for a rule that is healed, or stands at the end, and never took a frame; UsageError
             for a step that is none.
    """

    def __init__(self, cluster: Cluster, marks: Marks, news: News, api_of: Callable[[str], str]) -> None:
        self._cluster = cluster
        self._marks = marks
        self._news = news
        self._api_of = api_of
        self._holds: list[_Hold] = []
        self.rules: list[Standing] = []

    def act(self, words: tuple[str, ...]) -> None:
        """Take a step."""
        fabric = self._cluster.fabric
        match words:
            case ("hold", direction, api, src, "->", dst) if direction in DIRECTIONS:
                self._hold(direction, (api, src, dst), None)
            case ("hold", direction, api, src, "->", dst, "from", number) if direction in DIRECTIONS:
                self._hold(direction, (api, src, dst), self._marks.number(number))
            case ("release", "all"):
                fabric.release_all()
                self._holds.clear()
            case ("release", *direction, api, src, "->", dst) if direction in ([], ["answers"], ["requests"]):
                for held in self._take(api, src, dst, "".join(direction)):
                    fabric.release(held)
            case ("drop", api, src, "->", dst):
                self._drop(api, src, dst)
            case ("cut", src, "->" | "<->" as arrow, dst, *rest) if rest in ([], ["close"]):
                both = arrow == "<->"
                ends = ((src, dst), (dst, src)) if both else ((src, dst),)
                cut = partial(fabric.cut, src, dst, both_ways=both, close=bool(rest))
                self._stand(words, ends, cut, bites="lost")
            case ("delay", direction, api, src, "->", dst, seconds) if direction in DIRECTIONS:
                api = self._api_of(api)
                delay = partial(fabric.delay, api, src, dst, DIRECTIONS[direction], _seconds(seconds))
                self._stand(words, ((src, dst),), delay, bites="delayed", api=api)
            case ("double", api, src, "->", dst):
                api = self._api_of(api)
                self._stand(words, ((src, dst),), partial(fabric.double, api, src, dst), bites="doubled", api=api)
            case ("heal", "all"):
                standing, self.rules = self.rules, []
                self._holds.clear()
                fabric.heal_all()
                for rule in standing:
                    self._prove(rule)
            case ("heal", src, "->", dst):
                self._heal(src, dst)
            case _:
                raise UsageError(f"step {' '.join(words)!r}; expected it in the words of harness/links.py")

    def hold_of(self, api: str, src: str, dst: str, direction: str = "") -> Held:
        """The last hold of that api on that link, in that direction or any; UsageError when there is none."""
        for hold in reversed(self._holds):
            if hold.is_named(api, src, dst, direction):
                return hold.handle
        raise UsageError(f"held {api} {src} -> {dst}: no such hold; expected one of {self._hold_names()}")

    def seen(self) -> dict[str, bool]:
        """Which holds stand, and whether each has stopped anything."""
        return {str(hold): bool(hold.handle.held) for hold in self._holds}

    def prove(self) -> None:
        """Raise PreconditionError when a rule stands that never took a frame."""
        for rule in self.rules:
            self._prove(rule)

    def _hold(self, direction: str, name: tuple[str, str, str], from_offset: int | None) -> None:
        api, src, dst = name
        held = self._cluster.fabric.hold(self._api_of(api), src, dst, DIRECTIONS[direction], from_offset)
        self._holds.append(_Hold(direction=direction, api=api, src=src, dst=dst, handle=held))

    def has_bitten(self, bites: str, src: str, dst: str, api: str = "") -> bool:
        """Whether a rule of that kind that stands on that link has taken a frame; UsageError when none stands."""
        named = self._api_of(api)
        mine = [r for r in self.rules if r.bites == bites and (src, dst) in r.ends and named in ("", r.api)]
        if not mine:
            raise UsageError(f"{bites} {src} -> {dst}: no such rule stands; expected one of {self._rule_names()}")
        return any(map(self._bit, mine))

    def _bit(self, rule: Standing) -> bool:
        return any(self._news.bit(rule.bites, src, dst, api=rule.api, since=rule.since) for src, dst in rule.ends)

    def _prove(self, rule: Standing) -> None:
        if not self._bit(rule):
            raise PreconditionError(f"{rule.text}: no frame was {rule.bites}; expected one at least")

    def _stand(
        self,
        words: tuple[str, ...],
        ends: tuple[tuple[str, str], ...],
        make: Callable[[], object],
        *,
        bites: str,
        api: str = "",
    ) -> None:
        since = self._news.bites
        text = " ".join(words)
        self.rules.append(Standing(text=text, ends=ends, api=api, bites=bites, since=since, handle=make()))

    def _take(self, api: str, src: str, dst: str, direction: str = "") -> list[Held]:
        """Take the holds of that name out of the list, oldest first."""
        self.hold_of(api, src, dst, direction)
        mine = [hold for hold in self._holds if hold.is_named(api, src, dst, direction)]
        self._holds = [hold for hold in self._holds if hold not in mine]
        return [hold.handle for hold in mine]

    def _drop(self, api: str, src: str, dst: str) -> None:
        """Throw held frames away: a cut with a reset takes them, and is healed at once."""
        if not self.hold_of(api, src, dst).held:
            raise PreconditionError(f"drop {api} {src} -> {dst}: nothing is held; expected a frame to throw away")
        fabric = self._cluster.fabric
        cut = fabric.cut(src, dst, close=True)
        for held in self._take(api, src, dst):
            fabric.release(held)
        fabric.heal(cut)

    def _heal(self, src: str, dst: str) -> None:
        mine = [rule for rule in self.rules if (src, dst) in rule.ends]
        if not mine:
            raise UsageError(f"heal {src} -> {dst}: nothing to heal; expected one of {self._rule_names()}")
        for rule in mine:
            self._cluster.fabric.heal(rule.handle)
            self.rules.remove(rule)
        for rule in mine:
            self._prove(rule)

    def _rule_names(self) -> list[str]:
        return [rule.text for rule in self.rules]

    def _hold_names(self) -> list[str]:
        return list(map(str, self._holds))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if seconds > 0:
        return seconds
    raise UsageError(f"delay of {text!r} seconds; expected a number above 0")
