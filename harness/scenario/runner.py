"""
Play a scenario on a cluster: record each step, wait for its condition, then heal the cluster and read its logs.

At the end every fault and every rule of a link is undone. Each replica must then catch up with its leader and be
in the ISR again, within `heal_within_s`; the run is a hang that names who is not. A last step `require isr = A`
says that others may stay out of it.

A step that fails ends the schedule. The cluster is still healed and read, and the run's verdict is unknown.
A violation that the live check sees ends it too, if the run is to stop there; then the checkers judge the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from harness import events, limits
from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.in_force import FaultInForce
from harness.cluster.known_epochs import KnownEpochs
from harness.cluster.partition import Partition
from harness.effect import Effect
from harness.events import Done, Event, Exited, Healed
from harness.model import BeyondHelpError, FencepostError, OpType, PreconditionError, UsageError
from harness.scenario.client_steps import ClientSteps
from harness.scenario.condition_types import Condition, InSync, Leads
from harness.scenario.conditions import Conditions
from harness.scenario.fault_steps import FaultSteps
from harness.scenario.file import Draw, Scenario, Step
from harness.scenario.final_reads import FinalReads
from harness.scenario.left_out import left_out
from harness.scenario.link_steps import LinkSteps
from harness.scenario.offsets import RecordOffsets
from harness.scenario.produce_steps import Produces
from harness.scenario.recent_events import RecentEvents
from harness.scenario.relief import await_relieved
from harness.scenario.service_steps import require_services
from harness.scenario.steps import Act, Await, ClientAct, Inject, Install, Pass, Produce, Require, Settle
from harness.scenario.stop import Stop, StoppedError
from harness.scenario.words import MessageWords
from harness.target.clients import Client, Workload

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Play:
    """Plays one scenario, which holds only the steps of the variant that is played."""

    scenario: Scenario
    draw: Draw
    cluster: Cluster
    client: Client
    faults: Mapping[str, Fault]
    # The type of the op of a step or a fault that failed: in a random schedule a step may fail.
    missed: OpType = OpType.FAIL
    # None for a run that does not stop at a violation.
    stop: Stop | None = None
    record_offsets: RecordOffsets = field(init=False)
    produces: Produces = field(init=False)
    client_steps: ClientSteps = field(init=False)
    links: LinkSteps = field(init=False)
    fault_steps: FaultSteps = field(init=False)
    conditions: Conditions = field(init=False)
    epochs: KnownEpochs = field(init=False)
    _recent: RecentEvents = field(init=False, default_factory=RecentEvents)
    _over: bool = field(init=False, default=False)
    # Why the cluster did not become whole in a settle, which ends the schedule; "" if it always did.
    _unsettled: str = field(init=False, default="")
    _workload: Workload | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        settings = self.scenario.settings
        self.record_offsets = RecordOffsets(
            counts=self.draw.counts, keys=settings.keys, tombstones=settings.tombstones
        )
        self.produces = Produces(self.cluster, self.client, self.record_offsets)
        self.client_steps = ClientSteps(self.cluster, self.client, self.record_offsets)
        words = MessageWords(self.cluster.target, self.cluster.rules)
        self.links = LinkSteps(self.cluster, self.record_offsets, self._recent, words)
        self.fault_steps = FaultSteps(
            cluster=self.cluster,
            faults=self.faults,
            seed=self.draw.seed,
            missed=self.missed,
            note_exit=self._note_exit,
        )
        self.epochs = KnownEpochs(cluster=self.cluster)
        self.conditions = Conditions(
            self.cluster,
            self.scenario.replicas,
            record_offsets=self.record_offsets,
            links=self.links,
            produces=self.produces,
            recent=self._recent,
        )

    # --- the whole run ---------------------------------------------------------------------------------------
    def run(self) -> None:
        """
        Set up the cluster, play the steps, heal, and read the logs.

        Failures are recorded in the history, not raised.

        Raises:
            UsageError: the scenario itself is wrong.
        """
        self.cluster.history.listeners.append(self._recent.listen)
        require_services(self.scenario, self.cluster.target, self.faults)
        try:
            self._recorded(events.Step(line=0, text="set up", narrative=""), self._set_up)
            for step in self.scenario.steps:
                if self._stopped():
                    break
                self._step(step)
                self.epochs.look()
            if self.links.rules and not self._stopped():
                line = self.scenario.steps[-1].line
                self._recorded(
                    events.Step(line=line, text="every rule of a link bit", narrative=""), self.links.prove
                )
        except UsageError as error:
            raise UsageError(f"scenario {self.scenario.name}: {error}") from error
        except FencepostError as error:
            _log.info("%s: stopped: %s", self.scenario.name, error)
        self._end_schedule()
        if self._workload is not None:
            self._workload.stop_producing()
        self._heal()
        self.produces.end()
        self._end_workload()
        unhealed = bool(self.fault_steps.unhealed())
        FinalReads(
            cluster=self.cluster,
            client=self.client,
            unhealed=unhealed,
            epochs=self.epochs,
            recorded=self._recorded,
        ).read()
        self._say(OpType.INFO, Done())

    def _stopped(self) -> bool:
        """Return True if the schedule is to end, because a violation was seen while it is played."""
        return self.stop is not None and not self._over and self.stop.violation is not None

    def _end_schedule(self) -> None:
        """Record the violation that ended the schedule, if any; what is seen later ends nothing."""
        violation = self.stop.violation if self.stop is not None else None
        self._over = True
        if violation is not None:
            self._say(OpType.INFO, violation)

    def _end_workload(self) -> None:
        """End the clients, each after what it waits for; consumers have polled until all logs were equal."""
        workload = self._workload
        if workload is None:
            return
        workload.stop()
        with suppress(PreconditionError):  # a client that does not end has an open op, which the checkers see
            self.cluster.await_(lambda: workload.done, lambda: "the end of the workload's clients")

    def _await_produced(self) -> None:
        """Wait for the outcome of all that the workload's producers sent."""
        if (workload := self._workload) is not None:
            self.cluster.await_(lambda: workload.produced, lambda: "the outcome of what producers sent")

    def _set_up(self) -> None:
        """Start the node that is to be controller first, then the replicas; then create the topic."""
        cluster, churners = self.cluster, self.scenario.clients.churners
        if churners and not self.client.churns:
            names = ", ".join(churner.name for churner in churners)
            raise UsageError(f"churner {names}: not by this client; expected the client raw, or host sim")
        self._start_nodes()
        cluster.metadata.watch([partition.place for partition in cluster.watched])
        numbers = {number: name for name, number in cluster.ids.items()}
        for topic, assignments in self._topics().items():
            if cluster.operator.creates:
                cluster.operator.create(topic, [[numbers[each] for each in group] for group in assignments])
            else:
                self.client.create_topic(topic, *assignments)
        self._await(Leads(self.scenario.replicas[0]))
        self._await(InSync(self.scenario.replicas))
        for partition in cluster.partitions[1:]:
            cluster.await_(partial(_is_ready, partition), partition.lacking)
        cluster.await_(cluster.churned.works, cluster.churned.lacking)
        if cluster.traits.begins_flushed:
            cluster.time.together(cluster.host.flush, sorted(self.scenario.stores))
        if self.scenario.clients:
            nodes = {name: cluster.address_of(name) for name in cluster.ids}
            crashes = any(Ability.CLIENT_PROCESSES in self.faults[name].needs for name in self.scenario.faults)
            clients = self.scenario.clients.killable() if crashes else self.scenario.clients
            self._workload = self.client.begin_workload(clients, self.draw.seed, nodes=nodes)
            cluster.workload = self._workload

    def _start_nodes(self) -> None:
        """Start all nodes, the first of them as the controller."""
        cluster = self.cluster
        controller, *others = self.scenario.nodes

        def governs() -> bool:
            return cluster.metadata.controller() == controller

        if cluster.operator.appoints:
            cluster.time.together(cluster.start, self.scenario.nodes)
            cluster.operator.appoint(controller)
        else:
            cluster.start(controller)
        if not cluster.lacks(Ability.CONTROLLER):
            cluster.await_(governs, lambda: f"controller is {controller}")
        if not cluster.operator.appoints:
            cluster.time.together(cluster.start, others)

    def _topics(self) -> dict[str, list[list[int]]]:
        """Return each topic's broker ids, partition by partition from 0 on."""
        found: dict[str, list[list[int]]] = {}
        for place, replicas in sorted(self.scenario.places.items()):
            found.setdefault(place.topic, []).append([self.cluster.ids[name] for name in replicas])
        return found

    def _step(self, step: Step) -> None:
        about = events.Step(line=step.line, text=step.text, narrative=step.narrative)
        self._recorded(about, lambda: self._act(self.fault_steps.aimed(step)))

    def _recorded(self, step: events.Step, act: Callable[[], None]) -> None:
        """Record a step and run it; if it fails, record its error and raise it."""
        self._say(OpType.INVOKE, step)
        try:
            act()
        except FencepostError as error:
            type_ = OpType.INFO if isinstance(error, StoppedError) else self.missed
            self._say(type_, replace(step, error=str(error)))
            raise
        self._say(OpType.OK, step)

    def _act(self, act: Act) -> None:
        if not isinstance(act, Await | Require):
            self._recent.turn()
            self.conditions.turn()
        match act:
            case Await(condition):
                self._await(condition)
            case Require(condition):
                if not self.conditions.holds(condition):
                    raise PreconditionError(f"required, but does not hold: {self.conditions.saw(condition)}")
            case Produce():
                self.produces.act(act)
            case _ if isinstance(act, ClientAct):
                self.client_steps.act(act)
            case Pass(ms):
                self._let_pass(float(ms) / 1000)
            case Inject(fault, nodes, place, service):
                with self.cluster.naming(place, service):
                    self.fault_steps.inject(self.faults[fault], nodes)
            case Install(protocol, nodes):
                self.cluster.install(nodes, protocol)
            case Settle():
                self._settle()
            case _:
                self.links.act(act)

    # --- steps -----------------------------------------------------------------------------------------------
    def _await(self, condition: Condition) -> None:
        met: list[bool] = []

        def ended() -> bool:
            met[:] = [self.conditions.holds(condition)]
            return met[0] or self._stopped()

        self.cluster.await_(ended, lambda: self.conditions.saw(condition))
        if not met[0]:
            raise StoppedError("ended early: a violation was seen")

    def _let_pass(self, seconds: float) -> None:
        self.cluster.time.until(lambda: self.cluster.cancelled or self._stopped(), seconds)

    def _settle(self) -> None:
        """Undo everything and wait until the cluster is whole; raise PreconditionError if it is not in time."""
        self._undo_all()
        self._await_relieved(self._is_settled, self.conditions.lacking)

    def _await_relieved(self, condition: Callable[[], bool], lacking: Callable[[], str]) -> None:
        await_relieved(self.cluster, self.fault_steps, condition, lacking, self._heal_within_s)

    @property
    def _heal_within_s(self) -> float:
        """How long the cluster may take to be whole: what the run allows, or what the system itself takes."""
        return max(self.scenario.settings.heal_within_s, self.cluster.traits.heal_s)

    def _undo_all(self) -> list[tuple[FaultInForce, FencepostError]]:
        """Undo every rule of a link and every fault; return the faults that could not be undone."""
        self.links.forget()
        failed = self.fault_steps.heal_all()
        self._free_office()
        return failed

    def _is_settled(self) -> bool:
        """Return True if there is a controller, and every partition has its leader at work and its ISR whole."""
        return self.cluster.is_governed() and all(map(_is_led, self.cluster.partitions))

    # --- the end ---------------------------------------------------------------------------------------------
    def _heal(self) -> None:
        """Undo every fault, even after one fails; then wait until the cluster is whole."""
        self._miss_the_gone()
        try:
            failed = self._undo_all()
            if self._unsettled:
                raise PreconditionError(self._unsettled)
            self._await_whole(without=frozenset(found.node for found, _ in failed))
            if failed:
                raise PreconditionError("; ".join(str(error) for _, error in failed))
        except FencepostError as error:
            waited = not isinstance(error, BeyondHelpError)
            self._say(
                OpType.FAIL,
                Healed(
                    missing=str(error),
                    waited=waited,
                    unhealed=tuple(self.fault_steps.unhealed()) or None,
                    outside=self.conditions.outside() or None,
                    said=self.conditions.said() or None,
                ),
            )
        else:
            self._say(OpType.OK, Healed())
        self._miss_the_gone()

    def _free_office(self) -> None:
        """Depose a controller that took the office in an older membership, which may last long."""
        cluster = self.cluster
        if cluster.lacks(Ability.DEPOSE):
            return
        office = cluster.metadata.office()
        if office is not None and office.node is not None and self._is_of_old(office.node, office.member):
            with suppress(PreconditionError):  # that membership has just ended by itself
                cluster.operator.depose()

    def _is_of_old(self, holder: str, member: int) -> bool:
        """Return True if the controller took its office in another membership than the one that it has."""
        return member not in (0, self.cluster.metadata.incarnation(holder))

    def _await_whole(self, without: Collection[str]) -> None:
        """
        Wait until each replica, except `without`, has caught up and is in the ISR, or reports that it cannot.

        Equal logs are not enough: a replica that never returns to the ISR counts for no acknowledgement.
        """
        self._await_produced()
        allowed = left_out(self.scenario.steps, self.scenario.replicas)
        self._await_relieved(
            lambda: self.conditions.whole(without) and self.conditions.in_sync(without, allowed),
            self.conditions.lacking,
        )
        # What brokers have done is there before they tell; a report that never comes is for the rules.
        self.cluster.time.until(self.cluster.is_told, limits.TOLD_S_MAX)
        self._await_churned(self._heal_within_s)

    def _await_churned(self, within_s: float) -> None:
        """Wait until churned topics are whole; a replica that is left of one that is gone is judged, no hang."""
        churned = self.cluster.churned
        with suppress(PreconditionError):
            self.cluster.await_(churned.whole, churned.lacking, within_s)
        self.cluster.await_(churned.works, churned.lacking, within_s)

    def _miss_the_gone(self) -> None:
        """Record every node that runs no more although no fault took it down."""
        for name in self.cluster.ids:
            if name not in self.cluster.down:
                self._note_exit(name)

    def _note_exit(self, name: str) -> None:
        """Record that a node ended by itself, which no scenario allows; do nothing if it runs."""
        cluster = self.cluster
        if cluster.host.alive(name) and name not in cluster.given_up.exited:
            return
        error = f"{name} ended by itself; {cluster.last_words(name)}"
        self._say(OpType.FAIL, Exited(node=name, error=error))
        if cluster.host.alive(name):  # it may hang in its own exit
            cluster.host.kill(name)
        cluster.in_force.begin(FaultInForce(fault="", effect=Effect.DOWN, node=name))

    def _say(self, type_: OpType, event: Event) -> None:
        self.cluster.record("runner", type_, event)


def _is_led(partition: Partition) -> bool:
    leader = partition.leader()
    return leader is not None and partition.in_sync() and partition.leads(leader)


def _is_ready(partition: Partition) -> bool:
    return partition.whole() and partition.in_sync()
