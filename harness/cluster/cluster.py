"""
A cluster under test: machines, the links between them, an eye on ZooKeeper, one history, and how its time passes.

Everything that the runner and the nemeses do to it goes through here, by node name; what they learn of it comes
from its files (as any operator could read them), from ZooKeeper, or from the history. Who made its parts, and of
what, is a ground's business (harness/ground.py).
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
from harness.cluster.target import OLD_REGISTRATION, REFUSED, Target
from harness.effect import DOWN, Effect
from harness.events import Awaiting, Commanded, Event, Follower, Leader, Printed, Started, Stuck
from harness.events.codec import key_of_kind
from harness.history.file import History
from harness.logdir.scan import ReplicaLog
from harness.model import Op, OpType, PreconditionError, UsageError

TOPIC: Final = "log"
PARTITION: Final = 0
# How a line of a Java stack trace begins, of which there may be dozens behind the one that says what happened.
STACK_FRAME: Final = "\tat "
_HEARD: Final = frozenset(map(key_of_kind, (Leader, Follower, Started, Stuck, Awaiting, Printed, Commanded)))


class RunCancelled(Exception):
    """The run was given up from outside, as by Ctrl-C; no failure of it, so that nobody heals and reads on."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    """
    One run's cluster; a ground makes it, and it is to be closed whatever happens.

    Shapes:  ids are in the order of starting; replicas are the nodes with a disk that can lose power. addresses
             are where clients reach the nodes, "host:port" by name; {} where clients need none.
    """

    host: Machines
    target: Target
    protocol: str
    rules: Mapping[str, str]
    ids: Mapping[str, int]
    replicas: tuple[str, ...]
    history: History
    fabric: Links
    zookeeper_view: ZooKeeperView
    time: Time
    addresses: Mapping[str, str] = field(default_factory=dict)
    in_force: InForce = field(default_factory=InForce)
    before_down: dict[str, tuple[int, int]] = field(default_factory=dict)  # session, version of the partition
    cancelled: bool = False
    _told: dict[str, int] = field(default_factory=dict)
    _heard: dict[str, int] = field(default_factory=dict)
    _stuck: set[str] = field(default_factory=set)
    _awaiting: set[str] = field(default_factory=set)
    _exited: set[str] = field(default_factory=set)

    # --- what is in force ---------------------------------------------------------------------------------------
    @property
    def down(self) -> frozenset[str]:
        """The nodes whose process a fault ended, or that ended by themselves, and that were not started since."""
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
        Start a node's process; return once it holds a registration of its own, and serves.

        An old registration that still stands is ended first where the target would be refused for it.
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
        """Wait for a condition of a node that is starting; PreconditionError at once when it ends by itself."""
        self.await_(lambda: condition() or not self.host.alive(name), lambda: f"{name} is {what}")
        if not self.host.alive(name):
            raise PreconditionError(f"start {name}: the process ended by itself; {self.last_words(name)}")

    def last_words(self, name: str) -> str:
        """The last lines that a node's process printed, without where in its code that was."""
        lines = [line for line in self.host.log_text(name).splitlines() if not line.startswith(STACK_FRAME)]
        return "it said: " + " | ".join(lines[-3:])

    def standing(self, name: str) -> tuple[int, int]:
        """A node's session and the version of the partition's state: what `unseen` compares with later."""
        truth = self.zookeeper_view.truth(TOPIC, PARTITION)
        return self.zookeeper_view.registered(name), truth.version if truth else -1

    def take_down(self, name: str, how: Callable[[str], str]) -> str:
        """End a node's process and remember what ZooKeeper held just before; return what `how` saw."""
        standing = self.standing(name)
        seen = how(name)
        self.before_down[name] = standing
        return seen

    def clients_addresses(self) -> list[str]:
        """
        Where clients reach the nodes that run; those that cannot know who leads when there is no other.

        The leader is the first: all others may hear later than it who leads.
        """
        running = [name for name in self.ids if name not in self.down]
        able = [name for name in running if name not in self.paused and name not in self.zombies]
        leader = self.leader()
        return [self.addresses[name] for name in sorted(able or running, key=lambda name: name != leader)]

    def address_of(self, name: str) -> str:
        """Where a client reaches a node: its address, or its name where it has none; UsageError for no node."""
        if name not in self.ids:
            raise UsageError(f"via {name}: expected a node, one of {', '.join(self.ids)}")
        return self.addresses.get(name, name)

    # --- what can be seen ------------------------------------------------------------------------------------
    def log(self, name: str) -> ReplicaLog | None:
        """A replica's log as its files hold it, None while there is none."""
        return self.host.replica_log(name, TOPIC, PARTITION)

    def log_end(self, name: str) -> int:
        """Where a replica's files end, -1 while there is no log."""
        found = self.log(name)
        return -1 if found is None else found.log_end_offset

    def checkpoint(self, name: str) -> int:
        """A replica's high watermark as its checkpoint file has it, -1 while there is none."""
        found = self.log(name)
        return -1 if found is None or found.high_watermark is None else found.high_watermark

    def leader(self) -> str | None:
        """Who leads by ZooKeeper's word, None when nobody does."""
        truth = self.zookeeper_view.truth(TOPIC, PARTITION)
        return None if truth is None else self.zookeeper_view.name_of(truth.leader)

    def isr(self) -> frozenset[str | None]:
        """Who is in sync by ZooKeeper's word."""
        truth = self.zookeeper_view.truth(TOPIC, PARTITION)
        return frozenset() if truth is None else frozenset(self.zookeeper_view.name_of(m) for m in truth.isr)

    def reported_epoch(self, name: str) -> int:
        """The epoch that a node last said it leads in, -1 when it never did or follows since."""
        return self._told.get(name, -1)

    def claims_leadership(self, name: str, epoch: int) -> bool:
        """Whether a node holds itself for the leader: in that epoch where nodes tell, else when it is asked."""
        if self.target.emits_events():
            return self.reported_epoch(name) == epoch
        return name not in self.addresses or probe.leads(self.addresses[name], TOPIC, PARTITION)

    def heard_epoch(self, name: str) -> int:
        """The epoch that a node last said it leads or follows in, -1 when it never did."""
        return self._heard.get(name, -1)

    def is_stuck(self, name: str) -> bool:
        """Whether a node said that it cannot go on following."""
        return name in self._stuck

    def has_exited(self, name: str) -> bool:
        """Whether a node said that it ends itself, and was not started since."""
        return name in self._exited

    def is_awaiting(self, name: str) -> bool:
        """Whether a node said that it came back as leader and waits for a newer epoch."""
        return name in self._awaiting

    def listen(self, op: Op) -> None:
        """Take note of what a node tells of its role, or of what is seen of one that tells nothing."""
        if (op.source, op.f) not in _HEARD:  # most are of others, and need not be decoded here
            return
        name = op.process
        match op.event:
            case Leader(epoch=epoch):
                self._heard[name] = self._told[name] = epoch
                self._note_moving(name)
            case Follower(epoch=epoch, kept=kept):
                self._heard[name] = epoch
                self._told.pop(name, None)
                if not kept:
                    self._note_moving(name)
            case Started():
                self._told.pop(name, None)
                self._note_moving(name)
            case Stuck() | Printed(what="stuck"):
                self._stuck.add(name)
            case Awaiting():
                self._awaiting.add(name)
            case Printed(what="exiting"):
                self._exited.add(name)
            case Commanded(topic=topic, error=0) as command if topic == TOPIC:
                self._note_command(command)

    def _note_moving(self, name: str) -> None:
        """Forget what a node said that ends when it leads, follows or starts anew."""
        self._stuck.discard(name)
        self._awaiting.discard(name)

    def _note_command(self, command: Commanded) -> None:
        """Note that a node has obeyed: it leads or follows in that epoch, with nothing of an older one left."""
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
        """Wait for a condition; PreconditionError with what was seen instead when it does not come."""
        met = self.time.until(lambda: self.cancelled or condition(), seconds)
        self._go_on()
        if not met:
            raise PreconditionError(f"not seen within {seconds:g} s: {saw()}")

    def record(self, process: str, type_: OpType, event: Event) -> Op:
        """Write an op to the history."""
        self._go_on()
        return self.history.record(process, type_, event)

    def _go_on(self) -> None:
        if self.cancelled:
            raise RunCancelled(f"run {self.history.path.parent.name}: cancelled")

    def cancel(self) -> None:
        """Take all nodes down; whoever plays the run gets RunCancelled at its next step."""
        self.cancelled = True
        self.host.close()

    def close(self) -> None:
        """Take everything down, whatever of it fails; safe to call twice."""
        with ExitStack() as stack:
            for end in (self.history, self.host, self.fabric, self.zookeeper_view):
                stack.callback(end.close)
