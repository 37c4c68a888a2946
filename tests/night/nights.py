"""Nights for tests: a small plan, results that follow from seeds alone, and processes that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.ability import Ability
from harness.java import Java
from harness.model import Kind, UsageError, Verdict
from harness.night import play
from harness.night.opening import Options
from harness.night.outcome import Outcome
from harness.night.plan import parse_plan
from harness.night.schedule import Unit
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir, write_anomalies
from harness.search.random_runs import RandomRuns
from harness.search.real_runs import Job, RealRun
from tests.search.results import result_of

SIMULATED = """
seeds_a_minute = 60

[[play]]
hosts = ["sim"]
protocols = ["kip380"]

[[canary]]
hosts = ["sim"]
protocols = ["hw"]
seeds = 9
"""
BOTH = """
seeds_a_minute = 60

[[play]]
hosts = ["sim", "local"]
protocols = ["kip380"]

[[canary]]
hosts = ["sim", "local"]
protocols = ["hw"]
scenarios = ["kip101-1"]
"""
# Of every so many seeds one loses a record, and of every other so many one is unknown.
LOSES, FAILS = 5, 7


def options(results: Path, plan: str = SIMULATED, *, seconds: float = 12.0, seed: int | None = 100) -> Options:
    """Return the options of a night of this plan: in the simulator a seed for each second."""
    return Options(plan=parse_plan(plan, "test.toml"), results=results, seconds=seconds, seed=seed, jobs=1)


def drawn_result(spec: RunSpec) -> RunResult:
    """Return what a run of this seed shows; an old protocol always loses something."""
    found: tuple[Verdict, Kind] | tuple[Verdict] = (Verdict.VALID,)
    if str(spec.variant) == "hw" or spec.seed % LOSES == 0:
        found = (Verdict.INVALID, Kind.LOST)
    elif spec.seed % FAILS == 0:
        found = (Verdict.UNKNOWN, Kind.UNCHECKED)
    result = result_of(*found, seed=spec.seed, rerun=spec.command)
    return replace(result, run=spec.name, protocol=str(spec.variant))


def told(outcome: Outcome, host: str = "") -> list[tuple[str, int, str, tuple[str, ...]]]:
    """Return the findings of a night: line, seed, verdict and kinds, of one host or of all."""
    return sorted(
        (line.name, each.seed, each.verdict, each.kinds)
        for line in outcome.lines
        if host in ("", line.host)
        for each in line.count.findings
    )


@dataclass(frozen=True, slots=True)
class Machine:
    """An open host, of which only its abilities are asked."""

    unable: Mapping[Ability, str]

    def lacks(self, ability: Ability) -> str:
        """Return why it cannot do this, "" if it can."""
        return self.unable.get(ability, "")


@dataclass(slots=True)
class Fakes:
    """
    What plays and judges in place of the simulator and of brokers; a run on real processes takes a second.

    Attributes:
        tame: protocols in which nothing is ever found.
        gone: why hosts cannot be opened when a unit begins, by name.
        lacks: why hosts cannot be opened when the night begins, by name.
        unable: what open hosts cannot do, each with why.
        asked: the hosts that were asked what they lack, in order.
        ports: the ports that each host was given.
        begin: called with the spec of each run that begins.
    """

    now: float = 0.0
    tame: set[str] = field(default_factory=set)
    gone: dict[str, str] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    unable: dict[Ability, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    begin: Callable[[RunSpec], None] = lambda _: None
    played: list[tuple[str, int]] = field(default_factory=list)
    ports: dict[str, range | None] = field(default_factory=dict)

    def result(self, spec: RunSpec) -> RunResult:
        """Begin a run, and return what it shows."""
        self.begin(spec)
        self.played.append((spec.host, spec.seed))
        if str(spec.variant) in self.tame:
            return replace(result_of(Verdict.VALID, seed=spec.seed), run=spec.name)
        return drawn_result(spec)

    def results(self, unit: Unit, _jobs: int | None) -> Iterator[RunResult]:
        """Yield the results of a unit in the simulator."""
        for place in range(unit.seeds):
            runs, seed = unit.run(place)
            result = self.result(runs.spec(seed))
            yield result
            if play.is_enough(unit, result):
                return

    def keep_simulated(self, _player: Player, spec: RunSpec, folder: SuiteDir) -> Run:
        """Store a run of the simulator."""
        return _stored(spec, folder)

    @contextmanager
    def open_players(
        self, runs: Mapping[str, RandomRuns], *, ports: range | None, folder: Path, note: Callable[[str], None]
    ) -> Iterator[dict[str, Player]]:
        """Open nothing; raise UsageError for a host that is gone."""
        (one,) = runs.values()
        if one.host in self.gone:
            raise UsageError(self.gone[one.host])
        self.ports[one.host] = ports
        folder.mkdir(parents=True, exist_ok=True)
        yield {}

    @contextmanager
    def opened_host(self, name: str, *_: object) -> Iterator[tuple[Machine | None, str]]:
        """Open nothing, and say what is lacking."""
        self.asked.append(name)
        why = self.lacks.get(name, "")
        yield None if why else Machine(self.unable), why

    def play_many(
        self,
        jobs: Iterator[Job],
        _players: Mapping[str, Player],
        folder: SuiteDir,
        _side_by_side: int,
        receive: Callable[[RealRun], None],
    ) -> str:
        """Play runs on real processes, one after another."""
        for name, spec in jobs:
            result = self.result(spec)
            self.now += 1.0
            run = _stored(spec, folder)
            write_anomalies(run, result.anomalies)
            receive(RealRun(player=name, spec=spec, run=run, result=result))
        return ""

    def judge_run(self, spec: RunSpec, run: Run) -> tuple[RunResult, list[object]]:
        """Judge a run again that was stored."""
        assert run.anomalies.exists()
        return drawn_result(spec), []


def _stored(spec: RunSpec, folder: SuiteDir) -> Run:
    run = folder.create_run(spec.name)
    (run.path / "nodes").mkdir()
    run.history.write_text("")
    return run


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    """Play nights with fakes, by a clock that moves with their runs."""
    made = Fakes()
    java = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    monkeypatch.setattr("harness.search.findings.find_java", lambda: java)
    monkeypatch.setattr(play, "_results", made.results)
    monkeypatch.setattr(play, "keep_simulated", made.keep_simulated)
    monkeypatch.setattr(play, "open_players", made.open_players)
    monkeypatch.setattr(play, "play_many", made.play_many)
    monkeypatch.setattr(play, "judge_run", made.judge_run)
    monkeypatch.setattr("harness.night.needs.opened_host", made.opened_host)
    monkeypatch.setattr("harness.night.night.reap", lambda: None)
    monkeypatch.setattr("harness.night.journal.os.fsync", lambda _: None)
    monkeypatch.setattr("harness.night.night.commit", lambda: "c0ffee")
    monkeypatch.setattr("harness.night.night.write_night", write_data_alone)
    return made


def write_data_alone(outcome: Outcome, _nights: Path, folder: Path) -> None:
    """Write what came of a night as data, without its page."""
    (folder / "night.json").write_text(json.dumps(outcome.to_dict()), encoding="utf-8")
