"""
A whole cluster in one process: nodes, links, ZooKeeper, clients, in virtual time and from one seed.

Nothing happens by itself: `step` does what comes next, `until` steps until a condition holds. The same seed, rules
and calls give the same world, event by event; `trace` has the hash of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from harness.events import Event, Flush
from harness.fabric.core.rules import ZOOKEEPER
from harness.model import OpType, Source
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.state import Config
from targets.broker.core.zookeeper import Registration
from targets.broker_target import SESSION_TIMEOUT_MS, SETTINGS
from targets.simulator.clock import NS_PER_S, Clock
from targets.simulator.disk import SEGMENT_BYTES, SimDisk
from targets.simulator.links import SimLinks
from targets.simulator.network import Latency, Network
from targets.simulator.node import Node, Watcher
from targets.simulator.pipe import End
from targets.simulator.trace import Detail, Trace
from targets.simulator.witness import Witness
from targets.simulator.zookeeper import ZooKeeper

# From the same rack to far away, so that a frame may be overtaken by ten others.
LATENCY: Final = Latency(low_ns=50_000, high_ns=2_000_000)
# What a broker tells its clients; nothing in the simulator listens there.
_CLIENT_PORT: Final = 9092
_INTERNAL_PORT: Final = 9093


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """
    What the seed decides in a random world; a world without it does the same whatever its seed.

    Shapes:  latency is drawn for every frame between its bounds, so that connections overtake each other.
             A power cut takes any part of what was not flushed, and an ask to ZooKeeper may be taken apart.
    """

    latency: Latency = LATENCY


class Sink(Protocol):
    """What records the ops of docs/history.md: a history."""

    def record(self, process: str, type_: OpType, event: Event) -> object:
        """Record one that says this event."""

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> object:
        """Record one as a broker sent it."""


class World:
    """
    One cluster.

    Shapes:  ids are broker ids by node name; protocol names the rules, unless rules are given too. settings are
             the core's tunables. sink None: nobody listens, and nothing is made to be told.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        protocol: str,
        rules: Rules | None = None,
        ids: Mapping[str, int],
        settings: Mapping[str, Any] = SETTINGS,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        segment_bytes: int = SEGMENT_BYTES,
        chance: Chance | None = None,
        sink: Sink | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.rules = PROTOCOLS[protocol] if rules is None else rules
        self.ids = dict(ids)
        self.chance = chance is not None
        self.clock = Clock(seed)
        self.trace = trace or Trace(Detail.NONE)
        self.session_timeout_ms = session_timeout_ms
        self.network = Network(self.clock, chance.latency if chance else Latency(), Witness(self.rules))
        self.links = SimLinks(self.network)
        self.zookeeper = ZooKeeper(self.clock, self.network, session_timeout_ms)
        self.network.ends[ZOOKEEPER] = self.zookeeper
        self.nodes: dict[str, Node] = {}
        self.watchers: list[Watcher] = []
        self.steps = 0
        self.core_steps = 0
        self._lives = 0
        self._planned_for: dict[str, Callable[..., None]] = {}
        self._sink: Sink | None = None
        for name, broker_id in self.ids.items():
            config = Config(
                broker_id=broker_id,
                registration=registration(name),
                protocol=protocol,
                rules=self.rules,
                **settings,
            )
            self.nodes[name] = Node(self, name, config, SimDisk(segment_bytes))
            self.network.ends[name] = self.nodes[name]
        self.listen(sink)

    # --- time --------------------------------------------------------------------------------------------------
    def step(self) -> bool:
        """Do what comes next; False when nothing is planned."""
        event = self.clock.pop()
        if event is None:
            return False
        self.steps += 1
        if self.trace.detail:
            self.trace.note(f"{self.clock.now_ns} {event!r}")
        what = event[0]
        if what == "frame":
            self.network.on_due(*event[1:])
        elif what == "ended":
            self.network.on_ended(*event[1:])
        elif what == "session":
            self.zookeeper.on_session_due(*event[1:])
        elif what == "call":
            self._planned_for[event[1]](*event[2:])
        else:
            self.nodes[event[1]].on_planned(what, *event[2:])
        return True

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Let things happen until the condition holds; False when it does not within the time."""
        deadline = self.clock.now_ns + int(seconds * NS_PER_S)
        while not condition():
            following = self.clock.next_ns
            if following is None or following > deadline:
                self.clock.advance(deadline)
                return condition()
            self.step()
        return True

    def run(self, seconds: float) -> None:
        """Let that much time pass."""
        self.until(lambda: False, seconds)

    def on_call(self, who: str, handler: Callable[..., None]) -> None:
        """Have events ("call", who, ...) handled: clients and schedules plan their own."""
        self._planned_for[who] = handler

    # --- who is told -------------------------------------------------------------------------------------------
    def listen(self, sink: Sink | None) -> None:
        """Tell everything from now on to this sink; None: to nobody."""
        self._sink = sink
        self.network.record = None if sink is None else self._tell_fabric
        for node in self.nodes.values():
            node.disk.on_durable = None if sink is None else self._flush_teller(node.name)

    def observe(self, process: str, type_: OpType, event: Event) -> None:
        """Record one op, when somebody listens."""
        if self._sink is not None:
            self._sink.record(process, type_, event)

    def tell(self, name: str, f: str, value: Mapping[str, Any]) -> None:
        """Take what a broker tells."""
        if self._sink is not None:
            self._sink.record_line(Source.BROKER, name, OpType.INFO, f, value)
        if self.trace.detail is Detail.EVENTS:
            self.trace.note(f"{name} {f} {value!r}")

    def _tell_fabric(self, event: Event) -> None:
        self.observe("fabric", OpType.INFO, event)

    def _flush_teller(self, name: str) -> Callable[[str, int], None]:
        return lambda path, length: self.observe(name, OpType.INFO, Flush(path=path, length=length))

    # --- small things ------------------------------------------------------------------------------------------
    def next_life(self) -> int:
        """Give a number that no process had before."""
        self._lives += 1
        return self._lives

    def name_of(self, broker_id: int) -> str | None:
        """A node's name, None for no broker."""
        return next((name for name, number in self.ids.items() if number == broker_id), None)

    def add_end(self, name: str, end: End) -> None:
        """Add somebody who dials: a client."""
        self.network.ends[name] = end


def registration(name: str) -> Registration:
    """Where a node says that it lives: its own name."""
    return Registration(node=name, host=name, port=_CLIENT_PORT, internal_host=name, internal_port=_INTERNAL_PORT)
