"""`Subject`: the system that a schedule is shrunk on; it plays a schedule's text, in any process."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from typing import Final

from harness.model import Op, UsageError, Verdict
from harness.random_schedule.profile import ALL
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.scenario.expectation import NONE
from harness.scenario.file import Scenario, parse
from harness.scenario.variant import Variant
from harness.search.random_runs import draw_run, is_written
from harness.search.shrink.signature import Outcome, Signature, outcome_of
from harness.search.simulated import play_in_memory, sim_player
from harness.suite.scenario_files import known_faults
from harness.target.found import target
from harness.target.target import traits_under
from targets import DEFAULT_TARGET, VIRTUAL_HOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """
    Our broker under one variant, in the simulator, with one seed.

    Attributes:
        variant: the protocol, with every rule that is changed in it.
        seed: of latencies, faults of the metadata's servers and what a power loss keeps; of broker ids.
        name: the name of the schedule: that of the file it is written to, from which broker ids of a written one
            are drawn too.
        alike: whether an election is asked for only if every target could grant it, as in the run that was found.
        reference: a variant under which a smaller schedule must hold, so that what it shows is the fault of the
            rules that differ, and not of the schedule; None for no such variant.
        accepted: the worst verdict under the reference: permitted, or unknown if already the whole schedule is.
    """

    variant: Variant
    seed: int
    name: str
    alike: bool = False
    reference: Variant | None = None
    accepted: Verdict = Verdict.PERMITTED

    @staticmethod
    def of(protocol: str, rules: Mapping[str, str], *, seed: int, name: str, alike: bool = False) -> Subject:
        """Return the subject with these rules; those that are the protocol's own do not count as changed."""
        own = target(DEFAULT_TARGET).rules(protocol, ())
        changes = tuple(sorted(f"{rule}={value}" for rule, value in rules.items() if own.get(rule) != value))
        variant = Variant(protocol=protocol, changes=changes)
        return Subject(variant=variant, seed=seed, name=name, alike=alike)

    def referring(self, scenario: Scenario) -> Subject:
        """
        Return the subject with a reference, if this scenario holds under one.

        That is the protocol without the changes of the variant, or else the newest protocol. If it is unknown
        under both, as a written scenario whose steps are for one protocol, it must at least show nothing there.
        """
        newest = Variant(protocol=list(target(DEFAULT_TARGET).protocols())[-1])
        others = dict.fromkeys((Variant(protocol=self.variant.protocol), newest))
        found = {each: self._verdict(scenario, each) for each in others if each != self.variant}
        for accepted in (Verdict.PERMITTED, Verdict.UNKNOWN):
            for reference, verdict in found.items():
                if verdict <= accepted:
                    return replace(self, reference=reference, accepted=accepted)
        return replace(self, reference=None)

    def _verdict(self, scenario: Scenario, variant: Variant) -> Verdict:
        return self.run(scenario, variant)[0].verdict

    def spec(self, scenario: Scenario, variant: Variant | None = None) -> RunSpec:
        """Return the spec of a run of this scenario, under this variant or another one."""
        variant = variant or self.variant
        written = is_written(scenario)
        scenario = replace(scenario, name=self.name, expectations={str(variant): NONE} if written else {})
        return RunSpec(
            target=DEFAULT_TARGET,
            host=VIRTUAL_HOST,
            variant=variant,
            rules=target(DEFAULT_TARGET).rules(variant.protocol, variant.changes),
            traits=traits_under(target(DEFAULT_TARGET), variant.protocol, variant.changes),
            scenario=scenario,
            draw=draw_run(scenario, self.seed),
            nemeses=() if written else (ALL,),
            alike=self.alike and not written,
        )

    def run(self, scenario: Scenario, variant: Variant | None = None) -> tuple[RunResult, list[Op]]:
        """Play a scenario, and return its result and history; the same scenario always has the same ones."""
        return play_in_memory(_player(), self.spec(scenario, variant))

    def outcome(self, signature: Signature, text: str) -> Outcome:
        """Play the schedule of this text; one that cannot be read back shows nothing."""
        try:
            scenario = parse(self.name, text, self.name, known_faults())
        except UsageError:
            return Outcome(shows=False)
        result, ops = self.run(scenario)
        outcome = outcome_of(signature, result, ops, written=is_written(scenario))
        if outcome.shows and self.reference is not None:
            return replace(outcome, shows=self._verdict(scenario, self.reference) <= self.accepted)
        return outcome


@cache
def _player() -> Player:
    return sim_player(target(DEFAULT_TARGET))


# --- other processes -------------------------------------------------------------------------------------------
_WORK: Final[list[Callable[[str], Outcome]]] = []


def pool_of(subject: Subject, signature: Signature, jobs: int) -> Executor:
    """Return processes that can `play_there`; they are spawned: a fork would copy the locks of our threads."""
    return ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(subject, signature)
    )


def play_there(text: str) -> Outcome:
    """Play the schedule of this text, in a process of the pool."""
    return _WORK[0](text)


def _begin(subject: Subject, signature: Signature) -> None:
    """Initialise a process of the pool; its parent handles Ctrl-C, and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _WORK[:] = [partial(subject.outcome, signature)]
    gc.collect()
    gc.freeze()
