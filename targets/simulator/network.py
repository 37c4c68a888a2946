"""
The simulated network: connections between nodes, clients and ZooKeeper, under the rules that stand on their links.

Rules:   frames of one connection and direction arrive in order; between connections chance decides, where there is
         any. A rule judges a frame when it would arrive: what was sent before the rule is held or lost as well.
         The end of a side comes after all that it sent, so that what a killed node had sent still arrives.
         A connection that lost frames to a cut is reset when the cut heals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness import events
from harness.fabric.rules import Cut, Link, seen_value
from targets.broker.core.messages import Request
from targets.simulator.clock import NS_PER_MS, Clock
from targets.simulator.pipe import ANSWERS, DIRECTIONS, REQUESTS, End, Frame, Pipe
from targets.simulator.rules import Standing, seen_of
from targets.simulator.witness import Record, Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a frame is under way: chance draws between the two, the second excluded."""

    low_ns: int = NS_PER_MS // 10
    high_ns: int = NS_PER_MS // 10


class Network:
    """
    All connections of a world.

    Shapes:  ends are who can be dialled or dial, by name. record is None while nobody listens. refused counts the
             connections that nobody took.
    """

    def __init__(self, clock: Clock, latency: Latency, witness: Witness) -> None:
        self.ends: dict[str, End] = {}
        self.pipes: dict[int, Pipe] = {}
        self.record: Record | None = None
        self.rules = Standing()
        self.refused = 0
        self._clock = clock
        self._low_ns = latency.low_ns
        self._span_ns = latency.high_ns - latency.low_ns
        self._witness = witness
        self._dialled = 0

    # --- connections -----------------------------------------------------------------------------------------
    def dial(self, src: str, dst: str, channel: str, *, outside: bool = False) -> Pipe:
        """Open a connection; where nobody listens it ends after a while, as one that is refused."""
        self._dialled += 1
        pipe = Pipe(self._dialled, (src, dst), channel, outside)
        self.pipes[pipe.number] = pipe
        end = self.ends.get(dst)
        if end is None or not end.listening:
            self.refused += 1
            pipe.lanes[REQUESTS].open = False
            self._end_later(pipe)
        return pipe

    def send(
        self, pipe: Pipe, direction: int, body: Any, request: Request | None = None, *, end: bool = False
    ) -> None:
        """Put a frame on its way; it is gone when nobody is there to receive it."""
        lane = pipe.lanes[direction]
        if pipe.over or not lane.open:
            return
        due = max(self._clock.now_ns + self._draw(), lane.last_due_ns)
        lane.last_due_ns = due
        lane.frames.append(Frame(due, body, request, end))
        if lane.planned_ns < 0:
            self._plan(pipe, direction, due)

    def hang_up(self, pipe: Pipe, side: int) -> None:
        """End one side: REQUESTS is who sends requests. What it sent still arrives, and then the end."""
        if pipe.over:
            return
        self._forget(pipe, 1 - side)
        if pipe.lanes[side].open:
            self.send(pipe, side, None, end=True)
        else:
            self._remove(pipe)

    def hang_up_all(self, name: str) -> None:
        """End every connection of a process that is gone."""
        for pipe in [pipe for pipe in self.pipes.values() if name in pipe.link]:
            for side, end in enumerate(pipe.link):  # both, where it was connected to itself
                if end == name:
                    self.hang_up(pipe, side)

    def reset(self, pipe: Pipe, reason: str) -> None:
        """End both sides at once, whatever is under way."""
        if not pipe.over:
            for direction in (REQUESTS, ANSWERS):
                self._drop(pipe, direction, reason)
            self._end_later(pipe)

    def _end_later(self, pipe: Pipe) -> None:
        pipe.over = True
        self._clock.after(self._draw(), ("ended", pipe.number))

    def on_ended(self, number: int) -> None:
        """Tell those who are still there that a connection was reset or refused."""
        pipe = self.pipes.pop(number, None)
        if pipe is not None:
            for direction in (REQUESTS, ANSWERS):
                end = self.ends.get(pipe.receiver(direction))
                if pipe.lanes[direction].open and end is not None:
                    end.on_end(pipe)

    def _remove(self, pipe: Pipe) -> None:
        pipe.over = True
        self.pipes.pop(pipe.number, None)

    def _forget(self, pipe: Pipe, direction: int) -> None:
        """Nobody receives in that direction any more."""
        pipe.lanes[direction].open = False
        self._drop(pipe, direction, "its destination's connection is closed")

    def _drop(self, pipe: Pipe, direction: int, reason: str) -> None:
        frames = pipe.lanes[direction].frames
        for frame in frames:
            self._record_drop(pipe, direction, frame, reason)
        frames.clear()

    # --- frames ----------------------------------------------------------------------------------------------
    def _draw(self) -> int:
        return self._low_ns + int(self._clock.random.random() * self._span_ns) if self._span_ns else self._low_ns

    def _plan(self, pipe: Pipe, direction: int, at_ns: int) -> None:
        pipe.lanes[direction].planned_ns = at_ns
        self._clock.at(at_ns, ("frame", pipe.number, direction, at_ns))

    def _plan_next(self, pipe: Pipe, direction: int) -> None:
        lane = pipe.lanes[direction]
        if lane.frames and lane.planned_ns < 0:
            self._plan(pipe, direction, max(lane.frames[0].due_ns, self._clock.now_ns))

    def on_due(self, number: int, direction: int, planned_ns: int) -> None:
        """Judge a lane's first frame, and hand it on, lose it or leave it where it is."""
        pipe = self.pipes.get(number)
        if pipe is None or pipe.over or pipe.lanes[direction].planned_ns != planned_ns:
            return
        lane = pipe.lanes[direction]
        lane.planned_ns = -1
        if not lane.frames:
            return
        frame = lane.frames[0]
        if not (pipe.outside or self.rules.idle) and not self._passes(pipe, direction, frame):
            return
        lane.frames.popleft()
        self._plan_next(pipe, direction)
        if frame.end:
            self._end_side(pipe, direction)
            return
        if self.record is not None and not pipe.outside:
            self._witness.passed(self.record, pipe, direction, frame)
        self.ends[pipe.receiver(direction)].on_frame(pipe, direction, frame)

    def _end_side(self, pipe: Pipe, direction: int) -> None:
        # Whoever hears the end closes too, and who has ended receives nothing any more.
        self._remove(pipe)
        self.ends[pipe.receiver(direction)].on_end(pipe)

    def _passes(self, pipe: Pipe, direction: int, frame: Frame) -> bool:
        """Judge the first frame by the rules that stand now; what does not pass is dealt with here."""
        lane = pipe.lanes[direction]
        cut = self.rules.cut_of(pipe.link)
        if cut is not None:
            if not frame.end:
                self._lose(pipe, direction, frame, cut)
            return False
        if frame.end:
            return True
        seen = seen_of(pipe.link, frame.request, DIRECTIONS[direction])
        hold = self.rules.hold_of(seen)
        if hold is not None:
            if frame.hold is not hold:
                frame.hold = hold
                hold.note_held(seen)
                self.tell(events.Held(**seen_value(seen)))
            return False
        delay = self.rules.delay_of(seen)
        if delay is not None and (late := frame.due_ns + delay.delay_ns) > self._clock.now_ns:
            if pipe.link not in delay.bitten:
                delay.bitten.add(pipe.link)
                self.tell(events.Delayed(**seen_value(seen)))
            self._plan(pipe, direction, late)
            return False
        # ZooKeeper's own requests are numbered: a second one would not be taken for the first.
        twice = direction == REQUESTS and frame.request is not None and not frame.copy
        if twice and self.rules.doubled(seen):
            lane.frames.insert(1, Frame(frame.due_ns, frame.body, frame.request, copy=True))
            self.tell(events.Doubled(**seen_value(seen)))
        return True

    def _lose(self, pipe: Pipe, direction: int, frame: Frame, cut: Cut) -> None:
        cut.frames_lost += 1
        self.note_lost(cut, pipe.link)
        pipe.torn = True
        if cut.close:
            self.reset(pipe, "its link is cut")
            return
        pipe.lanes[direction].frames.popleft()
        self._record_drop(pipe, direction, frame, "its link is cut")
        self._plan_next(pipe, direction)

    def _record_drop(self, pipe: Pipe, direction: int, frame: Frame, reason: str) -> None:
        if frame.hold is not None:
            seen = seen_of(pipe.link, frame.request, DIRECTIONS[direction])
            self.tell(events.Dropped(**seen_value(seen), reason=reason))

    def note_lost(self, cut: Cut, link: Link) -> None:
        """Record that a cut bit on a link, the first time that it does."""
        if link not in cut.bitten:
            cut.bitten.add(link)
            self.tell(events.Lost(link=link))

    def tell(self, event: events.Event) -> None:
        """Record one op of the fabric's, when somebody listens."""
        if self.record is not None:
            self.record(event)

    def wake(self) -> None:
        """Judge again every first frame that waits."""
        for pipe in self.pipes.values():
            for direction, lane in enumerate(pipe.lanes):
                if lane.frames and lane.frames[0].due_ns <= self._clock.now_ns and not pipe.over:
                    self._plan(pipe, direction, self._clock.now_ns)
