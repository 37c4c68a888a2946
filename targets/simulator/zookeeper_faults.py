"""
A random world: the seed decides latencies, what a power loss keeps, and faults of connections to ZooKeeper.

A ZooKeeper fault loses a node's next write with its connection, performed or not, and the node cannot know which;
or it resets the connection between two requests. Faults begin once the cluster is set up, within one second.

Source:  Apache ZooKeeper's programmer's guide: after connection loss a client cannot know if a write was done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, Final

from harness.effect import Effect, Nature
from harness.events import Injection, Step
from harness.fabric.core.rules import ZOOKEEPER
from harness.model import Op, OpType
from targets.broker.core.rules import Rules
from targets.broker.core.state import DELETES_TOGETHER_MAX, Together
from targets.broker.core.zookeeper import broker_path
from targets.simulator.clock import NS_PER_MS, NS_PER_S
from targets.simulator.disk import SEGMENT_BYTES
from targets.simulator.network import Latency
from targets.simulator.trace import Trace
from targets.simulator.world import Randomness, World

# From nearly equal to far apart: frames of two connections overtake each other more and more.
LATENCIES: Final = (
    Latency(low_ns=NS_PER_MS // 5, high_ns=NS_PER_MS // 4),
    Latency(low_ns=NS_PER_MS // 20, high_ns=2 * NS_PER_MS),
    Latency(low_ns=NS_PER_MS // 20, high_ns=2 * NS_PER_MS),
    Latency(low_ns=NS_PER_MS // 10, high_ns=8 * NS_PER_MS),
)
# Short enough that a dead process' session expires before the wait for the healed cluster ends.
SESSION_TIMEOUT_MS: Final = 1_500
FAULTY_SHARE: Final = 0.4
# How often a producer of a run of several partitions sends the records of one partition in two batches.
SPLIT_SHARE: Final = 0.3
FETCH_BYTES: Final = 1_048_576
# In half of the runs of several partitions, how often what a process hears of ZooKeeper waits in it.
LATE_SHARE: Final = 0.03
FAULTS_MAX: Final = 5
CALL: Final = "zookeeper faults"
# How often a wide world has sessions that end after an ask, how many, and within which time.
EXPIRE: Final = "expire"
SESSIONS_CALL: Final = "session ends"
ENDS_SHARE: Final = 0.4
ENDS_MAX: Final = 4
ENDS_WITHIN_NS: Final = 600 * NS_PER_MS
# How often it ends after its next write: a leader's ISR, a decision, an election.
WRITES_SHARE: Final = 0.4
# How often else such a session is a fresh one, and after how many asks it ends: a start has about as many.
FRESH_SHARE: Final = 0.5
ASKS_MAX: Final = 8


def random_world(
    seed: int,
    *,
    protocol: str,
    rules: Rules,
    ids: Mapping[str, int],
    settings: Mapping[str, Any],
    segment_bytes: int = SEGMENT_BYTES,
    late_share: float = 0.0,
    split_share: float = 0.0,
    trace: Trace | None = None,
) -> World:
    """Create the world of a seed; it has no sink yet, and no node runs."""
    chance = Random(f"world {seed}")
    return World(
        seed=seed,
        protocol=protocol,
        rules=rules,
        ids=ids,
        settings=settings,
        segment_bytes=segment_bytes,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        randomness=Randomness(latency=chance.choice(LATENCIES), late_share=late_share, split_share=split_share),
        trace=trace,
    )


def random_together(seed: int) -> Together:
    """
    Return how much the brokers of a run of several partitions do at once: in many runs little.

    What they do bit by bit with thousands of partitions they then do so with a few.
    """
    chance = Random(f"together {seed}")
    deletes_max = Random(f"deletes {seed}").choice((1, 2, DELETES_TOGETHER_MAX))
    if chance.random() < 0.5:
        return Together(deletes_max=deletes_max)
    ask_ops_max, writes_max = chance.choice((2, 5, 250)), chance.choice((1, 2))
    return Together(ask_ops_max=ask_ops_max, writes_max=writes_max, stops_max=1, deletes_max=deletes_max)


def random_fetches(seed: int) -> dict[str, int]:
    """
    Return how the brokers of a run of several partitions fetch: in many runs so little that a batch comes alone.

    Then the high watermark is now and then between the batches of a produce, and a follower's far behind that.
    Longer waits leave more timers behind that were dropped.
    """
    chance = Random(f"fetches {seed}")
    return {"fetch_bytes_max": chance.choice((FETCH_BYTES, 1)), "fetch_wait_ms_max": chance.choice((50, 50, 200))}


def random_late_share(seed: int) -> float:
    """Return how often what a process hears of ZooKeeper waits in it, in a run of several partitions."""
    return Random(f"late {seed}").choice((0.0, LATE_SHARE))


class SessionEnds:
    """
    Sessions of one wide world that end right after an ask, whose answer waits in its process for the next session.

    So a broker hears in one session what an earlier one of its own was told. Each end is drawn from the seed
    alone, so that all else in the world is drawn as without them.

    Attributes:
        ended: the number of sessions that ended so.
    """

    def __init__(self, world: World, seed: int, last_line: int) -> None:
        """Wait for the history's first step; the line of the last one is where `listen` ends."""
        self.ended = 0
        self._last_line = last_line
        self._over = False
        self._world = world
        self._chance = Random(f"session ends {seed}")
        self._begun = False
        world.on_call(SESSIONS_CALL, self._draw)
        world.zookeeper.on_ending = self._on_ending

    def listen(self, op: Op) -> None:
        """Start with the first step; leave the world alone from the last one on, so that it can be healed."""
        if op.type is OpType.INVOKE or not isinstance(op.event, Step):
            return
        if op.event.line == self._last_line:
            self._over = True
            self._world.zookeeper.ending.clear()
        elif not self._begun and op.type is OpType.OK:
            self._begun = True
            if self._chance.random() < ENDS_SHARE:
                for _ in range(self._chance.randint(1, ENDS_MAX)):
                    self._world.clock.after(int(self._chance.random() * ENDS_WITHIN_NS), ("call", SESSIONS_CALL))

    def _draw(self) -> None:
        """Have a session of a node end within its next asks: often a fresh one, which is about to register."""
        if self._over:
            return
        chance, zookeeper = self._chance, self._world.zookeeper
        name = chance.choice(list(self._world.nodes))
        if chance.random() < WRITES_SHARE:
            zookeeper.ending[name] = 1, True
            return
        if chance.random() < FRESH_SHARE:
            mine = [session.number for session in zookeeper.sessions.values() if session.owner == name]
            for number in mine:
                self._note(name, number)
                zookeeper.expire(number)
        zookeeper.ending[name] = chance.randint(1, ASKS_MAX), False

    def _on_ending(self, name: str, session: int) -> None:
        self._note(name, session)
        process = self._world.nodes[name].process
        if process is not None:
            self.ended += 1
            process.zookeeper.fall_behind()

    def _note(self, name: str, session: int) -> None:
        """Record that a registration goes: the node may never hear that it was there, and need not report it."""
        if self._world.zookeeper.session_of(broker_path(self._world.ids[name])) != session:
            return
        note_fault(self._world, EXPIRE, name, Effect.SESSION_ENDED)


def note_fault(world: World, fault: str, name: str, effect: Effect) -> None:
    """Record a fault that no step of the schedule injects, as if one had."""
    about = Injection(name=fault, nodes=(name,), **Nature(effect=effect).as_fields())
    world.observe(about.PROCESS, OpType.INVOKE, about)
    world.observe(about.PROCESS, OpType.OK, replace(about, probe="drawn with the world"))


class ZooKeeperFaults:
    """
    Faults of one world's connections to ZooKeeper, if its seed draws any.

    Attributes:
        asked: the number of faults tried.
        bit: the number that took effect: a write that was lost, a connection that was reset.
    """

    def __init__(self, world: World) -> None:
        """Wait for the set-up to end: `listen` starts the faults at the history's first step."""
        self.asked = 0
        self._resets = 0
        self._writes = 0
        self._begun = False
        self._world = world
        world.on_call(CALL, self._inject)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        if not self._begun and op.type is OpType.OK and isinstance(op.event, Step):
            self._begun = True
            self._plan()

    def _plan(self) -> None:
        chance, clock = self._world.clock.random, self._world.clock
        if chance.random() < FAULTY_SHARE:
            for _ in range(chance.randint(1, FAULTS_MAX)):
                clock.after(int(chance.random() * NS_PER_S), ("call", CALL))

    @property
    def bit(self) -> int:
        """Return how many took effect so far."""
        return self._resets + self._writes - len(self._world.zookeeper.losing)

    def _inject(self) -> None:
        chance, world = self._world.clock.random, self._world
        name = chance.choice(list(world.nodes))
        self.asked += 1
        if chance.random() < 0.7:
            if name not in world.zookeeper.losing:
                self._writes += 1
            world.zookeeper.losing[name] = chance.random() < 0.5
        elif world.links.close_links(name, ZOOKEEPER):
            self._resets += 1
