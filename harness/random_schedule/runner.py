"""
Plays a random schedule: a scenario in which any step may be inapplicable, or fail, when its turn comes.

An inapplicable step is skipped, a failed step is recorded, and the schedule continues.

At the end all faults are undone and dead sessions ended. Then the cluster must work again: every replica is in the
ISR, a last record is acknowledged with acks=all, and all logs end where the leader's does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from harness import events
from harness.cluster.partition import Partition
from harness.effect import Effect
from harness.keys import keyed
from harness.model import BeyondHelpError, Op, OpType, PreconditionError, Source, UsageError
from harness.random_schedule.applicable import moves, why_not
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.timing import ELECTION_MS, QUIET_MS, VIRTUAL, Timing
from harness.scenario.file import Scenario, Step
from harness.scenario.runner import Play
from harness.scenario.steps import MEANWHILE, Act, Inject, Pass, Produce
from harness.target.clients import Underway
from harness.target.settings import MessageFormat
from harness.workload.plan import ACKS_ALL

# Long enough for what is still under way: an election that was asked for, a produce that is sent again.
QUIET_S: Final = 0.3


@dataclass(slots=True)
class Waiting:
    """
    Counts records that have no outcome yet.

    Attributes:
        asked: how many records the steps so far produce.
        outcomes: how many records have an outcome in the history.
    """

    asked: int = 0
    outcomes: int = 0

    def listen(self, op: Op) -> None:
        """Count the op if it is a record's outcome."""
        # Invocations are not counted: a client may record them late, from a thread of its own.
        if op.source is Source.CLIENT and op.type is not OpType.INVOKE and isinstance(op.event, events.Produce):
            self.outcomes += 1

    def over(self) -> bool:
        """Return True if every record has its outcome."""
        return self.outcomes >= self.asked


@dataclass(slots=True)
class Clock:
    """The time of the last op in the history, in nanoseconds from its beginning."""

    now_ns: int = 0

    def listen(self, op: Op) -> None:
        """Note the op's time."""
        self.now_ns = op.time_ns


@dataclass(slots=True, kw_only=True)
class RandomPlay(Play):
    """Plays one random schedule, with the environment's timing."""

    missed: OpType = OpType.INFO
    timing: Timing = VIRTUAL
    # How long the schedule goes on, in seconds of the history's time; None: until its last step.
    seconds: float | None = None
    # The steps that were tried, with the nodes that aims meant: they can be played again.
    executed: list[Step] = field(default_factory=list)
    _clock: Clock = field(init=False, default_factory=Clock)
    _settled: int = field(init=False, default=0)
    _until_ns: int | None = field(init=False, default=None)
    _waiting: Waiting = field(init=False, default_factory=Waiting)
    _taken: int = field(init=False, default=0)
    # Whether the last pass was extended in vain, and no fault and no link has changed since.
    _in_vain: bool = field(init=False, default=False)

    def _set_up(self) -> None:
        self.cluster.history.listeners.append(self._waiting.listen)
        if self.seconds is not None:
            self.cluster.history.listeners.append(self._clock.listen)
        self.client_steps.removed_s_max = self.timing.removed_s_max
        Play._set_up(self)
        if self.seconds is not None:
            self._until_ns = self._clock.now_ns + int(self.seconds * 1e9)

    # No `super()`: `slots=True` makes the decorator create a new class, and `super()` still refers to the old one.
    def _step(self, step: Step) -> None:
        self._taken += 1
        self._miss_the_gone()
        act = step.act
        try:
            act = self.fault_steps.aimed(step)
            self._await_moved(act)
            reason = why_not(act, self.cluster, self.links, self.faults, alike=self.timing.alike)
        except PreconditionError as error:  # the aim means no node now, or what decides it is not seen
            reason = str(error)
        if reason:
            about = events.Step(line=step.line, text=step.text, narrative=step.narrative, skipped=reason)
            self._say(OpType.INFO, about)
            return
        try:
            # With the nodes in place of an aim: the executed schedule plays again without it.
            step = step if act is step.act else replace(step, act=act)
            self.executed.append(step)
            Play._step(self, step)
        except UsageError:
            raise
        except PreconditionError:
            return  # recorded already; the schedule continues

    def _stopped(self) -> bool:
        time_is_up = self._until_ns is not None and self._clock.now_ns >= self._until_ns
        return Play._stopped(self) or (not self._over and (time_is_up or bool(self._unsettled)))

    def _act(self, act: Act) -> None:
        self._in_vain = self._in_vain and isinstance(act, Pass | Produce)
        match act:
            case Pass(ms):
                self._pass(float(ms))
            case Produce(group=group):
                Play._act(self, act)
                self._waiting.asked += self.draw.counts[group]
            case Inject(fault, (name, *_), place) if self._elects(fault) and self.timing.elected_s_max:
                Play._act(self, act)
                with self.cluster.naming(place):
                    partition = self.cluster.named
                self._until(lambda: partition.leader() == name, self.timing.elected_s_max)
            case _:
                Play._act(self, act)

    def _await_moved(self, act: Act) -> None:
        """Before a move, wait until the one before is over, if this target must not have two."""
        services = self.cluster.services
        unheard = services is not None and services.out
        if self.timing.alike and isinstance(act, Inject) and moves(self.faults[act.fault]) and not unheard:
            with self.cluster.naming(act.place):
                partition = self.cluster.named
            self._until(lambda: not partition.is_moving(), self.timing.moved_s_max)

    def _elects(self, fault: str) -> bool:
        return self.faults[fault].effect is Effect.LEADER_MOVED

    def _pass(self, ms: float) -> None:
        if self._taken == 2:  # right after the first produce: its records need an outcome before any fault
            self._until(self._waiting.over, self.timing.begun_s_max)
        seconds = ms / 1000 * self.timing.tempo
        hopeless = self._in_vain and not self.timing.hopes
        if self.timing.settled_s_max and ms >= ELECTION_MS and not self._waiting.over() and not hopeless:
            self._until(self._waiting.over, seconds + self.timing.settled_s_max)
            self._in_vain = not self._waiting.over()
            if ms < QUIET_MS or self.scenario.settings.message_format is MessageFormat.WITH_EPOCHS:
                return
        self._let_pass(seconds)

    def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait until the condition holds or the time is up; return at once if the time is 0."""
        if seconds:
            self.cluster.time.until(lambda: self.cluster.cancelled or self._stopped() or condition(), seconds)

    # --- the end -----------------------------------------------------------------------------------------------
    def _await_whole(self, without: Collection[str]) -> None:
        """Wait until there is a controller, all replicas are in sync, and a last record is acknowledged."""
        del without  # a node that ended by itself ends the wait
        cluster, within_s = self.cluster, self._heal_within_s
        cluster.await_(cluster.is_governed, lambda: "a controller", within_s)
        self._await_produced()
        self._await_all()
        self.produces.end()
        for name in FINAL_RECORDS:
            self._await_all()
            if self._acknowledges(name):
                break
            # The leader may not have learned the ISR yet, or has lost leadership meanwhile.
            self._let_pass(QUIET_S)
        else:
            raise PreconditionError(
                f"none of {', '.join(FINAL_RECORDS)} acknowledged by a cluster that seems whole"
            )
        for partition in cluster.partitions[1:]:
            self._prove_progress(partition)
        self._let_pass(QUIET_S)
        self._await_all()
        if cluster.churned.partitions:
            self._await_churned(within_s)
            self._let_pass(QUIET_S)  # for a command that is still under way
            self._await_churned(within_s)

    def _await_all(self) -> None:
        """Wait until the cluster is whole; raise as soon as it certainly never will be."""
        self._await_relieved(lambda: self._is_whole() or bool(self._beyond_help()), self._lacking)
        # A moment is enough: a late command may move leadership right afterwards.
        if (lost := self._beyond_help()) and not self._is_whole():
            raise BeyondHelpError(lost)

    def _beyond_help(self) -> str:
        """Return why the cluster can never be whole again, "" if it can: a node exited, or replicas are stuck."""
        if gone := self._gone():
            return gone
        cluster = self.cluster
        if not (self.timing.ends_when_stuck and self.conditions.whole()):
            return ""
        stuck = sorted({name for each in cluster.partitions for name in each.replicas if each.is_stuck(name)})
        return f"{', '.join(stuck)} stuck, and all others settled" if stuck else ""

    def _gone(self) -> str:
        """Return which node ended by itself and what it said, "" for none."""
        cluster = self.cluster
        for name in cluster.ids:
            if not cluster.host.alive(name) or name in cluster.given_up.exited:
                return f"{name} ended by itself; {cluster.last_words(name)}"
        return ""

    def _acknowledges(self, name: str) -> bool:
        """Return True if the cluster acknowledges a record with acks=all."""
        within_s = self._heal_within_s
        try:
            self.produces.act(Produce(name, acks=-1, outcome=MEANWHILE))
            self.cluster.await_(partial(self.produces.acked, name), self._lacking, within_s)
        except PreconditionError:
            return False
        return True

    def _settle(self) -> None:
        """Undo everything, wait until the cluster is whole, and have each partition acknowledge a record."""
        failed = self._undo_all()
        if failed:
            raise PreconditionError("; ".join(str(error) for _, error in failed))
        self._settled += 1
        try:
            for partition in self.cluster.partitions:
                self._prove_progress(partition, f"settled{self._settled}.", self._await_settled)
        except PreconditionError as error:
            self._unsettled = str(error)
            raise
        self.cluster.emptied.clear()

    def _await_settled(self) -> None:
        """Wait until the cluster is whole while clients go on; raise as soon as a node has ended by itself."""
        self._await_relieved(lambda: self._is_settled() or bool(self._gone()), self._lacking)
        if lost := self._gone():
            raise BeyondHelpError(lost)

    def _prove_progress(
        self, partition: Partition, before: str = "", await_whole: Callable[[], None] | None = None
    ) -> None:
        """
        Produce to a partition until a record is acknowledged by all; raise if none is.

        Before each record the cluster is awaited anew: the ISR may have shrunk right after the last one came, and
        a leader whose write to the metadata was lost needs another fetch to ask again.
        """
        within_s = self._heal_within_s
        for last in FINAL_RECORDS:
            name = f"{before}{last}"
            (await_whole or self._await_all)()
            with suppress(PreconditionError):
                short = len(partition.replicas) < self.scenario.settings.min_isr
                acks = 1 if short and not self.cluster.target.clients.unsendable(1, "none") else ACKS_ALL
                value = keyed(f"{partition.place}.{name}", self.scenario.settings.keys)
                sent = self.client.begin_produce(*partition.place, name, [value], acks=acks)
                self.cluster.await_(partial(_is_done, sent), self._lacking, within_s)
                sent.result()
                return
            self._let_pass(QUIET_S)
        raise PreconditionError(f"{partition.place}: no record acknowledged by a cluster that seems whole")

    def _is_of_old(self, holder: str, member: int) -> bool:
        # Also depose a controller that was ever down, even if it was elected since: one more election at the end
        # of a schedule has shown losses (returned-unseen), and known seeds rely on it.
        return holder in self.cluster.before_down or Play._is_of_old(self, holder, member)

    def _is_whole(self) -> bool:
        return self.conditions.whole() and self.cluster.in_sync()

    def _lacking(self) -> str:
        outside = [
            f"; not in the ISR of {partition.place}: {' '.join(missing)}"
            for partition in self.cluster.partitions
            if (missing := sorted(frozenset(partition.replicas) - {str(member) for member in partition.isr()}))
        ]
        return f"{self.conditions.lacking()}{''.join(outside)}"


def _is_done(underway: Underway) -> bool:
    return underway.done


def with_slack(schedule: Scenario, slack: float, heal_s: float = 0.0) -> Scenario:
    """
    Return the schedule with its time limits multiplied by `slack`; `heal_s` stands for that of healing, if any.

    A churner's are among them: its create takes several trips to the metadata, and nothing is certain of a topic
    after many outcomes that are unknown.
    """
    lag = schedule.settings.replica_lag_ms_max
    settings = replace(
        schedule.settings,
        replica_lag_ms_max=None if lag is None else int(lag * slack),
        heal_within_s=heal_s or schedule.settings.heal_within_s * slack,
    )
    churners = tuple(
        replace(churner, within_ms=int(churner.within_ms * slack)) for churner in schedule.clients.churners
    )
    return replace(schedule, settings=settings, clients=replace(schedule.clients, churners=churners))
