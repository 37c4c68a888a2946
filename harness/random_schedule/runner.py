"""
Play a random schedule: a scenario of which any step may make no sense, or come to nothing, when its turn comes.

Rules:   what makes no sense is left out, what fails is told, and the schedule goes on.
         At the end the faults are undone, dead sessions too, and the cluster must work again: everybody is in the
         ISR, a last record is acknowledged by all, and all logs end where the leader's does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from harness import events
from harness.effect import Effect
from harness.model import BeyondHelpError, Op, OpType, PreconditionError, Source, UsageError
from harness.random_schedule.applicable import why_not
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.timing import ELECTION_MS, VIRTUAL, Timing
from harness.scenario.file import Scenario, Step
from harness.scenario.runner import Play
from harness.scenario.steps import MEANWHILE, Act, Inject, Pass, Produce

# What was decided late is over by then: an election that was asked for, a produce that was sent again.
QUIET_S: Final = 0.3


@dataclass(slots=True)
class Waiting:
    """How many records were asked for, and how many have their outcome, as the history tells."""

    asked: int = 0
    outcomes: int = 0

    def hear(self, op: Op) -> None:
        """Take an op."""
        # A client may send in a thread of its own, and tell late that it does: what is asked for is counted.
        if op.source is Source.CLIENT and op.type is not OpType.INVOKE and isinstance(op.event, events.Produce):
            self.outcomes += 1

    def over(self) -> bool:
        """Whether every record has its outcome."""
        return self.outcomes >= self.asked


@dataclass(slots=True, kw_only=True)
class RandomPlay(Play):
    """One random schedule being played, at a timing."""

    missed: OpType = OpType.INFO
    timing: Timing = VIRTUAL
    _waiting: Waiting = field(init=False, default_factory=Waiting)
    _taken: int = field(init=False, default=0)

    def _set_up(self) -> None:
        self.cluster.history.listeners.append(self._waiting.hear)
        Play._set_up(self)

    # Without `super()`: a class with slots is made anew by its decorator, and loses the way to its base.
    def _step(self, step: Step) -> None:
        self._taken += 1
        self._miss_the_gone()
        reason = why_not(step.act, self.cluster, self.links, self.faults, alike=self.timing.alike)
        if reason:
            about = events.Step(line=step.line, text=step.text, narrative=step.narrative, skipped=reason)
            self._say(OpType.INFO, about)
            return
        try:
            Play._step(self, step)
        except UsageError:
            raise
        except PreconditionError:
            return  # told already; the schedule goes on

    def _act(self, act: Act) -> None:
        match act:
            case Pass(ms):
                self._pass(float(ms))
            case Produce(group=group):
                Play._act(self, act)
                self._waiting.asked += self.draw.counts[group]
            case Inject(fault, (name, *_)) if self._elects(fault) and self.timing.elected_s_max:
                Play._act(self, act)
                self._until(lambda: self.cluster.leader() == name, self.timing.elected_s_max)
            case _:
                Play._act(self, act)

    def _elects(self, fault: str) -> bool:
        return self.faults[fault].effect is Effect.LEADER_MOVED

    def _pass(self, ms: float) -> None:
        if self._taken == 2:  # right after the first records: they shall stand before anything breaks
            self._until(self._waiting.over, self.timing.begun_s_max)
        seconds = ms / 1000 * self.timing.tempo
        if self.timing.settled_s_max and ms >= ELECTION_MS and not self._waiting.over():
            self._until(self._waiting.over, seconds + self.timing.settled_s_max)
        else:
            self._let_pass(seconds)

    def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Let things happen until it holds, or the time is up; without a time, nothing."""
        if seconds:
            self.cluster.time.until(lambda: self.cluster.cancelled or condition(), seconds)

    # --- the end -----------------------------------------------------------------------------------------------
    def _await_whole(self, without: Collection[str]) -> None:
        """Wait until the cluster works: a controller, all in the ISR, produces done, a last one acknowledged."""
        del without  # a node that ended by itself ends the waiting
        cluster, within_s = self.cluster, self.scenario.settings.heal_within_s
        cluster.await_(lambda: cluster.zookeeper_view.controller() is not None, lambda: "a controller", within_s)
        self._await_all(within_s)
        self.produces.end()
        for name in FINAL_RECORDS:
            self._await_all(within_s)
            if self._acknowledges(name):
                break
            # Its leader may not have heard of the ISR yet, or has lost its office meanwhile.
            self._let_pass(QUIET_S)
        else:
            raise PreconditionError(
                f"none of {', '.join(FINAL_RECORDS)} acknowledged by a cluster that seems whole"
            )
        self._let_pass(QUIET_S)
        self._await_all(within_s)

    def _await_all(self, within_s: float) -> None:
        """Wait until the cluster is whole; no longer than until it is plain that it never will be."""
        self.cluster.await_(lambda: self._is_whole() or bool(self._beyond_help()), self._lacking, within_s)
        # Whole for a moment is enough: a command that is late may move leadership right after it.
        if (lost := self._beyond_help()) and not self._is_whole():
            raise BeyondHelpError(lost)

    def _beyond_help(self) -> str:
        """Say who keeps the cluster from being whole for good: it ended by itself, or cannot go on."""
        cluster = self.cluster
        for name in cluster.ids:
            if not cluster.host.alive(name) or cluster.has_exited(name):
                return f"{name} ended by itself; {cluster.last_words(name)}"
        if not (self.timing.alike and self.conditions.whole()):
            return ""
        stuck = sorted(filter(cluster.is_stuck, self.scenario.replicas))
        return f"{', '.join(stuck)} stuck, and all others settled" if stuck else ""

    def _acknowledges(self, name: str) -> bool:
        """Whether the cluster takes a record with acks=all."""
        within_s = self.scenario.settings.heal_within_s
        try:
            self.produces.act(Produce(name, acks=-1, outcome=MEANWHILE))
            self.cluster.await_(partial(self.produces.acked, name), self._lacking, within_s)
        except PreconditionError:
            return False
        return True

    def _holds_office_of_old(self, holder: str) -> bool:
        # A controller that was ever down loses its office too, though it may have taken it anew since: one more
        # election at the end of a schedule has shown losses (returned-unseen) that seeds are known for.
        return holder in self.cluster.before_down or Play._holds_office_of_old(self, holder)

    def _is_whole(self) -> bool:
        return self.conditions.whole() and self.cluster.isr() == frozenset(self.scenario.replicas)

    def _lacking(self) -> str:
        missing = sorted(frozenset(self.scenario.replicas) - {str(member) for member in self.cluster.isr()})
        outside = f"; not in the ISR: {' '.join(missing)}" if missing else ""
        return f"{self.conditions.lacking()}{outside}"


def with_slack(schedule: Scenario, slack: float) -> Scenario:
    """Give a schedule whose cluster has so much more time for what it has limits for."""
    lag = schedule.settings.replica_lag_ms_max
    settings = replace(
        schedule.settings,
        replica_lag_ms_max=None if lag is None else int(lag * slack),
        heal_within_s=schedule.settings.heal_within_s * slack,
    )
    return replace(schedule, settings=settings)
