"""
The simulated network: connections between nodes, clients and services, in virtual time.

Frames of one connection and direction arrive in order; between connections the order is random in a random world.
The link core (harness/fabric/core/links.py) applies the rules. It judges a frame when it would arrive, so that a
rule also holds or loses frames that were sent before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from harness.events import Event
from harness.fabric.core.effects import Effect, Held, Later, Lose, Over, Pass, Record, Reset, Wake
from harness.fabric.core.links import LinkCore
from harness.fabric.core.rules import CLIENTS, Link
from harness.packets import LATE_MS, LOST_PERCENT, Packets
from targets.simulator.engine.clock import NS_PER_MS, Clock
from targets.simulator.engine.pipe import ANSWERS, REQUESTS, End, Frame, Pipe

P = TypeVar("P", bound=Pipe)
# Receives the fabric's events.
Recorder: TypeAlias = Callable[[Event], None]


class Witness(Protocol):
    """Records what links pass: a frame passes when it is delivered, not while it is held."""

    def passed(self, record: Recorder, pipe: Pipe, direction: int, frame: Frame) -> None:
        """Record a delivered frame if the history has an event for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A frame's time in flight: drawn between the two bounds, the second excluded."""

    low_ns: int = NS_PER_MS // 10
    high_ns: int = NS_PER_MS // 10


# What a frame takes of a throttled interface, and how long it waits for its turn at the most; and TCP's least time
# until it sends a packet again, on Linux.
THROTTLED_MS: Final = 20
QUEUED_MS: Final = 2_000
SENT_AGAIN_MS: Final = 200


class Network:
    """
    All connections of a world.

    Attributes:
        ends: the endpoints that open or accept connections, by name.
        record: None while no history listens.
        refused: the number of refused connections.
        impairments: what becomes of the packets of nodes, and of how many frames it has.
        dialled: the number of connections that were ever opened, which is the number of the newest.
    """

    def __init__(self, clock: Clock, latency: Latency, witness: Witness) -> None:
        self.ends: dict[str, End] = {}
        self.pipes: dict[int, Pipe] = {}
        self.record: Recorder | None = None
        self.core = LinkCore()
        self.refused = 0
        self.impairments: dict[tuple[str, Packets], int] = {}
        self._clock = clock
        self._low_ns = latency.low_ns
        self._span_ns = latency.high_ns - latency.low_ns
        self._witness = witness
        self.dialled = 0

    # --- connections -----------------------------------------------------------------------------------------
    def dial(
        self,
        src: str,
        dst: str,
        channel: str,
        make: Callable[[Link, int, str, bool], P],
        *,
        outside: bool = False,
    ) -> P:
        """
        Open a connection; if nothing listens it ends after a while, as a refused one does.

        Args:
            make: the system's class of connections.
        """
        self.dialled += 1
        pipe = make((src, dst), self.dialled, channel, outside)
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
        request: Any = None,
        *,
        tag: int = -1,
        end: bool = False,
    ) -> None:
        """Send a frame, unless its receiver is gone or it is a surplus answer."""
        lane = pipe.lanes[direction]
        if pipe.over or not lane.open or (direction == ANSWERS and not pipe.takes_answer(tag)):
            return
        due = self._clock.now_ns + self._draw()
        if self.impairments:
            due = self._due_ns(pipe.receiver(direction), due, lane.last_due_ns)
        due = max(due, lane.last_due_ns)
        lane.last_due_ns = due
        lane.frames.append(pipe.frame(due, direction, body, request, tag, end=end))
        if lane.planned_ns < 0:
            self._plan(pipe, direction, due)

    def hang_up(self, pipe: Pipe, side: int) -> None:
        """Close one side: REQUESTS is the side that sends requests. Its frames still arrive, and then the end."""
        if pipe.over:
            return
        self.obey(self.core.lose_receiver(pipe.lanes[1 - side]))
        if pipe.lanes[side].open:
            self.send(pipe, side, None, end=True)
        else:
            self._remove(pipe)

    def hang_up_all(self, name: str) -> None:
        """Close every connection of a process that has ended."""
        for pipe in [pipe for pipe in self.pipes.values() if name in pipe.link]:
            for side, end in enumerate(pipe.link):  # both sides of a connection to itself
                if end == name:
                    self.hang_up(pipe, side)

    def reset(self, pipe: Pipe, reason: str) -> None:
        """Close both sides at once and drop frames in flight."""
        self.obey(self.core.reset(pipe, reason))

    def _end_later(self, pipe: Pipe) -> None:
        self._clock.after(self._draw(), ("ended", pipe.number))

    def on_ended(self, number: int) -> None:
        """Tell the remaining sides that a connection was reset or refused."""
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

    def let_pass(self, name: str, how: Packets) -> None:
        """Let packets of a node pass again; TCP sends those that were dropped once more."""
        if self.impairments.pop((name, how), None) is not None:
            self._wake()

    def _due_ns(self, receiver: str, due_ns: int, last_due_ns: int) -> int:
        """Return when a frame arrives that would be due then, by what becomes of its receiver's packets."""
        if (receiver, Packets.LOSSY) in self.impairments:
            self.impairments[receiver, Packets.LOSSY] += 1
            chance = self._clock.random
            late_ms = chance.uniform(0, 2 * LATE_MS)
            late_ms += SENT_AGAIN_MS if chance.random() < LOST_PERCENT / 100 else 0
            due_ns += round(late_ms * NS_PER_MS)
        due_ns = max(due_ns, last_due_ns)
        if (receiver, Packets.THROTTLED) in self.impairments:
            self.impairments[receiver, Packets.THROTTLED] += 1
            due_ns = min(due_ns + THROTTLED_MS * NS_PER_MS, self._clock.now_ns + QUEUED_MS * NS_PER_MS)
        return due_ns

    def _dropped(self, pipe: Pipe) -> bool:
        """Return True, and count the frame, if packets of the node that accepted its connection are dropped."""
        key = (pipe.dst, Packets.DROPPED)
        if key not in self.impairments:
            return False
        self.impairments[key] += 1
        return True

    def _plan(self, pipe: Pipe, direction: int, at_ns: int) -> None:
        pipe.lanes[direction].planned_ns = at_ns
        self._clock.at(at_ns, ("frame", pipe.number, direction, at_ns))

    def _plan_next(self, pipe: Pipe, direction: int) -> None:
        lane = pipe.lanes[direction]
        if lane.frames and lane.planned_ns < 0:
            self._plan(pipe, direction, max(lane.frames[0].came_ns, self._clock.now_ns))

    def on_due(self, number: int, direction: int, planned_ns: int) -> None:
        """Judge a lane's first frame: deliver it, drop it or leave it there."""
        pipe = self.pipes.get(number)
        if pipe is None or pipe.over or pipe.lanes[direction].planned_ns != planned_ns:
            return
        lane = pipe.lanes[direction]
        lane.planned_ns = -1
        if not lane.frames or (self.impairments and self._dropped(pipe)):
            return
        if self.core.rules.idle or (pipe.outside and not self.core.rules.cuts):  # the core would pass them
            frame = lane.frames.popleft()
            assert isinstance(frame, Frame)
            self._arrive(pipe, direction, frame)
            return
        judged = (
            self.core.judge_client(pipe, lane, pipe.dst)
            if pipe.outside
            else self.core.judge(pipe, lane, self._clock.now_ns)
        )
        for effect in judged:
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
            # The receiver of the end closes too, and a closed side receives nothing any more.
            self._remove(pipe)
            end.on_end(pipe)
            return
        if self.record is not None and not (pipe.outside or frame.copy):
            self._witness.passed(self.record, pipe, direction, frame)
        end.on_frame(pipe, direction, frame)

    # --- the link core's effects -----------------------------------------------------------------------------
    def obey(self, effects: Iterable[Effect]) -> None:
        """Perform the link core's effects, in order."""
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
        """Judge every waiting first frame again; a client's connection that lost frames is reset."""
        for pipe in list(self.pipes.values()):
            if pipe.outside and pipe.torn and not pipe.over and not self.core.rules.cut_of((CLIENTS, pipe.dst)):
                self.reset(pipe, "its connection has lost bytes to a cut")
        for pipe in self.pipes.values():
            for direction, lane in enumerate(pipe.lanes):
                if lane.frames and lane.frames[0].came_ns <= self._clock.now_ns and not pipe.over:
                    self._plan(pipe, direction, self._clock.now_ns)
