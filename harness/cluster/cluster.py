"""
A cluster under test: its machines, links, metadata, operator, history and time.

The runner and the nemeses act on the cluster only through this class, by node name. They observe it through its
files (as any operator could), its metadata and the history. An environment (harness/run/environment.py) makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from harness import limits
from harness.ability import OF_TARGETS, Ability
from harness.cluster.announced import Announced
from harness.cluster.churned import ChurnedTopics
from harness.cluster.given_up import GivenUp
from harness.cluster.in_force import InForce
from harness.cluster.interfaces import Links, Machines, Services, Time
from harness.cluster.last_words import explained
from harness.cluster.names import OWN, protocol_of
from harness.cluster.partition import NOTED, Partition
from harness.effect import DOWN, UNREACHED, Effect
from harness.events import Event, Installed
from harness.events.codec import key_of_kind
from harness.history.file import History
from harness.logs.replica import ReplicaLog
from harness.model import Op, OpType, PreconditionError, UsageError
from harness.target.clients import Workload
from harness.target.metadata import Metadata, PartitionTruth
from harness.target.operator import Operator, lacking
from harness.target.target import Target
from harness.target.traits import Traits
from harness.workload.plan import ChurnPlan, Place

_HEARD: Final = frozenset(map(key_of_kind, NOTED))


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
        further: the partitions besides the one of topic and partition, each with its replicas.
        partitions: all of them, the main one first.
        churners: the clients that create and delete topics of their own.
        workload: the clients of the run's workload while they work, None before, or if there is none.
        services: those that are this run's own; None if it shares all with others, or has none.
        removed: those of `further` that an operator removes, and may add again.
        churned: those topics, and what is removed; their partitions are no part of `partitions`.
        watched: all partitions, those of churned topics among them.
        before_down: node's name -> its incarnation and the version of the partition's state, just before a fault
            took it down.
        rotten: node's name -> how many flipped bytes a reader of its files has found.
        emptied: the nodes whose disk was lost since the cluster was whole last.
        cancelled: set by `cancel`; every later wait and record raises RunCancelled.
    """

    host: Machines
    target: Target
    protocol: str
    rules: Mapping[str, str]
    traits: Traits
    ids: Mapping[str, int]
    replicas: tuple[str, ...]
    topic: str
    partition: int
    history: History
    fabric: Links
    metadata: Metadata
    operator: Operator
    time: Time
    addresses: Mapping[str, str] = field(default_factory=dict)
    in_force: InForce = field(default_factory=InForce)
    before_down: dict[str, tuple[int, int]] = field(default_factory=dict)
    rotten: dict[str, int] = field(default_factory=dict)
    emptied: set[str] = field(default_factory=set)
    cancelled: bool = False
    further: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    churners: tuple[ChurnPlan, ...] = ()
    removed: tuple[Place, ...] = ()
    services: Services | None = None
    workload: Workload | None = None
    partitions: tuple[Partition, ...] = field(init=False)
    churned: ChurnedTopics = field(init=False)
    watched: tuple[Partition, ...] = field(init=False)
    _named: Partition | None = field(init=False, default=None)
    parted_from: str | None = field(init=False, default=None)
    given_up: GivenUp = field(default_factory=GivenUp)
    _announced: Announced = field(init=False, default_factory=Announced)

    def __post_init__(self) -> None:
        places = {Place(self.topic, self.partition): self.replicas, **self.further}
        self.partitions = tuple(
            self._partition(place, replicas) for place, replicas in places.items() if place not in self.removed
        )
        churned = [*(place for churner in self.churners for place in churner.places), *self.removed]
        theirs = {name for churner in self.churners for name in churner.nodes}
        theirs |= {name for place in self.removed for name in places[place]}
        self.churned = ChurnedTopics(
            partitions=tuple(self._partition(place, ()) for place in churned),
            nodes=tuple(name for name in self.ids if name in theirs),
            metadata=self.metadata,
        )
        self.watched = (*self.partitions, *self.churned.partitions)

    def _partition(self, place: Place, replicas: tuple[str, ...]) -> Partition:
        return Partition(
            place=place,
            replicas=replicas,
            host=self.host,
            target=self.target,
            emits_events=self.traits.emits_events,
            metadata=self.metadata,
            operator=self.operator,
            addresses=self.addresses,
            exited=self.given_up.exited,
        )

    @property
    def main(self) -> Partition:
        """The partition that steps are about, unless they name another."""
        return self.partitions[0]

    @property
    def named(self) -> Partition:
        """The partition that the step at hand names, else the main one: a fault acts on it."""
        return self.main if self._named is None else self._named

    @contextmanager
    def naming(self, place: Place | None, service: str | None = None) -> Iterator[None]:
        """Make `named` this partition, None the main one, and `parted_from` this service, for the step at hand."""
        self._named = next((each for each in self.watched if each.place == place), None)
        self.parted_from = service
        try:
            yield
        finally:
            self._named = self.parted_from = None

    def in_sync(self) -> bool:
        """Return True if every partition's ISR is all its replicas."""
        return all(partition.in_sync() for partition in self.partitions)

    def lacks(self, ability: Ability) -> str:
        """Return why the target, or these machines, cannot do it; "" if they can."""
        if ability in OF_TARGETS:
            return lacking(self.target.name, self.target.abilities, ability)
        return self.host.lacks(ability)

    def is_governed(self) -> bool:
        """Return True if there is a controller, or the system has no such office among its nodes."""
        return bool(self.lacks(Ability.CONTROLLER)) or self.metadata.controller() is not None

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
        """The nodes that are cut off from the metadata."""
        return self.in_force.nodes({Effect.CUT_OFF})

    @property
    def service_nodes(self) -> tuple[str, ...]:
        """The processes of the run's own services: nodes of its machines that are no replicas."""
        return () if self.services is None else tuple(chain(*self.services.names.values()))

    # --- nodes -----------------------------------------------------------------------------------------------
    def start(self, name: str) -> str:
        """
        Start a node's process; return what is seen of it, once it is a member anew, if that is shown, and serves.

        If the target refuses to start while its old registration exists, end that membership first.

        Raises:
            PreconditionError: the process ended by itself, or did not register or serve in time.
        """
        if self.services is not None and name in self.service_nodes:
            return self.services.start(name)
        shown = not self.lacks(Ability.MEMBERS)
        # A start that took too long is still under way, on a machine that is slow.
        started = name in self.down and self.host.alive(name)
        old = self.metadata.incarnation(name) if shown and not started else 0
        refused = bool(old) and self.traits.refuses_old_membership
        if refused:
            self.operator.expire(name)
        if not started:
            for partition in self.watched:
                partition.starts(name)
            self.given_up.starts(name)
            self.host.boot(name)
        if shown:
            self._await_alive(name, lambda: self.metadata.incarnation(name) not in (0, old), "registered anew")
        # A broker may register before it listens; of one that clients do not reach nobody can tell.
        if name in self.addresses and name not in self.in_force.nodes(UNREACHED):
            self._await_alive(name, lambda: self.target.clients.serves(self.addresses[name]), "serving")
        if not shown:
            return "its process runs"
        session = self.metadata.incarnation(name)
        before = f", {'after the end of' if refused else 'taken over from'} 0x{old:x}" if old else ""
        return f"registered in session 0x{session:x}{before}"

    def install(self, names: Sequence[str], protocol: str) -> None:
        """
        Have nodes follow another protocol from their next start on, on the same disks.

        Changes of rules that the run was asked for are of its own protocol, and of no other.

        Args:
            protocol: a name of the target's; OWN for the run's, or `@kip101` for that which speaks as that one.

        Raises:
            PreconditionError: one of them runs.
            UsageError: the target has no such protocol.
        """
        if runs := next((name for name in names if name not in self.down), None):
            raise PreconditionError(f"install {protocol} on {runs}: it runs; expected a node that is down")
        found, rules = self._named_protocol(protocol)
        for name in names:
            self.host.install(name, found, rules)
            self.record("runner", OpType.INFO, Installed(node=name, protocol=found, rules=rules))

    def _named_protocol(self, protocol: str) -> tuple[str, Mapping[str, str]]:
        if protocol == OWN:
            return self.protocol, self.rules
        found = protocol_of(protocol, self.protocol, self.target.name)
        return found, self.target.rules(found, ())

    def why_not_installed(self, protocol: str) -> str:
        """Return why the target has no such protocol, "" if it has."""
        try:
            self._named_protocol(protocol)
        except UsageError as error:
            return str(error)
        return ""

    def _await_alive(self, name: str, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition of a starting node; raise PreconditionError at once if its process ends."""
        self.await_(lambda: condition() or not self.host.alive(name), lambda: f"{name} is {what}")
        if not self.host.alive(name):
            raise PreconditionError(f"start {name}: the process ended by itself; {self.last_words(name)}")

    def last_words(self, name: str) -> str:
        """Return why a node's process ended: the cause and the last lines of its output, without frames."""
        return f"it said: {explained(self.host.log_text(name))}"

    def _state_in_metadata(self, name: str) -> tuple[int, int]:
        """
        Return a node's incarnation and the version of the partition's state, for the condition `unseen`.

        Nobody knows them while no metadata are read.
        """
        if name in self.service_nodes or (self.services is not None and self.services.out):
            return 0, -1
        truth = self.truth()
        member = 0 if self.lacks(Ability.MEMBERS) else self.metadata.incarnation(name)
        return member, truth.version if truth else -1

    def take_down(self, name: str, how: Callable[[str], str]) -> str:
        """End a node's process by `how`, after noting what the metadata show; return what `how` saw."""
        before = self._state_in_metadata(name)
        seen = how(name)
        self.before_down[name] = before
        return seen

    def clients_addresses(self) -> list[str]:
        """
        Return the addresses of the nodes that run, the leader's first, since others may learn later who leads.

        Paused nodes, zombies and those that clients do not reach are left out unless no other node runs.
        """
        running = [name for name in self.ids if name not in self.down]
        away = self.in_force.nodes({Effect.PAUSED, Effect.CUT_OFF, *UNREACHED})
        able = [name for name in running if name not in away]
        # Clients ask at any time, and go on while no metadata are read.
        try:
            leader = self.leader()
        except PreconditionError:
            leader = None
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

    # --- what can be seen of the main partition ------------------------------------------------------------
    def log(self, name: str) -> ReplicaLog | None:
        """Return a replica's log as read from its files, None if there is none."""
        return self.main.log(name)

    def log_end(self, name: str) -> int:
        """Return the log end offset in a replica's files, -1 if there is no log."""
        return self.main.log_end(name)

    def checkpoint(self, name: str) -> int:
        """Return the high watermark in a replica's checkpoint file, -1 if there is none."""
        return self.main.checkpoint(name)

    def truth(self) -> PartitionTruth | None:
        """Return the partition's state in the metadata; None while there is none."""
        return self.main.truth()

    def leader(self) -> str | None:
        """Return the leader that the metadata name, None for no leader."""
        return self.main.leader()

    def isr(self) -> frozenset[str | None]:
        """Return the ISR that the metadata show; None is a node that is no node of the run."""
        return self.main.isr()

    def heard_epoch(self, name: str) -> int:
        """Return the epoch in which a node last reported that it leads or follows, -1 if not since it started."""
        return self.main.heard_epoch(name)

    def is_stuck(self, name: str) -> bool:
        """Return True if a node reported that it cannot go on following."""
        return self.main.is_stuck(name)

    def is_told(self) -> bool:
        """Return True if no node has done more than it has reported, as far as it reports."""
        return not self._announced.awaited() and all(each.is_told() for each in self.partitions)

    def listen(self, op: Op) -> None:
        """Track the roles of nodes from their events, or from the wire and printed lines if they emit none."""
        self._announced.listen(op)
        if (op.source, op.f) not in _HEARD:  # decoding every op would be slow
            return
        if self.given_up.note(op.process, op.event):
            return
        place = op.place
        for each in self.watched:
            if place is None or each.place == place:
                each.note(op.process, op.event)

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
            HistoryError, RunCancelled: an observation was lost, so that the run is unknown; or it was cancelled.
        """
        met = self.time.until(lambda: self.cancelled or not self.history.whole or condition(), seconds)
        self._go_on()
        self.history.require_whole()
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
            for end in (self.history, self.host, self.fabric, self.metadata):
                stack.callback(end.close)
