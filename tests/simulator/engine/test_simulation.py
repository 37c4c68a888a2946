"""The engine and ZooKeeper's room carry a system that is not ours: two nodes that greet each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from harness.bit_rot import Flip, Where
from harness.cluster.disk_error import DiskError
from harness.events import Event
from harness.fabric.core.rules import METADATA
from harness.logs.replica import ReplicaLog
from harness.model import OpType, PreconditionError, Source
from targets.simulator.engine.clock import NS_PER_MS, NS_PER_S, Clock
from targets.simulator.engine.disk_errors import DiskErrors
from targets.simulator.engine.machines import ServedMachines, SimTime
from targets.simulator.engine.network import Latency, Recorder
from targets.simulator.engine.node_clock import WallClock
from targets.simulator.engine.pipe import REQUESTS, Frame, Pipe
from targets.simulator.engine.simulation import Simulation
from targets.simulator.engine.trace import Detail, Trace
from targets.simulator.zookeeper import ops
from targets.simulator.zookeeper.client import Heard, ZkClient
from targets.simulator.zookeeper.server import ZooKeeper
from targets.simulator.zookeeper.servers import SimZooKeeperServers

EVERY_NS: Final = 10 * NS_PER_MS
TIMEOUT_MS: Final = 300
HELLO: Final = "hello"


class NoDisk:
    """A disk on which nothing is."""

    def __init__(self) -> None:
        self.errors = DiskErrors()

    def sync(self) -> int:
        return 0

    def unflushed(self) -> tuple[str, ...]:
        return ()

    def empty(self) -> int:
        return 0

    def flip(self, topic: str, partition: int, where: Where) -> Flip | None:
        return None

    def delete_active_segment(self, topic: str, partition: int) -> str | None:
        return None

    def replica_log(self, topic: str, partition: int) -> ReplicaLog | None:
        return None


class Greeter:
    """A node that says hello to its peer every 10 ms, and is registered in ZooKeeper while it lives."""

    def __init__(self, world: World, name: str, peer: str) -> None:
        self.clock: Clock = world.clock
        self.wall = WallClock()
        self.paused = False
        self.disk = NoDisk()
        self.printed: list[str] = []
        self.process: object | None = None
        self.got = 0
        self.zookeeper: ZkClient | None = None
        self._world, self._name, self._peer = world, name, peer
        self._life = 0
        self._pipe: Pipe | None = None
        self._backlog: deque[Callable[[], None]] = deque()

    @property
    def listening(self) -> bool:
        return self.process is not None

    def boot(self) -> None:
        self._life += 1
        self.process = object()
        self.zookeeper = ZkClient(
            name=self._name,
            life=self._life,
            clock=self.clock,
            network=self._world.network,
            timeout_ms=TIMEOUT_MS,
            is_random=False,
            post=self._heard,
        )
        self.zookeeper.connect()
        self.zookeeper.ask(1, (ops.Create(path=f"/{self._name}", ephemeral=True),))
        self._plan()

    def _heard(self, event: Heard) -> None:
        self.printed.append(type(event).__name__)

    def _plan(self) -> None:
        self.clock.after(EVERY_NS, ("greet", self._name, self._life))

    def on_planned(self, what: str, life: int, *rest: Any) -> None:
        if self.process is None or life != self._life:
            return
        if self.paused:
            self._backlog.append(lambda: self.on_planned(what, life, *rest))
        elif what == "greet":
            if self._pipe is None or self._pipe.over:
                self._pipe = self._world.network.dial(self._name, self._peer, "greetings", Pipe)
            self._world.network.send(self._pipe, REQUESTS, HELLO, HELLO)
            self._plan()
        elif what == "ping":
            assert self.zookeeper is not None
            self.zookeeper.on_ping_due(*rest)

    def on_frame(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        if self.paused:
            self._backlog.append(lambda: self.on_frame(pipe, direction, frame))
        elif direction == REQUESTS:
            self.got += 1
        elif self.zookeeper is not None:
            self.zookeeper.on_frame(pipe, frame)

    def on_end(self, pipe: Pipe) -> None:
        if pipe is self._pipe:
            self._pipe = None

    def kill(self) -> None:
        self.process, self.paused = None, False
        self._backlog.clear()
        self._world.network.hang_up_all(self._name)

    def stop(self) -> None:
        self.kill()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        while self._backlog:
            self._backlog.popleft()()

    def install(self, protocol: str, rules: Mapping[str, str]) -> None:
        self.printed.append(f"installed {protocol}")

    def lose_power(self, *, torn: bool = False) -> str:
        self.kill()
        return "nothing was there"

    def break_disk(self, error: DiskError) -> None:
        self.disk.errors.arm(error, None)

    def run_clocks(self, *, ahead_s: float, rate: float) -> None:
        self.wall.ahead_ns += round(ahead_s * NS_PER_S)

    def wall_ns(self) -> int:
        return self.wall.now_ns(self.clock.now_ns, 0)

    def gained_ns(self) -> int:
        return 0


class Passed:
    """A witness that keeps what links passed."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def passed(self, record: Recorder, pipe: Pipe, direction: int, frame: Frame) -> None:
        self.seen.append((pipe.src, frame.seen.api))


class World(Simulation[Greeter]):
    """Nodes A and B."""

    def __init__(self, *, seed: int = 1, trace: Trace | None = None) -> None:
        self.witness = Passed()
        super().__init__(
            seed=seed,
            latency=Latency(high_ns=2 * NS_PER_MS),
            witness=self.witness,
            words=("greeting",),
            trace=trace,
        )
        self.zookeeper = ZooKeeper(self.clock, self.network, TIMEOUT_MS)
        self.network.ends[METADATA] = self.zookeeper
        self.handlers["session"] = self.zookeeper.on_session_due
        for name, peer in (("A", "B"), ("B", "A")):
            self.nodes[name] = Greeter(self, name, peer)
            self.network.ends[name] = self.nodes[name]

    @property
    def registered(self) -> list[str]:
        return sorted(self.zookeeper.tree.nodes)


class Nothing:
    """A history that keeps nothing."""

    def record(self, process: str, type_: OpType, event: Event) -> None:
        pass

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> None:
        pass


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def machines(world: World) -> ServedMachines:
    found = ServedMachines(world, ("A", "B"), SimZooKeeperServers(world, world.zookeeper))
    for name in world.nodes:
        found.boot(name)
    return found


def test_nodes_reach_each_other_and_zookeeper_in_virtual_time(world: World, machines: ServedMachines) -> None:
    del machines
    assert SimTime(world).until(lambda: min(node.got for node in world.nodes.values()) >= 5, 1)
    assert ["/A", "/B"] == world.registered
    assert [["Announced", "Answered"]] * 2 == [node.printed for node in world.nodes.values()]
    assert 50 * NS_PER_MS <= world.clock.now_ns < 100 * NS_PER_MS


def test_registration_of_a_killed_node_goes_and_its_peer_hears_nothing_more(
    world: World, machines: ServedMachines
) -> None:
    world.run(0.1)
    assert "killed" in machines.kill("A")
    world.run(0.01)
    before = world.nodes["B"].got
    world.run(1.0)
    assert (before, ["/B"]) == (world.nodes["B"].got, world.registered)
    with pytest.raises(PreconditionError, match="kill A: no process is there"):
        machines.kill("A")


def test_links_are_cut_and_servers_of_zookeeper_are_nodes(world: World, machines: ServedMachines) -> None:
    world.run(0.05)
    cut = world.links.cut("A", "B")
    before = world.nodes["B"].got
    world.run(0.1)
    assert before == world.nodes["B"].got
    assert "zookeeper-2 leads" in machines.kill("zookeeper-3")
    world.links.heal(cut)
    assert world.until(lambda: world.nodes["B"].got > before, 1)


def test_frames_that_no_system_reads_are_unknown_to_rules_and_those_of_zookeeper_are_not(world: World) -> None:
    world.record_into(Nothing())
    for node in world.nodes.values():
        node.boot()
    world.run(0.05)
    assert {("A", "?"), ("B", "?"), ("A", "metadata-request"), ("B", "metadata-request")} == {*world.witness.seen}


def test_same_seed_gives_the_same_steps_and_another_one_others() -> None:
    found = []
    for seed in (1, 1, 2):
        made = World(seed=seed, trace=Trace(Detail.EVENTS))
        for node in made.nodes.values():
            node.boot()
        made.run(0.5)
        found.append(made.trace.digest)
    assert found[0] == found[1] != found[2]
