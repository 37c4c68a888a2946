"""
A cluster under test: its machines, links, ZooKeeper view, history and time.

The runner and the nemeses act on the cluster only through this class, by node name. They observe it through its
files (as any operator could), through ZooKeeper and through the history. An environment creates the machines,
links and the rest (harness/run/environment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from harness import limits
from harness.cluster import probe
from harness.cluster.in_force import InForce
from harness.cluster.interfaces import Links, Machines, Time, ZooKeeperView
from harness.cluster.target import OLD_REGISTRATION, REFUSED, PartitionTruth, Target
from harness.effect import DOWN, Effect
from harness.events import Awaiting, Commanded, Event, Follower, Leader, Printed, Started, Stuck
from harness.events.codec import key_of_kind
from harness.history.file import History
from harness.logdir.scan import ReplicaLog
from harness.model import Op, OpType, PreconditionError, UsageError

# The beginning of a line of a Java stack trace; dozens of them may follow the line that says what happened.
STACK_FRAME: Final = "\tat "
_HEARD: Final = frozenset(map(key_of_kind, (Leader, Follower, Started, Stuck, Awaiting, Printed, Commanded)))


class RunCancelled(Exception):
    """The run was cancelled, as by Ctrl-C; not a FencepostError, so the runner neither heals nor reads."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    """
    One run's cluster. An environment creates it; `close` must always be called.

    Attributes:
        ids: node's name -> broker id, in the order of starting.
        replicas: the nodes with a disk that can lose power.
        addresses: node's name -> the "host:port" that clients connect to; {} if clients need none.
        before_down: node's name -> its session and the version of the partition's state, just before a fault took
            it down.
        cancelled: set by `cancel`; every later wait and record raises RunCancelled.
    """

    host: Machines
    target: Target
    protocol: str
    rules: Mapping[str, str]
    ids: Mapping[str, int]
    replicas: tuple[str, ...]
    topic: str
    partition: int
    history: History
    fabric: Links
    zookeeper_view: ZooKeeperView
    time: Time
    addresses: Mapping[str, str] = field(default_factory=dict)
    in_force: InForce = field(default_factory=InForce)
    before_down: dict[str, tuple[int, int]] = field(default_factory=dict)
    cancelled: bool = False
    _leads_in: dict[str, int] = field(default_factory=dict)
    _heard: dict[str, int] = field(default_factory=dict)
    _stuck: set[str] = field(default_factory=set)
    _awaiting: set[str] = field(default_factory=set)
    _exited: set[str] = field(default_factory=set)

    # --- what is in force ---------------------------------------------------------------------------------------
    @property
    def down(self) -> frozenset[str]:
        """The nodes whose process ended, by a fault or by itself, and was not started since."""
        return self.in_force.nodes(DOWN)

    @property
    def paused(self) -> frozenset[str]:
        """The nodes that are paused."""
        return self.in_force.nodes({Effect.PAUSED})

    @property
    def zombies(self) -> frozenset[str]:
        """The nodes that are cut off from ZooKeeper."""
        return self.in_force.nodes({Effect.CUT_OFF})

    # --- nodes -----------------------------------------------------------------------------------------------
    def start(self, name: str) -> str:
        """
        Start a node's process, and wait until it has a new registration and serves clients.

        If the target refuses to start while its old registration exists, end that session first.

        Returns:
            What was seen of the new registration.

        Raises:
            PreconditionError: the process ended by itself, or did not register or serve in time.
        """
        old = self.zookeeper_view.registered(name)
        refused = bool(old) and self.rules.get(OLD_REGISTRATION) == REFUSED
        if refused:
            self.zookeeper_view.expire(name)
        self._stuck.discard(name)
        self._exited.discard(name)
        self.host.boot(name)
        self._await_alive(name, lambda: self.zookeeper_view.registered(name) not in (0, old), "registered anew")
        if name in self.addresses:  # a broker may register before it listens
            self._await_alive(name, lambda: probe.serves(self.addresses[name]), "serving")
        session = self.zookeeper_view.registered(name)
        before = f", {'after the end of' if refused else 'taken over from'} 0x{old:x}" if old else ""
        return f"registered in session 0x{session:x}{before}"

    def _await_alive(self, name: str, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition of a starting node; raise PreconditionError at once if its process ends."""
        self.await_(lambda: condition() or not self.host.alive(name), lambda: f"{name} is {what}")
        if not self.host.alive(name):
            raise PreconditionError(f"start {name}: the process ended by itself; {self.last_words(name)}")

    def last_words(self, name: str) -> str:
        """Return the last lines that a node's process printed, without stack frames."""
        lines = [line for line in self.host.log_text(name).splitlines() if not line.startswith(STACK_FRAME)]
        return "it said: " + " | ".join(lines[-3:])

    def _state_in_zookeeper(self, name: str) -> tuple[int, int]:
        """Return a node's session and the version of the partition's state, for the condition `unseen`."""
        truth = self.truth()
        return self.zookeeper_view.registered(name), truth.version if truth else -1

    def take_down(self, name: str, how: Callable[[str], str]) -> str:
        """End a node's process by `how`, after noting what ZooKeeper holds; return what `how` saw."""
        before = self._state_in_zookeeper(name)
        seen = how(name)
        self.before_down[name] = before
        return seen

    def clients_addresses(self) -> list[str]:
        """
        Return the addresses of the nodes that run, the leader's first, since others may learn later who leads.

        Paused nodes and zombies are left out unless no other node runs.
        """
        running = [name for name in self.ids if name not in self.down]
        able = [name for name in running if name not in self.paused and name not in self.zombies]
        leader = self.leader()
        return [self.addresses[name] for name in sorted(able or running, key=lambda name: name != leader)]

    def address_of(self, name: str) -> str:
        """
        Return the address of a node for clients, or its name if it has no address.

        Raises:
            UsageError: there is no such node.
        """
        if name not in self.ids:
            raise UsageError(f"via {name}: expected a node, one of {', '.join(self.ids)}")
        return self.addresses.get(name, name)

    # --- what can be seen ------------------------------------------------------------------------------------
    def log(self, name: str) -> ReplicaLog | None:
        """Return a replica's log as read from its files, None if there is none."""
        return self.host.replica_log(name, self.topic, self.partition)

    def log_end(self, name: str) -> int:
        """Return the log end offset in a replica's files, -1 if there is no log."""
        found = self.log(name)
        return -1 if found is None else found.log_end_offset

    def checkpoint(self, name: str) -> int:
        """Return the high watermark in a replica's checkpoint file, -1 if there is none."""
        found = self.log(name)
        return -1 if found is None or found.high_watermark is None else found.high_watermark

    def truth(self) -> PartitionTruth | None:
        """Return the partition's state in ZooKeeper; None while there is none."""
        return self.zookeeper_view.truth(self.topic, self.partition)

    def leader(self) -> str | None:
        """Return the leader that ZooKeeper names, None for no leader."""
        truth = self.truth()
        return None if truth is None else self.zookeeper_view.name_of(truth.leader)

    def isr(self) -> frozenset[str | None]:
        """Return the ISR that ZooKeeper holds; None is a broker that is no node of the run."""
        truth = self.truth()
        return frozenset() if truth is None else frozenset(self.zookeeper_view.name_of(m) for m in truth.isr)

    def reported_epoch(self, name: str) -> int:
        """Return the epoch in which a node last reported that it leads, -1 if it never did or follows since."""
        return self._leads_in.get(name, -1)

    def claims_leadership(self, name: str, epoch: int) -> bool:
        """
        Return True if a node claims to be the leader.

        If nodes emit events, the node's last report must name this epoch. Otherwise the node itself is asked, if
        it has an address, and the epoch is not checked.
        """
        if self.target.emits_events():
            return self.reported_epoch(name) == epoch
        return name not in self.addresses or probe.leads(self.addresses[name], self.topic, self.partition)

    def heard_epoch(self, name: str) -> int:
        """Return the epoch in which a node last reported that it leads or follows, -1 if it never did."""
        return self._heard.get(name, -1)

    def is_stuck(self, name: str) -> bool:
        """Return True if a node reported that it cannot go on following."""
        return name in self._stuck

    def has_exited(self, name: str) -> bool:
        """Return True if a node printed that it exits, and was not started since."""
        return name in self._exited

    def is_awaiting(self, name: str) -> bool:
        """Return True if a node reported that it restarted as leader and waits for a newer epoch."""
        return name in self._awaiting

    def listen(self, op: Op) -> None:
        """Track the roles of nodes from their events, or from the wire and printed lines if they emit none."""
        if (op.source, op.f) not in _HEARD:  # decoding every op would be slow
            return
        name = op.process
        match op.event:
            case Leader(epoch=epoch):
                self._heard[name] = self._leads_in[name] = epoch
                self._note_moving(name)
            case Follower(epoch=epoch, kept=kept):
                self._heard[name] = epoch
                self._leads_in.pop(name, None)
                if not kept:
                    self._note_moving(name)
            case Started():
                self._leads_in.pop(name, None)
                self._note_moving(name)
            case Stuck() | Printed(what="stuck"):
                self._stuck.add(name)
            case Awaiting():
                self._awaiting.add(name)
            case Printed(what="exiting"):
                self._exited.add(name)
            case Commanded(topic=topic, error=0) as command if topic == self.topic:
                self._note_command(command)

    def _note_moving(self, name: str) -> None:
        """Forget reports of a node that are void once it leads, follows or starts anew."""
        self._stuck.discard(name)
        self._awaiting.discard(name)

    def _note_command(self, command: Commanded) -> None:
        """Note that a node accepted a LeaderAndIsr: it leads or follows in that epoch, and is stuck no more."""
        name = command.link[1]
        if command.epoch > self._heard.get(name, -1):
            self._heard[name] = command.epoch
            self._stuck.discard(name)

    def await_(
        self,
        condition: Callable[[], bool],
        saw: Callable[[], str],
        seconds: float = limits.CONDITION_WAIT_S_MAX,
    ) -> None:
        """
        Wait for a condition.

        Args:
            saw: returns what is seen instead of the condition.

        Raises:
            PreconditionError: the condition did not hold in time.
            RunCancelled: the run was cancelled.
        """
        met = self.time.until(lambda: self.cancelled or condition(), seconds)
        self._go_on()
        if not met:
            raise PreconditionError(f"not seen within {seconds:g} s: {saw()}")

    def record(self, process: str, type_: OpType, event: Event) -> Op:
        """Write an op to the history; raise RunCancelled if the run was cancelled."""
        self._go_on()
        return self.history.record(process, type_, event)

    def _go_on(self) -> None:
        if self.cancelled:
            raise RunCancelled(f"run {self.history.path.parent.name}: cancelled")

    def cancel(self) -> None:
        """Take all nodes down; the next wait or record of the run raises RunCancelled."""
        self.cancelled = True
        self.host.close()

    def close(self) -> None:
        """Take everything down, even after one part fails; safe to call twice."""
        with ExitStack() as stack:
            for end in (self.history, self.host, self.fabric, self.zookeeper_view):
                stack.callback(end.close)
