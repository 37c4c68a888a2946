"""
A whole cluster of our broker in one process: nodes, links, ZooKeeper, clients, in virtual time and from one seed.

The same seed, rules and calls give the same world, event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from harness.events import Flush
from harness.fabric.core.rules import METADATA
from harness.model import OpType
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.state import Config
from targets.broker.core.zookeeper import Registration
from targets.broker_target.target import SESSION_TIMEOUT_MS, SETTINGS
from targets.simulator.broker.coverage import Coverage
from targets.simulator.broker.node import Node, Watcher
from targets.simulator.broker.storage.disk import SEGMENT_BYTES, SimDisk
from targets.simulator.broker.versions import Carrier
from targets.simulator.broker.wire import WORDS
from targets.simulator.broker.witness import Witness
from targets.simulator.engine.network import Latency
from targets.simulator.engine.node_clock import Drift, NodeClock
from targets.simulator.engine.simulation import Simulation, Sink
from targets.simulator.engine.trace import Trace
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


class World(Simulation[Node]):
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
        self.session_timeout_ms = session_timeout_ms
        self.carrier = Carrier(lambda name: self.nodes[name].config.rules if name in self.nodes else None)
        super().__init__(
            seed=seed,
            latency=randomness.latency if randomness else Latency(),
            witness=Witness(self.carrier.epoch_version),
            words=WORDS,
            trace=trace,
        )
        self.zookeeper = ZooKeeper(self.clock, self.network, session_timeout_ms)
        self.network.ends[METADATA] = self.zookeeper
        self.handlers["session"] = self.zookeeper.on_session_due
        self.watchers: list[Watcher] = []
        self.coverage = Coverage()
        self.core_steps = 0
        self._lives = 0
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

    # --- recording -------------------------------------------------------------------------------------------
    def record_into(self, sink: Sink | None) -> None:
        """Record all later ops in this sink; None stops recording."""
        super().record_into(sink)
        for node in self.nodes.values():
            node.disk.on_durable = None if sink is None else self._flush_recorder(node.name)

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


def registration(name: str) -> Registration:
    """Return a node's registration, whose address is its own name."""
    return Registration(node=name, host=name, port=_CLIENT_PORT, internal_host=name, internal_port=_INTERNAL_PORT)
