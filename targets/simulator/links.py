"""
The verbs of the links, in the fabric's words and meaning: what scenarios, nemeses and schedules do to the network.

    a frame waits      hold, then release or drop        a frame is late     delay, then heal
    a frame is lost    cut, then heal                    it comes twice      double, then heal
    a connection ends  close_links

A link is (from, to) in the direction of its requests. "*" stands for any name, "zookeeper" for ZooKeeper.
"""

from __future__ import annotations

from harness import events
from harness.fabric.rules import Cut, Direction, Link, Pattern, link_matches
from harness.model import UsageError
from harness.parts import Held
from targets.simulator.clock import NS_PER_S
from targets.simulator.network import Network
from targets.simulator.pipe import DIRECTIONS, Pipe
from targets.simulator.rules import ANY, APIS, SimDelay, SimDouble, SimHold


class SimLinks:
    """
    The links of a world; see harness.parts.Links for the calls that every ground has.

    Raises:  UsageError for a name, an api or a direction that is none.
    """

    def __init__(self, network: Network) -> None:
        """Take the network that they are of."""
        self._network = network

    def hold(
        self,
        api: str,
        src: str,
        dst: str,
        direction: str,
        from_offset: int | None = None,
        *,
        topic: str | None = None,
    ) -> SimHold:
        """Stop every such frame from now on, and all behind it; a Fetch's answer is known by its request."""
        hold = SimHold(self._pattern(api, src, dst, direction, from_offset=from_offset, topic=topic))
        self._network.rules.holds.append(hold)
        self._network.tell(events.Hold(**hold.pattern.value()))
        return hold

    def release(self, hold: Held) -> None:
        """Let held frames go on, in order."""
        assert isinstance(hold, SimHold), "a hold is released where it was made"
        if hold in self._network.rules.holds:
            self._network.rules.holds.remove(hold)
            self._network.tell(events.Release(**hold.pattern.value()))
            self._network.wake()

    def release_all(self) -> None:
        """Release every hold, oldest first."""
        for hold in list(self._network.rules.holds):
            self.release(hold)

    def drop(self, hold: SimHold) -> None:
        """Throw held frames away and reset their connections."""
        if hold not in self._network.rules.holds:
            return
        self._network.rules.holds.remove(hold)
        self._network.tell(events.Release(**hold.pattern.value()))
        for pipe in list(self._network.pipes.values()):
            if any(lane.frames and lane.frames[0].hold is hold for lane in pipe.lanes):
                self._network.tell(events.Close(link=pipe.link, connections=1))
                self._network.reset(pipe, "its hold was dropped")
        self._network.wake()

    def cut(self, src: str, dst: str, *, both_ways: bool = False, close: bool = False) -> Cut:
        """Lose all that is sent on the link, untold; with close connections are reset, now and later."""
        return self.cut_links(((src, dst), (dst, src)) if both_ways else ((src, dst),), close=close)

    def cut_links(self, links: tuple[Link, ...], *, close: bool = False) -> Cut:
        """Cut several links as one; "*" stands for any name."""
        for src, dst in links:
            self._check_ends(src, dst)
        cut = Cut(links=links, close=close)
        self._network.rules.cuts.append(cut)
        for link in links:
            self._network.tell(events.Cut(link=link, close=close))
        for pipe in [
            pipe for pipe in self._network.pipes.values() if close and not pipe.outside and cut.covers(pipe.link)
        ]:
            self._network.note_lost(cut, pipe.link)
            self._network.reset(pipe, "its link is cut")
        return cut

    def delay(self, api: str, src: str, dst: str, direction: str, seconds: float) -> SimDelay:
        """Hand every such frame on that much later than it came."""
        delay = SimDelay(self._pattern(api, src, dst, direction), int(seconds * NS_PER_S))
        self._network.rules.delays.append(delay)
        self._network.tell(events.Delay(**delay.pattern.value(), seconds=seconds))
        return delay

    def double(self, api: str, src: str, dst: str) -> SimDouble:
        """Deliver every such request twice from now on; its sender sees one answer."""
        double = SimDouble(self._pattern(api, src, dst, Direction.REQUEST.value))
        self._network.rules.doubles.append(double)
        self._network.tell(events.Double(**double.pattern.value()))
        return double

    def heal(self, rule: object) -> None:
        """Undo a cut, a delay or a doubling; connections that lost frames to the cut are reset."""
        rules = self._network.rules
        match rule:
            case Cut() if rule in rules.cuts:
                rules.cuts.remove(rule)
                for link in rule.links:
                    self._network.tell(events.Heal(link=link))
                for pipe in list(self._network.pipes.values()):
                    if pipe.torn and rule.covers(pipe.link) and rules.cut_of(pipe.link) is None:
                        self._network.reset(pipe, "its connection has lost bytes to a cut")
            case SimDelay() if rule in rules.delays:
                rules.delays.remove(rule)
                self._network.tell(events.Heal(**rule.pattern.value()))
            case SimDouble() if rule in rules.doubles:
                rules.doubles.remove(rule)
                self._network.tell(events.Heal(**rule.pattern.value()))
        self._network.wake()

    def heal_all(self) -> None:
        """Undo every cut, delay and doubling, and release every hold."""
        for rule in (*self._network.rules.cuts, *self._network.rules.delays, *self._network.rules.doubles):
            self.heal(rule)
        self.release_all()

    def close_links(self, src: str, dst: str) -> int:
        """Reset the link's connections once; give how many there were."""
        self._check_ends(src, dst)
        pipes = self._on(src, dst)
        self._network.tell(events.Close(link=(src, dst), connections=len(pipes)))
        for pipe in pipes:
            self._network.reset(pipe, "its link was closed")
        return len(pipes)

    def connections(self, src: str, dst: str) -> int:
        """Count the link's connections that are open now."""
        self._check_ends(src, dst)
        return len(self._on(src, dst))

    def close(self) -> None:
        """End nothing: links are gone with their world."""

    def _on(self, src: str, dst: str) -> list[Pipe]:
        pipes = self._network.pipes.values()
        return [p for p in pipes if not (p.over or p.outside) and link_matches((src, dst), p.link)]

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
        if api not in APIS or direction not in [d.value for d in DIRECTIONS]:
            raise UsageError(
                f"links: {api} {direction}; expected one of {', '.join(sorted(APIS))}, request or answer"
            )
        return Pattern(
            api=api, src=src, dst=dst, direction=Direction(direction), from_offset=from_offset, topic=topic
        )

    def _check_ends(self, *names: str) -> None:
        for name in names:
            if name != ANY and name not in self._network.ends:
                raise UsageError(f"links: node {name!r}; expected one of {', '.join(self._network.ends)} or {ANY}")
