"""
The calls that scenarios, nemeses and random schedules make on links; the same for every driver of the core.

    a frame waits      hold, then release (frames go on, in order) or drop (frames lost, connection reset)
    a frame is lost    cut, then heal; a connection that lost bytes is reset when its cut heals
                       cut_links for a set of links, or for a share of their frames
    a frame is late    delay, then heal
    a request is sent twice, and the second answer dropped    double, then heal
    a connection ends  close_links
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Generic, TypeVar

from harness.fabric.core.effects import Effect
from harness.fabric.core.links import LinkCore
from harness.fabric.core.rules import (
    ALL_OF_1000,
    ANY,
    CLIENTS,
    Cut,
    Delay,
    Direction,
    Double,
    Hold,
    Link,
    Pattern,
    affected,
)
from harness.model import UsageError
from harness.registry import pick
from harness.target.wire import Word

FETCHES: Final = (Word.FETCH, ANY)
_DIRECTIONS: Final = {direction.value: direction for direction in Direction}

H = TypeVar("H", bound=Hold)
T = TypeVar("T")


class LinkVerbs(ABC, Generic[H]):
    """
    Links of a cluster; a link is (src, dst) in the direction of its requests, "*" matches any name.

    Args:
        core: The core that the calls change.
        ends: Nodes that a link may name besides "*"; may grow later.
        apis: Words that a rule may name besides "*": general ones, and the target's own names of messages.

    Raises:
        UsageError: A node, a word or a direction is unknown, or another word than that of a fetch has an offset
            or a topic.
    """

    def __init__(self, core: LinkCore, ends: Mapping[str, object], apis: Collection[str]) -> None:
        self.core = core
        self._ends = ends
        self._apis = {str(name): str(name) for name in (*apis, ANY)}

    # --- what a driver adds ----------------------------------------------------------------------------------
    @abstractmethod
    def run(self, function: Callable[[], T]) -> T:
        """Call the function where the core may be used (the proxy: in its thread), and return its result."""

    @abstractmethod
    def obey(self, effects: Sequence[Effect]) -> None:
        """Carry out the core's effects, in their order."""

    @abstractmethod
    def make_hold(self, pattern: Pattern) -> H:
        """Make a hold, not yet in force."""

    # --- calls -----------------------------------------------------------------------------------------------
    def hold(
        self,
        api: str,
        src: str,
        dst: str,
        direction: str,
        from_offset: int | None = None,
        *,
        topic: str | None = None,
        multi: bool = False,
    ) -> H:
        """
        Stop every matching frame from now on, and all behind it; a fetch's answer matches by its request.

        Args:
            multi: only what asks for several operations, all done or none, and what is behind it.
        """
        pattern = self._pattern(api, src, dst, direction, from_offset=from_offset, topic=topic)
        hold = self.make_hold(replace(pattern, multi=multi))
        self._step(lambda: self.core.place(hold))
        return hold

    def release(self, hold: object) -> None:
        """Let held frames go on, in order; those of a closed connection are dropped."""
        self._step(lambda: self.core.release(hold))

    def release_all(self) -> None:
        """Release every hold, oldest first."""
        self.run(lambda: self._each(self.core.release, self.core.rules.holds))

    def drop(self, hold: object) -> None:
        """Discard held frames and reset their connections."""
        self._step(lambda: self.core.drop(hold))

    def cut(self, src: str, dst: str, *, both_ways: bool = False, close: bool = False) -> Cut:
        """
        Lose everything that is sent on the link, requests and answers; with both_ways on dst -> src too.

        Connections stay open and neither side notices, as in a network partition. With close they are reset at
        once, and every later connection at its first frame.
        """
        self._check_ends(src, dst)
        cut = Cut(links=((src, dst), (dst, src)) if both_ways else ((src, dst),), close=close)
        self._step(lambda: self.core.place(cut))
        return cut

    def cut_links(self, links: Iterable[Link], *, of_1000: int = ALL_OF_1000, seed: int = 0) -> Cut:
        """
        Lose what is sent on these links: all of it silently, or a share of the frames, each with its connection.

        Args:
            seed: decides which frames a share takes.
        """
        found = tuple(links)
        for link in found:
            self._check_ends(*link)
        cut = Cut(links=found, close=of_1000 < ALL_OF_1000, of_1000=of_1000, seed=seed)
        self._step(lambda: self.core.place(cut))
        return cut

    def delay(self, api: str, src: str, dst: str, direction: str, seconds: float) -> Delay:
        """Forward every matching frame this much later than it came; frames behind it do not overtake it."""
        delay = Delay(pattern=self._pattern(api, src, dst, direction), seconds=seconds)
        self._step(lambda: self.core.place(delay))
        return delay

    def double(self, api: str, src: str, dst: str) -> Double:
        """Deliver every matching request twice from now on; its sender sees only the first answer."""
        double = Double(pattern=self._pattern(api, src, dst, Direction.REQUEST))
        self._step(lambda: self.core.place(double))
        return double

    def heal(self, rule: object) -> None:
        """Undo a cut, a delay or a doubling; connections that lost bytes to a cut are reset."""
        self._step(lambda: self.core.heal(rule))

    def lift(self, rule: object) -> None:
        """Undo a rule of any kind: release a hold, heal any other."""
        self._step(lambda: self.core.release(rule) if isinstance(rule, Hold) else self.core.heal(rule))

    def stands(self, rule: object) -> bool:
        """Return True while a rule is in force."""
        return self.run(lambda: self.core.rules.has(rule))

    def affected(self, rule: object) -> Mapping[Link, int]:
        """Return the frames that a rule has taken so far, by link; 0 for a link where it took connections only."""
        return self.run(lambda: affected(rule))

    def heal_all(self) -> None:
        """Undo every cut, delay and doubling, and release every hold."""

        def heal_all() -> None:
            rules = self.core.rules
            self._each(self.core.heal, (*rules.cuts, *rules.delays, *rules.doubles))
            self._each(self.core.release, rules.holds)

        self.run(heal_all)

    def close_links(self, src: str, dst: str) -> int:
        """Reset the link's connections once; return how many there were."""
        self._check_ends(src, dst)

        def close() -> int:
            count = len(self.core.on((src, dst)))
            self.obey(self.core.close((src, dst)))
            return count

        return self.run(close)

    def connections(self, src: str, dst: str) -> int:
        """Count the link's connections that are open now."""
        self._check_ends(src, dst)
        return self.run(lambda: len(self.core.on((src, dst))))

    # --- helpers ---------------------------------------------------------------------------------------------
    def _step(self, step: Callable[[], Sequence[Effect]]) -> None:
        self.run(lambda: self.obey(step()))

    def _each(self, step: Callable[[object], Sequence[Effect]], rules: Iterable[object]) -> None:
        for rule in tuple(rules):
            self.obey(step(rule))

    def _pattern(
        self,
        api: str,
        src: str,
        dst: str,
        direction: str,
        *,
        from_offset: int | None = None,
        topic: str | None = None,
    ) -> Pattern:
        self._check_ends(src, dst)
        api = pick("word", self._apis, api)
        if (from_offset, topic) != (None, None) and api not in FETCHES:
            raise UsageError(
                f"links: {api} with from_offset={from_offset}, topic={topic!r}; expected neither: "
                "only a fetch is known by its offsets"
            )
        return Pattern(
            api=api,
            src=src,
            dst=dst,
            direction=pick("direction", _DIRECTIONS, direction),
            from_offset=from_offset,
            topic=topic,
        )

    def _check_ends(self, *names: str) -> None:
        for name in names:
            pick("node", {ANY: ANY, CLIENTS: CLIENTS, **self._ends}, name)
