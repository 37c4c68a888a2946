"""
Plays one unit of a night, in the simulator or on real processes, by the same calls as a search and chaos.

A unit in the simulator has one line in the journal when it has ended, and is played again if the night is killed
in it: the same seeds give the same runs. Of one on real processes each run has a line as soon as it is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count as numbers
from pathlib import Path
from typing import Final

from harness.cleanup import mounts
from harness.model import Verdict
from harness.night.count import Count, Finding
from harness.night.journal import Journal
from harness.night.known import KnownSeeds
from harness.night.measure import add_availability
from harness.night.schedule import Role, Unit
from harness.night.state import Progress
from harness.night.trim import Shelf
from harness.run.failure import reason_of
from harness.run.folders import SERVICES
from harness.run.result import RunResult
from harness.run.store import Run, SuiteDir
from harness.search.chaos_kinds import possible
from harness.search.cores import jobs_for
from harness.search.findings import VIOLATIONS_KEPT_MAX, keep_finding, keep_simulated
from harness.search.real_runs import Job, RealRun, open_players, play_many
from harness.search.search import search
from harness.search.simulated import SearchEndedError, sim_player, simulate_seed
from harness.suite.judged import judge_run
from harness.suite.scenario_files import faults_on

PLAYER: Final = "target"
# Findings of one cause, of a unit in the simulator, that are kept whole; each can be played again from its seed.
ALIKE_KEPT_MAX: Final = 3
# Runs of a unit on real processes that are kept because nobody could judge them.
UNKNOWN_KEPT_MAX: Final = 5


@dataclass(slots=True, kw_only=True)
class Table:
    """
    All that a unit needs to be played, the same for all units of a night.

    Attributes:
        night: the night's name.
        tell: writes a line of the journal, and takes it into account.
        saw: called with the result of each run.
        jobs: parallel runs, None for what the unit says, or in the simulator one for each core.
    """

    night: str
    shelf: Shelf
    known: KnownSeeds
    journal: Journal
    tell: Callable[..., None]
    saw: Callable[[RunResult], None]
    jobs: int | None = None
    ports: range | None = None


@dataclass(slots=True)
class Ended:
    """What is left to say when a unit has ended: what runs without a line showed, and what went wrong."""

    count: Count = field(default_factory=Count)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    used_s: float = 0.0


def play_unit(unit: Unit, progress: Progress, table: Table, seconds: float) -> Ended:
    """
    Play a unit, or what is left of it.

    Args:
        unit: what is played.
        progress: how far it is.
        table: all that it needs.
        seconds: how long a unit without a number of seeds may be at work, all sessions together.

    Raises:
        KeyboardInterrupt: after everything that it started is down.
        UsageError, OSError: it cannot be played here.
    """
    if unit.simulated:
        return _play_simulated(unit, table)
    return _RealUnit(unit=unit, progress=progress, table=table, seconds=seconds).play()


def is_enough(unit: Unit, result: RunResult) -> bool:
    """Return True for the violation for which a canary is searched."""
    return unit.role is Role.CANARY and len(unit.runs) == 1 and result.verdict is Verdict.INVALID


# --- the simulator -----------------------------------------------------------------------------------------------
def _play_simulated(unit: Unit, table: Table) -> Ended:
    ended, found = Ended(), []
    began_s = table.journal.clock()
    try:
        for place, result in enumerate(_results(unit, table.jobs)):
            ended.count.add(result)
            table.saw(result)
            if result.is_finding:
                found.append((place, result))
    except SearchEndedError as error:  # what was found before holds
        ended.problems.append(str(error))
    alike: Counter[object] = Counter()
    for place, result in found:
        finding = Finding.of(result)
        alike[finding.cause] += 1
        if unit.role is Role.CANARY:
            finding = Finding.of(result, kept="a canary's")
        elif alike[finding.cause] > ALIKE_KEPT_MAX:
            finding = Finding.of(result, kept=f"{ALIKE_KEPT_MAX} of its cause are", brief=True)
        else:
            finding = _kept(unit, place, result, table)
        ended.count.findings.append(finding)
        if finding.is_violation and unit.role is Role.PLAY:
            remember(unit, place, finding, table)
    ended.used_s = table.journal.clock() - began_s
    return ended


def _results(unit: Unit, jobs: int | None) -> Iterator[RunResult]:
    if len(unit.runs) > 1 or unit.known:
        player = sim_player(unit.runs[0].load_target())
        for place in range(len(unit.runs)):
            yield simulate_seed(player, *unit.run(place))
        return
    seeds = range(unit.first, unit.first + unit.seeds)
    # A canary ends soon, and another process takes a second to begin.
    processes = 1 if unit.role is Role.CANARY else jobs or jobs_for(unit.seeds)
    yield from search(unit.runs[0], seeds, jobs=processes, stop=lambda result: is_enough(unit, result))


def _kept(unit: Unit, place: int, result: RunResult, table: Table) -> Finding:
    """Play a finding again, into files, and keep them."""
    runs, seed = unit.run(place)
    folder = table.shelf.playing(unit.name)
    spec = runs.spec(seed)
    table.shelf.drop(folder.run(spec.name).path)
    try:
        run = keep_simulated(sim_player(runs.load_target()), spec, folder)
        kept_at = table.shelf.place(unit.name, run.name, finding=True)
        table.shelf.keep(run, kept_at)
    except OSError as error:
        return Finding.of(result, kept=reason_of(error))
    return Finding.of(result, folder=kept_at, kept=run.failure)


def remember(unit: Unit, place: int, finding: Finding, table: Table) -> None:
    """Keep a seed that failed for all later nights; a full disk is no reason to end this one."""
    runs, seed = unit.run(place)
    try:
        table.known.add(runs, seed, night=table.night, kind=finding.cause.kind)
    except OSError as error:
        table.tell("note", text=f"{runs.name} seed {seed}: not kept for later nights: {reason_of(error)}")


# --- real processes ----------------------------------------------------------------------------------------------
@dataclass(slots=True, kw_only=True)
class _RealUnit:
    unit: Unit
    progress: Progress
    table: Table
    seconds: float
    places: dict[str, int] = field(default_factory=dict)
    found: bool = False
    kept: Counter[str] = field(default_factory=Counter)
    kinds: tuple[str, ...] = ()
    began_s: float = field(init=False)
    # The journal moves `progress` on with every run.
    _before_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.began_s, self._before_s = self.table.journal.clock(), self.progress.used_s

    def play(self) -> Ended:
        ended, unit, table = Ended(), self.unit, self.table
        folder = table.shelf.playing(unit.name)
        self._recover(folder)
        runs = unit.runs[0]
        ended.notes += [f"clients on {name} left out: {why}" for name, why in runs.left_out(unit.first).items()]
        opened = open_players(
            {PLAYER: runs}, ports=table.ports, folder=folder.path / SERVICES, note=ended.problems.append
        )
        with opened as players:
            if runs.seconds is not None:  # a schedule of one cluster has the faults that the host can do
                environment = players[PLAYER].environment
                self.kinds, _ = possible(runs.nemeses, environment, faults_on(runs.target))
            jobs = table.jobs or unit.jobs
            ended.problems += filter(None, [play_many(self._jobs(), players, folder, jobs, self._receive)])
        ended.used_s = self._used_s()
        # After an interrupt runs that were judged are still there, and the next session takes them into account.
        table.shelf.drop(folder.path)
        return ended

    def _jobs(self) -> Iterator[Job]:
        for place in numbers():
            if place in self.progress.done:
                continue
            if self._enough(place):
                return
            runs, seed = self.unit.run(place)
            spec = (replace(runs, nemeses=self.kinds) if self.kinds else runs).spec(seed)
            self.places[spec.name] = place
            yield PLAYER, spec

    def _enough(self, place: int) -> bool:
        if self.found or (self.unit.seeds and place >= self.unit.seeds):
            return True
        return not self.unit.seeds and place > 0 and self._used_s() >= self.seconds

    def _used_s(self) -> float:
        return self._before_s + self.table.journal.clock() - self.began_s

    def _receive(self, ended: RealRun) -> None:
        unit, table, result = self.unit, self.table, ended.result
        count = Count()
        count.add(result)
        add_availability(count, ended.run)
        table.saw(result)
        self.found = self.found or is_enough(unit, result)
        place = self.places[ended.spec.name]
        finding = self._finding(ended) if result.is_finding else None
        count.findings += [finding] if finding else []
        kept_at = finding.folder if finding else self._passed(ended.run)
        # The line first: a night that is killed here finds by it what is to be kept.
        table.tell("ran", unit=unit.number, place=place, count=count.to_dict(), used_s=round(self._used_s(), 3))
        try:
            if not kept_at or not table.shelf.keep(ended.run, kept_at):
                table.shelf.drop(ended.run.path)
        except OSError as error:
            table.tell("note", text=f"{ended.run.path}: not kept: {reason_of(error)}")
        # What happens in a long run is another thing each time.
        if finding and finding.is_violation and unit.role is Role.PLAY and ended.spec.seconds is None:
            remember(unit, place, finding, table)

    def _finding(self, ended: RealRun) -> Finding:
        """Complete the folder of a finding; return the finding, with the place at which it is kept."""
        result, run = ended.result, ended.run
        if self.unit.role is Role.CANARY and not run.failure:
            return Finding.of(result, folder=self._passed(run), kept="a canary's, trimmed")
        self.kept[result.verdict.name] += 1
        most = UNKNOWN_KEPT_MAX if result.verdict <= Verdict.UNKNOWN else VIOLATIONS_KEPT_MAX
        if self.kept[result.verdict.name] > most:
            return Finding.of(result, kept=f"{most} of this unit are", brief=True)
        if mounts.mounts_below(run.path):
            return Finding.of(result, kept=f"a filesystem of it is still mounted in {run.path}")
        kept = run.failure
        if not run.failure and (run.path / "nodes").is_dir():
            try:
                keep_finding(ended)
            except OSError as error:
                kept = f"not whole: {reason_of(error)}"
        return Finding.of(result, folder=self.table.shelf.place(self.unit.name, run.name, finding=True), kept=kept)

    def _passed(self, run: Run) -> str:
        return self.table.shelf.place(self.unit.name, run.name, finding=False)

    def _recover(self, folder: SuiteDir) -> None:
        """Take runs into account that a killed session judged and did not write down; delete the others."""
        done, unit = self.progress.done, self.unit
        first_open = max(done, default=-1) + 1 + unit.jobs
        for place in range(min(first_open + 1, unit.seeds or first_open + 1)):
            runs, seed = unit.run(place)
            spec = runs.spec(seed)
            run = Run(path=folder.path / spec.name)
            if place not in done and run.anomalies.exists():
                self.places[spec.name] = place
                result, _ = judge_run(spec, run)
                self._receive(RealRun(player=PLAYER, spec=spec, run=run, result=result))
        for path in _entries(folder.path):
            self.table.shelf.drop(path)


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
