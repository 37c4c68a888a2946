"""
The link core: the only place that decides what the rules in force do to each frame.

A driver puts frames into lanes. It calls `judge` for a lane whose first frame may go, and the other steps when
rules or connections change. Every step returns effects, which the driver carries out in their order. The proxy
(harness/fabric/proxy.py) drives the core with sockets, the simulator (targets/simulator/engine/network.py) in
virtual time.

    cut      the frame is lost; a connection that lost frames is reset when the cut heals; the end of a side waits;
             one that takes a share of the frames comes last, and resets the connection of each
    hold     the frame, and all behind it, stops until the hold is released or dropped
    delay    the frame, and all behind it, stops until the delay after its arrival is over
    double   the request is forwarded twice; its second answer is dropped before any rule sees it

The first rule that matches decides, in this order. Rules apply when a frame is judged, not when it was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness import events
from harness.fabric.core.effects import (
    Effect,
    Held,
    Later,
    Lose,
    Over,
    Pass,
    Record,
    Reset,
    Wake,
    frame_fields,
    rule_fields,
)
from harness.fabric.core.lanes import Connection, Frame, Lane
from harness.fabric.core.rules import (
    ALL_OF_1000,
    CLIENTS,
    Cut,
    Delay,
    Double,
    Hold,
    Link,
    Rules,
    Seen,
    link_matches,
)
from harness.fabric.limits import DOUBLED_ANSWERS_MAX


class LinkCore:
    """
    The rules in force, and the connections that they apply to.

    Attributes:
        connections: Oldest first. Drivers add and remove them.
    """

    def __init__(self) -> None:
        self.rules = Rules()
        self.connections: dict[Connection, None] = {}

    # --- frames ----------------------------------------------------------------------------------------------
    def judge(self, connection: Connection, lane: Lane, now_ns: int) -> Sequence[Effect]:
        """Decide what happens to a lane's first frame now; without effects it waits until lanes are woken."""
        frame, rules = lane.frames[0], self.rules
        if rules.idle:
            return (Pass(lane.frames.popleft()),)
        link = connection.link if frame.link is None else frame.link
        cut = rules.cut_of(link)
        if cut is not None:
            return () if frame.end else self._lose(connection, lane, frame, cut)
        seen = None if frame.end else frame.seen
        if seen is None:
            return (Pass(lane.frames.popleft()),)
        hold = rules.hold_of(seen)
        if hold is not None:
            return _stop(frame, seen, hold)
        delay = rules.delay_of(seen)
        if delay is not None and frame.came_ns + delay.delay_ns > now_ns:
            return _delay(frame, seen, delay)
        loss = rules.loss_of(link)
        if loss is not None and not frame.copy and loss.takes_next():
            return self._lose(connection, lane, frame, loss)
        if delay is not None:
            delay.late[seen.link] = delay.late.get(seen.link, 0) + 1
        lane.frames.popleft()
        double = None if frame.copy or seen.correlation < 0 else rules.double_of(seen)
        if double is None or len(connection.awaited) >= DOUBLED_ANSWERS_MAX:
            return (Pass(frame),)
        double.frames_doubled += 1
        connection.awaited += ((seen.correlation, False), (seen.correlation, True))
        lane.frames.appendleft(replace(frame, copy=True, hold=None))
        return Record(events.Doubled(**frame_fields(seen))), Pass(frame)

    def judge_client(self, connection: Connection, lane: Lane, node: str) -> Sequence[Effect]:
        """Decide what happens to a lane's first frame between a client and a node: cuts alone are for these."""
        cut = self.rules.cut_of((CLIENTS, node))
        if cut is None:
            return (Pass(lane.frames.popleft()),)
        if lane.frames[0].end:
            return ()
        cut.lost[CLIENTS, node] = cut.lost.get((CLIENTS, node), 0) + 1
        connection.torn = True
        return (*_bite(cut, (CLIENTS, node)), Lose(lane.frames.popleft()))

    def _lose(self, connection: Connection, lane: Lane, frame: Frame, cut: Cut) -> list[Effect]:
        link = connection.link if frame.link is None else frame.link
        cut.lost[link] = cut.lost.get(link, 0) + 1
        connection.torn = True
        lost: list[Effect] = [*_bite(cut, link)]
        if cut.close:
            return lost + self.reset(connection, "its link is cut")
        lane.frames.popleft()
        return [*lost, *_dropped(frame, "its link is cut"), Lose(frame)]

    # --- connections -----------------------------------------------------------------------------------------
    def on(self, link: Link) -> list[Connection]:
        """List the open connections on a link, in which either end may be "*"."""
        return [
            each
            for each in self.connections
            if not each.over and any(link_matches(link, theirs) for theirs in each.links)
        ]

    def reset(self, connection: Connection, reason: str) -> list[Effect]:
        """End a connection; all its frames are lost."""
        if connection.over:
            return []
        connection.over = True
        return [*(record for lane in connection.lanes for record in _clear(lane, reason)), Reset(connection)]

    def close(self, link: Link) -> list[Effect]:
        """Reset the link's connections once."""
        closed = self.on(link)
        resets = [effect for each in closed for effect in self.reset(each, "its link was closed")]
        return [Record(events.Close(link=link, connections=len(closed))), *resets]

    def lose_receiver(self, lane: Lane) -> list[Record]:
        """Drop a lane's frames, because the receiving side is gone."""
        lane.open = False
        return _clear(lane, "its destination's connection is closed")

    # --- rules -----------------------------------------------------------------------------------------------
    def place(self, rule: Hold | Cut | Delay | Double) -> list[Effect]:
        """Put a rule in force; a cut with `close` resets its links' connections at once."""
        match rule:
            case Hold():
                self.rules.holds.append(rule)
                return [Record(events.Hold(**rule_fields(rule.pattern)))]
            case Delay():
                self.rules.delays.append(rule)
                return [Record(events.Delay(**rule_fields(rule.pattern), seconds=rule.seconds))]
            case Double():
                self.rules.doubles.append(rule)
                return [Record(events.Double(**rule_fields(rule.pattern)))]
            case Cut():
                self.rules.cuts.append(rule)
                share = None if rule.takes_all else rule.of_1000 / ALL_OF_1000
                cuts = (events.Cut(link=link, close=rule.close, share=share) for link in rule.links)
                effects: list[Effect] = [*map(Record, cuts)]
                for connection in self._under(rule) if rule.close and rule.takes_all else ():
                    for link in filter(rule.covers, connection.links):
                        effects += _bite(rule, link)
                    effects += self.reset(connection, "its link is cut")
                return effects

    def heal(self, rule: object) -> list[Effect]:
        """Undo a cut, a delay or a doubling; ignore a rule that is not in force."""
        effects: list[Effect] = []
        match rule:
            case Cut() if rule in self.rules.cuts:
                self.rules.cuts.remove(rule)
                effects += (Record(events.Heal(link=link)) for link in rule.links)
                for connection in self._under(rule):
                    if connection.torn and not any(map(self.rules.cut_of, connection.links)):
                        effects += self.reset(connection, "its connection has lost bytes to a cut")
            case Delay() if rule in self.rules.delays:
                self.rules.delays.remove(rule)
                effects.append(Record(events.Heal(**rule_fields(rule.pattern))))
            case Double() if rule in self.rules.doubles:
                self.rules.doubles.remove(rule)
                effects.append(Record(events.Heal(**rule_fields(rule.pattern))))
        return [*effects, Wake()]

    def release(self, hold: object) -> list[Effect]:
        """Let held frames go on, in order; ignore a hold that is not in force."""
        if not isinstance(hold, Hold) or hold not in self.rules.holds:
            return []
        self.rules.holds.remove(hold)
        return [Record(events.Release(**rule_fields(hold.pattern))), Over(hold), Wake()]

    def drop(self, hold: object) -> list[Effect]:
        """Discard held frames and reset their connections."""
        effects = self.release(hold)
        if not effects:
            return []
        wake = effects.pop()
        for connection in self.connections:
            if any(lane.frames and lane.frames[0].hold is hold for lane in connection.lanes):
                effects.append(Record(events.Close(link=connection.link, connections=1)))
                effects += self.reset(connection, "its hold was dropped")
        return [*effects, wake]

    def _under(self, cut: Cut) -> list[Connection]:
        return [each for each in self.connections if not each.over and any(map(cut.covers, each.links))]


def _stop(frame: Frame, seen: Seen, hold: Hold) -> tuple[Effect, ...]:
    if frame.hold is hold:
        return ()
    frame.hold = hold
    return Record(events.Held(**frame_fields(seen))), Held(hold, seen)


def _delay(frame: Frame, seen: Seen, delay: Delay) -> tuple[Effect, ...]:
    later = Later(frame.came_ns + delay.delay_ns)
    if seen.link in delay.bitten:
        return (later,)
    delay.bitten.add(seen.link)
    return Record(events.Delayed(**frame_fields(seen))), later


def _bite(cut: Cut, link: Link) -> tuple[Record, ...]:
    """Record the first frame or connection that a cut takes on a link."""
    if link in cut.bitten:
        return ()
    cut.bitten.add(link)
    return (Record(events.Lost(link=link)),)


def _dropped(frame: Frame, reason: str) -> tuple[Record, ...]:
    """Record the loss of a frame that was held; other losses are not recorded, as on a network."""
    seen = None if frame.hold is None else frame.seen
    return () if seen is None else (Record(events.Dropped(**frame_fields(seen), reason=reason)),)


def _clear(lane: Lane, reason: str) -> list[Record]:
    dropped = [record for frame in lane.frames for record in _dropped(frame, reason)]
    lane.frames.clear()
    return dropped
