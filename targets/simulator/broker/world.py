"""
A whole cluster in one process: nodes, links, ZooKeeper, clients, in virtual time and from one seed.

Time advances only by calls: `step` processes the next event, `until` steps until a condition holds. The same seed,
rules and calls give the same world, event by event; `trace` has the hash of all events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

from harness.events import Event, Flush
from harness.fabric.core.rules import METADATA
from harness.model import OpType, Source
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.state import Config
from targets.broker.core.zookeeper import Registration
from targets.broker_target.target import SESSION_TIMEOUT_MS, SETTINGS
from targets.simulator.broker.coverage import Coverage
from targets.simulator.broker.node import Node, Watcher
from targets.simulator.broker.storage.disk import SEGMENT_BYTES, SimDisk
from targets.simulator.broker.versions import Carrier
from targets.simulator.broker.witness import Witness
from targets.simulator.engine.clock import NS_PER_S, Clock
from targets.simulator.engine.links import SimLinks
from targets.simulator.engine.network import Latency, Network
from targets.simulator.engine.node_clock import Drift, NodeClock
from targets.simulator.engine.pipe import End
from targets.simulator.engine.trace import Detail, Trace
from targets.simulator.zookeeper.server import ZooKeeper

# From the same rack to far away, so that ten later frames may overtake one.
LATENCY: Final = Latency(low_ns=50_000, high_ns=2_000_000)
# The port in brokers' registrations; nothing in the simulator listens there.
_CLIENT_PORT: Final = 9092
_INTERNAL_PORT: Final = 9093


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomness:
    """
    What the seed decides in a random world; a world without it ignores the seed.

    Latency is drawn for every frame between its bounds, so that connections overtake each other. A power loss
    takes any part of what was not flushed, and an ask to ZooKeeper may be split.

    Attributes:
        late_share: how often what a process hears of ZooKeeper waits in it for a while, overtaken by the news of
            another session; everything behind it waits too.
        split_share: how often a producer sends the records of one partition in two batches.
        flush_ns_max: the longest time that a flush of a log takes; 0: it is done within its step.
    """

    latency: Latency = LATENCY
    late_share: float = 0.0
    split_share: float = 0.0
    flush_ns_max: int = 0


class Sink(Protocol):
    """Records the ops of docs/history.md: a history."""

    def record(self, process: str, type_: OpType, event: Event) -> object:
        """Record an op with this event."""

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> object:
        """Record an op as a broker sent it."""


class World:
    """
    One cluster.

    Args:
        ids: broker ids by node name.
        protocol: names the rules of all nodes, unless rules are given too; a node may be installed others.
        settings: the core's tunables.
        of_nodes: those of single nodes that have others, by node name.
        clocks: the nodes whose clock shows another time than the world's.
        sink: receives the ops; with None no op is built.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        protocol: str,
        rules: Rules | None = None,
        ids: Mapping[str, int],
        settings: Mapping[str, Any] = SETTINGS,
        of_nodes: Mapping[str, Mapping[str, Any]] | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        segment_bytes: int = SEGMENT_BYTES,
        randomness: Randomness | None = None,
        clocks: Mapping[str, Drift] = MappingProxyType({}),
        sink: Sink | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.rules = PROTOCOLS[protocol] if rules is None else rules
        self.ids = dict(ids)
        self._names = {broker_id: name for name, broker_id in self.ids.items()}
        self.is_random = randomness is not None
        self.late_share = randomness.late_share if randomness else 0.0
        self.split_share = randomness.split_share if randomness else 0.0
        self.flush_ns_max = randomness.flush_ns_max if randomness else 0
        self.clock = Clock(seed)
        self.trace = trace or Trace(Detail.NONE)
        self.session_timeout_ms = session_timeout_ms
        self.carrier = Carrier(lambda name: self.nodes[name].config.rules if name in self.nodes else None)
        witness = Witness(self.carrier.epoch_version)
        self.network = Network(self.clock, randomness.latency if randomness else Latency(), witness)
        self.links = SimLinks(self.network)
        self.zookeeper = ZooKeeper(self.clock, self.network, session_timeout_ms)
        self.network.ends[METADATA] = self.zookeeper
        self.nodes: dict[str, Node] = {}
        self.watchers: list[Watcher] = []
        self.coverage = Coverage()
        # Topics of which nothing is recorded: nobody produces to them, and no checker judges them.
        self.aside: frozenset[str] = frozenset()
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
                **{**settings, **(of_nodes or {}).get(name, {})},
            )
            clock = NodeClock(self.clock, clocks[name]) if name in clocks else self.clock
            self.nodes[name] = Node(self, name, config, SimDisk(segment_bytes), clock)
            self.network.ends[name] = self.nodes[name]
        self.record_into(sink)

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

    # --- recording -------------------------------------------------------------------------------------------
    def record_into(self, sink: Sink | None) -> None:
        """Record all later ops in this sink; None stops recording."""
        self._sink = sink
        self.network.record = None if sink is None else self._record_fabric
        for node in self.nodes.values():
            node.disk.on_durable = None if sink is None else self._flush_recorder(node.name)

    def observe(self, process: str, type_: OpType, event: Event) -> None:
        """Record one op if there is a sink."""
        if self._sink is not None and not (self.aside and getattr(event, "topic", "") in self.aside):
            self._sink.record(process, type_, event)

    def emit(self, name: str, f: str, value: Mapping[str, Any]) -> None:
        """Record a broker's event."""
        if self._sink is not None and not (self.aside and value.get("topic") in self.aside):
            self._sink.record_line(Source.BROKER, name, OpType.INFO, f, value)
        if self.trace.detail is Detail.EVENTS:
            self.trace.note(f"{name} {f} {value!r}")

    def _record_fabric(self, event: Event) -> None:
        self.observe("fabric", OpType.INFO, event)

    def _flush_recorder(self, name: str) -> Callable[[str, int], None]:
        def flushed(path: str, length: int) -> None:
            if not (self.aside and path.partition("/")[0].rpartition("-")[0] in self.aside):
                self.observe(name, OpType.INFO, Flush(path=path, length=length))

        return flushed

    # --- names and numbers -----------------------------------------------------------------------------------
    def next_life(self) -> int:
        """Return a number that no process had before."""
        self._lives += 1
        return self._lives

    @property
    def tells_topics_apart(self) -> bool:
        """Whether each broker knows topics by their ids (KIP-516): else names are all that tells them apart."""
        return all(node.config.rules.topic_identity for node in self.nodes.values())

    def name_of(self, broker_id: int) -> str | None:
        """Return a node's name, None if no node has this id."""
        return self._names.get(broker_id)

    def add_end(self, name: str, end: End) -> None:
        """Add an endpoint that opens connections: a client."""
        self.network.ends[name] = end


def registration(name: str) -> Registration:
    """Return a node's registration, whose address is its own name."""
    return Registration(node=name, host=name, port=_CLIENT_PORT, internal_host=name, internal_port=_INTERNAL_PORT)
