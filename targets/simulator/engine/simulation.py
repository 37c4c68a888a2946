"""
One simulated system: its time, its links, its nodes, and what a history hears of them.

Time advances only by calls: `step` processes the next event, `until` steps until a condition holds. The same seed
and the same calls give the same run, event by event; `trace` has the hash of all events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, Protocol, TypeVar

from harness.events import Event
from harness.model import OpType, Source
from targets.simulator.engine.clock import NS_PER_S, Clock
from targets.simulator.engine.links import SimLinks
from targets.simulator.engine.network import Latency, Network, Witness
from targets.simulator.engine.node import Node
from targets.simulator.engine.pipe import End
from targets.simulator.engine.trace import Detail, Trace


class Sink(Protocol):
    """Records the ops of docs/history.md: a history."""

    def record(self, process: str, type_: OpType, event: Event) -> object:
        """Record an op with this event."""

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> object:
        """Record an op as a node sent it."""


N = TypeVar("N", bound=Node)


class Simulation(Generic[N]):
    """
    One system.

    Args:
        words: what rules of links may name of messages.

    Attributes:
        nodes: by name.
        aside: topics of which nothing is recorded: nobody produces to them, and no checker judges them.
        handlers: who processes an event, by its first word; all others are a node's own.
    """

    def __init__(
        self, *, seed: int, latency: Latency, witness: Witness, words: Collection[str], trace: Trace | None = None
    ) -> None:
        self.clock = Clock(seed)
        self.trace = trace or Trace(Detail.NONE)
        self.network = Network(self.clock, latency, witness)
        self.links = SimLinks(self.network, words)
        self.nodes: dict[str, N] = {}
        self.aside: frozenset[str] = frozenset()
        self.steps = 0
        self._planned_for: dict[str, Callable[..., None]] = {}
        self.handlers: dict[str, Callable[..., None]] = {
            "frame": self.network.on_due,
            "ended": self.network.on_ended,
            "call": self._call,
        }
        self._sink: Sink | None = None

    # --- time --------------------------------------------------------------------------------------------------
    def step(self) -> bool:
        """Process the next event; return False if none is planned."""
        event = self.clock.pop()
        if event is None:
            return False
        self.steps += 1
        if self.trace.detail:
            self.trace.note(f"{self.clock.now_ns} {event!r}")
        what = event[0]
        handler = self.handlers.get(what)
        if handler is not None:
            handler(*event[1:])
        else:
            self.nodes[event[1]].on_planned(what, *event[2:])
        return True

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Step until the condition holds; return False if it does not within the time."""
        deadline = self.clock.now_ns + int(seconds * NS_PER_S)
        while not condition():
            following = self.clock.next_ns
            if following is None or following > deadline:
                self.clock.advance(deadline)
                return condition()
            self.step()
        return True

    def run(self, seconds: float) -> None:
        """Advance the time by that much, with all its events."""
        self.until(lambda: False, seconds)

    def on_call(self, who: str, handler: Callable[..., None]) -> None:
        """Register the handler of events ("call", who, ...), which clients and schedules plan."""
        self._planned_for[who] = handler

    def _call(self, who: str, *rest: Any) -> None:
        self._planned_for[who](*rest)

    # --- recording -------------------------------------------------------------------------------------------
    def record_into(self, sink: Sink | None) -> None:
        """Record all later ops in this sink; None stops recording."""
        self._sink = sink
        self.network.record = None if sink is None else self._record_fabric

    def observe(self, process: str, type_: OpType, event: Event) -> None:
        """Record one op if there is a sink."""
        if self._sink is not None and not (self.aside and getattr(event, "topic", "") in self.aside):
            self._sink.record(process, type_, event)

    def emit(self, name: str, f: str, value: Mapping[str, Any]) -> None:
        """Record a node's own event."""
        if self._sink is not None and not (self.aside and value.get("topic") in self.aside):
            self._sink.record_line(Source.BROKER, name, OpType.INFO, f, value)
        if self.trace.detail is Detail.EVENTS:
            self.trace.note(f"{name} {f} {value!r}")

    def _record_fabric(self, event: Event) -> None:
        self.observe("fabric", OpType.INFO, event)

    # --- endpoints -------------------------------------------------------------------------------------------
    def add_end(self, name: str, end: End) -> None:
        """Add an endpoint that opens connections: a client."""
        self.network.ends[name] = end
