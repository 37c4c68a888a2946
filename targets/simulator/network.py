"""
The simulated network: connections between nodes, clients and ZooKeeper, in virtual time.

Frames of one connection and direction arrive in order; between connections chance decides, where there is any.
What rules do to frames is the core's (harness/fabric/core/links.py); it judges a frame when it would arrive, so
that what was sent before the rule is held or lost as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.fabric.core.effects import Effect, Held, Later, Lose, Over, Pass, Record, Reset, Wake
from harness.fabric.core.links import LinkCore
from targets.broker.core.messages import Request
from targets.simulator.clock import NS_PER_MS, Clock
from targets.simulator.pipe import ANSWERS, DIRECTIONS, REQUESTS, End, Frame, Pipe
from targets.simulator.witness import Recorder, Witness


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
        self.record: Recorder | None = None
        self.core = LinkCore()
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
        pipe = Pipe((src, dst), self._dialled, channel, outside)
        self.pipes[pipe.number] = pipe
        if not outside:
            self.core.connections[pipe] = None
        end = self.ends.get(dst)
        if end is None or not end.listening:
            self.refused += 1
            pipe.lanes[REQUESTS].open = False
            pipe.over = True
            self._end_later(pipe)
        return pipe

    def send(
        self,
        pipe: Pipe,
        direction: int,
        body: Any,
        request: Request | None = None,
        *,
        tag: int = -1,
        end: bool = False,
    ) -> None:
        """Put a frame on its way, unless its receiver is gone or it is a surplus answer."""
        lane = pipe.lanes[direction]
        if pipe.over or not lane.open or (direction == ANSWERS and not pipe.takes_answer(tag)):
            return
        due = max(self._clock.now_ns + self._draw(), lane.last_due_ns)
        lane.last_due_ns = due
        lane.frames.append(Frame(due, pipe.link, DIRECTIONS[direction], body, request, tag, end=end))
        if lane.planned_ns < 0:
            self._plan(pipe, direction, due)

    def hang_up(self, pipe: Pipe, side: int) -> None:
        """End one side: REQUESTS is who sends requests. What it sent still arrives, and then the end."""
        if pipe.over:
            return
        self.obey(self.core.lose_receiver(pipe.lanes[1 - side]))
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
        self.obey(self.core.reset(pipe, reason))

    def _end_later(self, pipe: Pipe) -> None:
        self._clock.after(self._draw(), ("ended", pipe.number))

    def on_ended(self, number: int) -> None:
        """Tell those who are still there that a connection was reset or refused."""
        pipe = self.pipes.get(number)
        if pipe is not None:
            self._remove(pipe)
            for direction in (REQUESTS, ANSWERS):
                end = self.ends.get(pipe.receiver(direction))
                if pipe.lanes[direction].open and end is not None:
                    end.on_end(pipe)

    def _remove(self, pipe: Pipe) -> None:
        pipe.over = True
        self.pipes.pop(pipe.number, None)
        self.core.connections.pop(pipe, None)

    # --- frames ----------------------------------------------------------------------------------------------
    def _draw(self) -> int:
        return self._low_ns + int(self._clock.random.random() * self._span_ns) if self._span_ns else self._low_ns

    def _plan(self, pipe: Pipe, direction: int, at_ns: int) -> None:
        pipe.lanes[direction].planned_ns = at_ns
        self._clock.at(at_ns, ("frame", pipe.number, direction, at_ns))

    def _plan_next(self, pipe: Pipe, direction: int) -> None:
        lane = pipe.lanes[direction]
        if lane.frames and lane.planned_ns < 0:
            self._plan(pipe, direction, max(lane.frames[0].came_ns, self._clock.now_ns))

    def on_due(self, number: int, direction: int, planned_ns: int) -> None:
        """Judge a lane's first frame, and hand it on, lose it or leave it where it is."""
        pipe = self.pipes.get(number)
        if pipe is None or pipe.over or pipe.lanes[direction].planned_ns != planned_ns:
            return
        lane = pipe.lanes[direction]
        lane.planned_ns = -1
        if not lane.frames:
            return
        effects: Iterable[Effect]
        if pipe.outside:
            effects = (Pass(lane.frames.popleft()),)
        else:
            effects = self.core.judge(pipe, lane, self._clock.now_ns)
        for effect in effects:
            match effect:
                case Pass(frame=Frame() as frame):
                    self._arrive(pipe, direction, frame)
                case Lose():
                    self._plan_next(pipe, direction)
                case Later(at_ns=at_ns):
                    self._plan(pipe, direction, at_ns)
                case _:
                    self.obey((effect,))

    def _arrive(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        self._plan_next(pipe, direction)
        end = self.ends[pipe.receiver(direction)]
        if frame.end:
            # Whoever hears the end closes too, and who has ended receives nothing any more.
            self._remove(pipe)
            end.on_end(pipe)
            return
        if self.record is not None and not (pipe.outside or frame.copy):
            self._witness.passed(self.record, pipe, direction, frame)
        end.on_frame(pipe, direction, frame)

    # --- what the core says ----------------------------------------------------------------------------------
    def obey(self, effects: Iterable[Effect]) -> None:
        """Do what the core says, in its order."""
        for effect in effects:
            match effect:
                case Record():
                    if self.record is not None:
                        self.record(effect.event)
                case Held():
                    effect.hold.note_held(effect.seen)
                case Over():
                    effect.hold.note_over()
                case Reset(connection=Pipe() as pipe):
                    self._end_later(pipe)
                case Wake():
                    self._wake()
                case _:
                    raise AssertionError(f"{effect}: expected an effect that is of no lane")

    def _wake(self) -> None:
        """Judge again every first frame that waits."""
        for pipe in self.pipes.values():
            for direction, lane in enumerate(pipe.lanes):
                if lane.frames and lane.frames[0].came_ns <= self._clock.now_ns and not pipe.over:
                    self._plan(pipe, direction, self._clock.now_ns)
