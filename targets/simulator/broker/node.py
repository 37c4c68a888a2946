"""
One node: a machine with a disk, and while it is up, a process that runs the core.

Effects are performed in the core's order; the events that they cause at once are processed after them.
A paused node loses nothing: it processes what arrived meanwhile, in order, when it resumes.
A process that must not continue ends by itself, and its ZooKeeper session ends with it.
Length:  one process's life, from boot to end: all its parts share what it is waiting for.
Source:  targets/broker/driver.py, which does the same on asyncio, files and kazoo.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from harness.cluster.disk_error import DiskError
from harness.fabric.core.rules import METADATA
from targets.broker.core.broker import Broker
from targets.broker.core.events import (
    Answer,
    Arm,
    Effect,
    Event,
    Exit,
    Flush,
    Flushed,
    HangUp,
    Leave,
    Left,
    Observe,
    Send,
    Start,
    Tick,
    WriteHighWatermarks,
    ZkAnswered,
    ZkAsk,
)
from targets.broker.core.log_port import LogPort
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import from_text
from targets.broker.core.state import Config, LogDir
from targets.broker.core.zookeeper import NodeError, ZkNode, broker_path, decode_registration
from targets.simulator.broker.coordination import asked, heard
from targets.simulator.broker.coverage import Coverage
from targets.simulator.broker.peers import Inbounds, Outbounds
from targets.simulator.broker.storage.disk import SimDisk
from targets.simulator.broker.versions import Carrier
from targets.simulator.engine import clock
from targets.simulator.engine.network import Network
from targets.simulator.engine.node_clock import USUAL, Drift, NodeClock, WallClock
from targets.simulator.engine.pipe import REQUESTS, Frame, Pipe
from targets.simulator.engine.trace import Detail, Trace
from targets.simulator.zookeeper.client import ZkClient
from targets.simulator.zookeeper.ops import Get

# The first process number, one per process, as the history requires one.
PID_FIRST: Final = 1_000
# What a node plans by its own clock; a flush takes as long as its disk does.
BY_CLOCK: Final = frozenset({"tick", "ping", "redial", "heard", "late"})


class Watcher(Protocol):
    """Receives every step of every core: oracles."""

    def __call__(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        """Process a step that was just performed; one that ended its process has the effects from before that."""


class Setting(Protocol):
    """What a node needs of its world."""

    clock: clock.Clock
    network: Network
    carrier: Carrier
    trace: Trace
    watchers: list[Watcher]
    coverage: Coverage
    core_steps: int
    session_timeout_ms: int
    is_random: bool
    late_share: float
    flush_ns_max: int

    def emit(self, name: str, f: str, value: Mapping[str, Any]) -> None:
        """Record a broker's event."""

    def next_life(self) -> int:
        """Return a number that no process had before."""


class Process:
    """One process of a broker on a node. Only its disk outlives it."""

    def __init__(self, world: Setting, node: Node, config: Config) -> None:
        self.life = world.next_life()
        self.broker = Broker(config, self)
        self._world = world
        self._node = node
        self._queue: deque[Event] = deque()
        self._stepping = False
        # A step whose effects wait for a slow disk; nothing else is done meanwhile.
        self._late: tuple[Event, Sequence[Effect]] | None = None
        self._resolving: dict[int, tuple[int, str]] = {}
        self._known: dict[int, str] = {}
        self.zookeeper = ZkClient(
            name=node.name,
            life=self.life,
            clock=node.clock,
            network=world.network,
            timeout_ms=world.session_timeout_ms,
            is_random=world.is_random,
            late_share=world.late_share,
            post=lambda event: self.post(heard(event)),
        )
        self.inbounds = Inbounds(world.network, world.carrier, self.post)
        self.outbounds = Outbounds(
            name=node.name,
            life=self.life,
            clock=node.clock,
            network=world.network,
            carrier=world.carrier,
            post=self.post,
            resolve=self._resolve,
        )
        self._perform: dict[type[Effect], Callable[[Any], None]] = {
            Answer: lambda effect: self.inbounds.answer(effect.to, effect.response),
            HangUp: lambda effect: self.inbounds.hang_up(effect.connection),
            Send: lambda effect: self.outbounds.ask(effect.to, effect.channel, effect.tag, effect.request),
            ZkAsk: lambda effect: self.zookeeper.ask(effect.tag, asked(effect.ops)),
            Observe: lambda effect: world.emit(node.name, effect.f, effect.value),
            Arm: lambda effect: node.clock.at(effect.at_ns, ("tick", node.name, self.life, effect.at_ns)),
            WriteHighWatermarks: lambda effect: node.disk.write_high_watermarks(effect.high_watermarks),
            Flush: self._flush,
            Exit: lambda effect: node.end(self, effect.reason),
            Left: lambda _: node.close(),
        }

    def use(self, own_clock: clock.Clock) -> None:
        """Measure time by another clock of the node, which shows the same time now."""
        self.zookeeper.clock = self.outbounds.clock = own_clock

    def start(self) -> None:
        """Start: open the disk, then connect to ZooKeeper."""
        config = self.broker.state.config
        about = {"id": config.broker_id, "pid": PID_FIRST + self.life, "protocol": config.protocol}
        self._world.emit(self._node.name, "started", about)
        logs = self._node.disk.open()
        for note in self._node.disk.notes:
            self._world.emit(self._node.name, "note", {"text": note})
        self.post(Start(logs=logs))
        self.zookeeper.connect()

    # --- the disk port -----------------------------------------------------------------------------------------
    @property
    def log_dir(self) -> LogDir:
        """Return where the logs are."""
        return LogDir(f"/{self._node.name}", self._node.disk.segment_bytes)

    def create(self, tp: TopicPartition, topic_id: int) -> LogPort:
        """Create a log for a new replica."""
        return self._node.disk.create(tp, topic_id)

    def _flush(self, effect: Flush) -> None:
        """Flush now, or after the time that a disk takes, in which the log may grow or be cut."""
        if most := self._world.flush_ns_max:
            delay_ns = int(self._world.clock.random.random() * most)
            self._world.clock.after(delay_ns, ("flush", self._node.name, self.life, effect))
        else:
            self._flushed(effect, effect.upto)

    def on_flush_due(self, effect: Flush) -> None:
        """Make a log durable as it is now, and tell the core what it asked for."""
        log = self._node.disk.logs.get(effect.tp)
        try:
            self._flushed(effect, 0 if log is None else log.end_offset)
        except OSError as error:
            self._node.end(self, f"{error!r}")

    def _flushed(self, effect: Flush, upto: int) -> None:
        if self._node.disk.flush_log(effect.tp, upto):
            self.post(Flushed(tp=effect.tp, generation=effect.generation, upto=effect.upto))

    # --- events ------------------------------------------------------------------------------------------------
    def post(self, event: Event) -> None:
        """Process an event, then the events that its effects cause, in order. Do nothing once ended."""
        self._queue.append(event)
        self._go_on()

    def _go_on(self) -> None:
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._queue and self._node.process is self and self._late is None:
                self._take(self._queue.popleft())
        finally:
            self._stepping = False

    def _take(self, event: Event) -> None:
        if isinstance(event, ZkAnswered) and event.tag in self._resolving:
            self._resolved(event)
            return
        world, name = self._world, self._node.name
        world.core_steps += 1
        try:
            wall_ms = clock.EPOCH_MS + self._node.wall_ns() // clock.NS_PER_MS
            effects = self.broker.step(self._node.clock.now_ns, event, wall_ms=wall_ms)
        except Exception as error:  # any error ends the real broker too
            self._node.printed.append(traceback.format_exc())
            self._node.end(self, f"{error!r}")
            self._watched(event, ())  # of its effects none is performed, but its disk may have changed
            return
        world.coverage.note(event, effects)
        if world.trace.detail is Detail.FULL:
            world.trace.note(f"{world.clock.now_ns} {name} {event!r} -> {effects!r}")
        if taken_ns := self._node.disk.errors.taken_ns():
            self._late = event, tuple(effects)
            world.clock.after(taken_ns, ("disk", name, self.life))
            return
        self._obey(event, effects)

    def on_disk_done(self) -> None:
        """Perform the effects of the step that a slow disk held up, then go on."""
        self._node.freed_ns = self._world.clock.now_ns
        late, self._late = self._late, None
        assert late is not None, f"{self._node.name}: nothing waits for the disk"
        self._stepping = True
        try:
            self._obey(*late)
        finally:
            self._stepping = False
        self._go_on()

    def _obey(self, event: Event, effects: Sequence[Effect]) -> None:
        done = 0
        try:
            for effect in effects:
                self._perform[type(effect)](effect)
                done += 1
        except OSError as error:  # the effects behind it are not performed
            effects = effects[:done]
            self._node.end(self, f"{error!r}")
        self._watched(event, effects)

    def _watched(self, event: Event, effects: Sequence[Effect]) -> None:
        for watcher in self._world.watchers:
            watcher(self._node.name, event, effects)

    def on_tick(self, at_ns: int) -> None:
        """Send the tick if it is the one armed last; an earlier one is void."""
        if self.broker.state.armed_ns == at_ns:
            self.post(Tick())

    # --- addresses ---------------------------------------------------------------------------------------------
    def _resolve(self, key: tuple[int, str]) -> None:
        # As the broker's own driver: without ZooKeeper, use the last known node of that broker.
        if key[0] in self._known and not self.zookeeper.connected:
            self.outbounds.resolved(key, self._known[key[0]])
            return
        # Negative tags are the driver's own; the core's are positive.
        tag = min(self._resolving, default=0) - 1
        self._resolving[tag] = key
        self.zookeeper.ask(tag, (Get(path=broker_path(key[0])),))

    def _resolved(self, event: ZkAnswered) -> None:
        key, found = self._resolving.pop(event.tag), event.results[0]
        try:
            # The address of a node is its name; which machine a registration names leads nowhere.
            node = decode_registration(found.data).internal_host if isinstance(found, ZkNode) else None
        except NodeError:
            node = None
        if node is not None:
            self._known[key[0]] = node
        self.outbounds.resolved(key, node)


class Node:
    """
    A machine.

    Attributes:
        process: None while the node is down.
        clock: the node's own, by which its core and its connections measure time.
        resumed_ns: when it was resumed last, in the world's time.
        freed_ns: when its slow disk last let a step go on, in the world's time; -1 if it held up none.
        ended: why the process ended by itself, "" if it did not.
        ends: why those that ended by themselves did, in order.
    """

    def __init__(self, world: Setting, name: str, config: Config, disk: SimDisk, own_clock: clock.Clock) -> None:
        self.name = name
        self.disk = disk
        self.config = config
        self.clock = own_clock
        self.wall = WallClock()
        self.process: Process | None = None
        self.paused = False
        self.resumed_ns = 0
        self.freed_ns = -1
        self.ended = ""
        self.ends: list[str] = []
        self.printed: list[str] = []
        self._world = world
        self._backlog: deque[Callable[[], None]] = deque()

    @property
    def listening(self) -> bool:
        """Return True if the node accepts connections: a paused node's kernel still does."""
        return self.process is not None

    def held_up(self, since_ns: int) -> bool:
        """Return True if a slow disk has held up a step since then, so that what was due waited for it."""
        return self.disk.errors.armed is DiskError.SLOW or self.freed_ns >= max(0, since_ns)

    @property
    def broker(self) -> Broker | None:
        """The core that runs here now."""
        return None if self.process is None else self.process.broker

    # --- life --------------------------------------------------------------------------------------------------
    def install(self, protocol: str, rules: Mapping[str, str]) -> None:
        """Have the processes from the next one on follow another protocol, on the same disk."""
        assert self.process is None, f"{self.name} runs; what runs is not replaced"
        self.config = replace(self.config, protocol=protocol, rules=from_text(rules))
        self._world.carrier.mixed = True

    def boot(self) -> None:
        """Start a process on the contents of the disk."""
        assert self.process is None, f"{self.name} runs already"
        self.ended, self.paused = "", False
        self.process = Process(self._world, self, self.config)
        self.process.start()

    def kill(self) -> None:
        """End the process at once; the page cache survives."""
        self.process, self.paused = None, False
        self._backlog.clear()
        self._world.network.hang_up_all(self.name)

    def stop(self) -> None:
        """End the process cleanly, at once or once others lead what it leads."""
        assert self.process is not None, f"{self.name} does not run"
        if self.config.controlled_shutdown_ms:
            self.process.post(Leave())
        else:
            self.close()

    def close(self) -> None:
        """End the process cleanly: its session first, then all that it has is flushed."""
        process = self.process
        assert process is not None, f"{self.name} does not run"
        process.zookeeper.close()
        replicas = process.broker.state.replicas
        self.kill()
        self.disk.close_cleanly({tp: replica.high_watermark for tp, replica in sorted(replicas.items())})

    def lose_power(self, *, torn: bool = False) -> str:
        """End the process and lose what was not flushed, or a random part of it; return what was lost."""
        self.kill()
        by_chance = self._world.is_random or torn
        return self.disk.lose_power(self._world.clock.random if by_chance else None, torn=torn)

    def break_disk(self, error: DiskError) -> None:
        """Have one of the next calls fail, or all take longer."""
        self.disk.errors.arm(error, self._world.clock.random if self._world.is_random else None)

    def end(self, process: Process, reason: str) -> None:
        """End a process that must not continue."""
        if self.process is process:
            self.ended = reason
            self.ends.append(reason)
            self._world.emit(self.name, "ended", {"reason": reason})
            self.printed.append(f"ended: {reason}")
            process.zookeeper.close()
            self.kill()

    def pause(self) -> None:
        """Stop the process without ending it."""
        self.paused = True

    def resume(self) -> None:
        """Resume, with everything that arrived meanwhile."""
        self.paused = False
        self.resumed_ns = self._world.clock.now_ns
        while self._backlog and not self.paused:
            self._backlog.popleft()()

    # --- clocks ------------------------------------------------------------------------------------------------
    def run_clocks(self, *, ahead_s: float, rate: float) -> None:
        """Have both clocks go on from what they show, moved on by that much, at another rate."""
        if not isinstance(self.clock, NodeClock):
            # It showed the world's time so far, and so does this one.
            self.clock = NodeClock(self._world.clock, Drift())
            if self.process is not None:
                self.process.use(self.clock)
        ahead_ns = round(ahead_s * clock.NS_PER_S)
        self.clock.go_on(ahead_ns=ahead_ns, rate=round(rate * USUAL), planned=self._planned_by_clock)

    def _planned_by_clock(self, event: clock.Event) -> bool:
        return event[0] in BY_CLOCK and event[1] == self.name

    def wall_ns(self) -> int:
        """Return what the wall clock shows, in nanoseconds since the world began."""
        return self.wall.now_ns(self._world.clock.now_ns, self.gained_ns())

    def gained_ns(self) -> int:
        """Return how far a fault has moved both clocks on."""
        return self.clock.gained_ns if isinstance(self.clock, NodeClock) else 0

    # --- arrivals ----------------------------------------------------------------------------------------------
    def on_frame(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        """Process a frame now, or on resume."""
        if self.paused:
            self._backlog.append(lambda: self.on_frame(pipe, direction, frame))
        elif self.process is None:
            return
        elif direction == REQUESTS:
            self.process.inbounds.on_frame(pipe, frame)
        elif pipe.dst == METADATA:
            self.process.zookeeper.on_frame(pipe, frame)
        else:
            self.process.outbounds.on_frame(pipe, frame)

    def on_end(self, pipe: Pipe) -> None:
        """Process a closed connection now, or on resume."""
        if self.paused:
            self._backlog.append(lambda: self.on_end(pipe))
        elif self.process is None:
            return
        elif pipe.dst == METADATA:
            self.process.zookeeper.on_end(pipe)
        else:  # both, on a connection to itself: a controller commands itself too
            if pipe.dst == self.name:
                self.process.inbounds.on_end(pipe)
            if pipe.src == self.name:
                self.process.outbounds.on_end(pipe)

    def on_planned(self, what: str, life: int, *rest: Any) -> None:
        """Do what this process planned, unless it has ended; a paused one does it on resume."""
        process = self.process
        if process is None or process.life != life:
            return
        if self.paused:
            self._backlog.append(lambda: self.on_planned(what, life, *rest))
        elif what == "tick":
            process.on_tick(*rest)
        elif what == "ping":
            process.zookeeper.on_ping_due(*rest)
        elif what == "redial":
            process.zookeeper.connect()
        elif what == "heard":
            process.zookeeper.on_late()
        elif what == "flush":
            process.on_flush_due(*rest)
        elif what == "disk":
            process.on_disk_done()
        else:
            process.outbounds.on_late(*rest)
