"""
`SuiteRunner` turns specs into a suite: it plays them, judges all histories on Spark, and writes the report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from checkers.facts.unread import readable
from checkers.live.watch import LiveCheck
from harness.environment.needs import why_not_here, why_not_played
from harness.java import Java, find_java
from harness.model import Op, UsageError
from harness.report.page import build_report
from harness.run.environment import Environment
from harness.run.failure import reason_of
from harness.run.folders import SERVICES
from harness.run.player import Player
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir, create_suite
from harness.run.suite import Suite
from harness.suite.environments import closing, open_environment, require_abilities, require_clients
from harness.suite.judged import judge_run
from harness.suite.options import Options
from harness.suite.playing import play_all
from harness.suite.progress import RunProgress
from harness.suite.scenario_files import faults_on, known_faults
from harness.suite.spark_worker import Found, SparkWorker
from harness.target.found import target as target_of
from harness.target.target import Target
from harness.version import commit, named, version


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRunner:
    """
    One suite in progress: its options, its folder, and the runs that were played.

    Attributes:
        problems: what keeps the suite from being complete, beyond its runs: it then ends as unknown at best.
        unplayed: scenario -> variant -> what the target, or the host, lacks for it.
    """

    name: str
    options: Options
    console: Console
    java: Java
    folder: SuiteDir
    commit: str
    started: datetime
    began: float
    runs: dict[str, tuple[RunSpec, Run]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    unplayed: dict[str, dict[str, str]] = field(default_factory=dict)

    @staticmethod
    def begin(name: str, options: Options, about: str, console: Console, *, folder: str = "") -> SuiteRunner:
        """
        Print what will be played, and create the suite's folder.

        Args:
            name: the name of the suite.
            options: how the runs are played.
            about: a text about the runs, for the printed line.
            console: where to print.
            folder: a word for the folder's name, "" for none.

        Raises:
            UsageError: the machine lacks something.
        """
        java, started, playing = find_java(), datetime.now(UTC), commit()
        word = f"-{folder}" if folder else ""
        runner = SuiteRunner(
            name=name,
            options=options,
            console=console,
            java=java,
            folder=create_suite(options.results, f"{started:%Y%m%dT%H%M%S}{word}-{options.seed}"),
            commit=playing,
            started=started,
            began=time.monotonic(),
        )
        runner.say(
            f"seed {options.seed}, {named(version(), playing)}, host {options.host}, {about}, Java {java.version}"
        )
        return runner

    def say(self, text: str) -> None:
        """Print a line without wrapping it."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def note(self, problem: str) -> None:
        """Print a problem that keeps the suite from being complete, whatever its runs show."""
        self.say(problem)
        self.problems.append(problem)

    def play(self, environment: Environment, specs: Sequence[RunSpec]) -> None:
        """
        Open the environment, play the specs in it that their target and it can play, and close it in any case.

        Raises:
            UsageError: they can play none of them.
        """
        specs = self._playable(specs, why_not_played)
        require_clients(specs)
        with closing(environment.close, self.note):
            open_environment(environment, self.folder.path / SERVICES)
            named = dict.fromkeys(name for spec in specs for name in spec.faults)
            require_abilities(environment, known_faults(), named)
            specs = self._playable(specs, partial(why_not_here, environment=environment))
            self.play_in(environment, specs)

    def _playable(self, specs: Sequence[RunSpec], why_not: Callable[[RunSpec, Target], str]) -> list[RunSpec]:
        """Return the specs that can be played; note of the others why not."""
        found: list[RunSpec] = []
        for spec in specs:
            if why := why_not(spec, target_of(spec.target)):
                self.unplayed.setdefault(spec.scenario.name, {})[str(spec.variant)] = why
            else:
                found.append(spec)
        if not found and self.unplayed:
            name, reasons = next(iter(self.unplayed.items()))
            raise UsageError(
                f"{name}: {next(iter(reasons.values()))}; expected a scenario that can be played here"
            )
        return found

    def play_in(
        self,
        environment: Environment,
        specs: Sequence[RunSpec],
        *,
        shown: RunProgress | None = None,
        listeners: Sequence[Callable[[Op], None]] = (),
    ) -> None:
        """
        Play the specs in an open environment.

        Args:
            shown: how progress is shown, if not run by run.
            listeners: called with every op.
        """
        player = Player(
            environment=environment, faults=faults_on(specs[0].target), watch=LiveCheck, listeners=listeners
        )
        side_by_side = min(self.options.jobs or environment.jobs, len(specs))
        with shown or RunProgress(self.console, len(specs)) as progress:
            for spec, run in play_all(player, specs, self.folder, side_by_side, progress):
                self.runs[spec.name] = (spec, run)

    def leaves_a_core(self, environment: Environment) -> bool:
        """Return True if runs in that environment leave a core idle, on which Spark may start meanwhile."""
        return int(self.options.jobs or environment.jobs) < (os.cpu_count() or 1)

    def conclude(self, spark: SparkWorker, target: str) -> tuple[Suite, Path | None]:
        """Judge every run, write the report, and return the suite and the report's path, None if not written."""
        found = self._check(spark)
        judged = {name: judge_run(spec, run, found.get(name)) for name, (spec, run) in self.runs.items()}
        suite = Suite(
            name=self.name,
            started=self.started.isoformat(timespec="seconds"),
            commit=self.commit,
            version=version(),
            host=self.options.host,
            target=target,
            power_tier=", ".join(sorted({run.power_tier for _, run in self.runs.values()} - {""})),
            seed=self.options.seed,
            rules=dict(rule.split("=", 1) for rule in self.options.rules),
            results=tuple(result for result, _ in judged.values()),
            unplayed=self.unplayed,
            seconds=time.monotonic() - self.began,
        )
        shown = {name: readable(ops) for name, (_, ops) in judged.items()}
        self._write(self.folder.suite, lambda: suite.write(self.folder.suite))
        written = self._write(self.folder.report, lambda: build_report(suite, shown, self.folder.report))
        return suite, self.folder.report if written else None

    def _check(self, spark: SparkWorker) -> Found:
        """
        Return what Spark found in the runs that were played.

        A run without an entry is judged in this process, by the same rules: each that failed, and all of them if
        Spark cannot be used any more.
        """
        played = {name: run for name, (_, run) in self.runs.items() if not run.failure}
        if not played:
            return {}
        try:
            with self.console.status("checking on Spark"):
                found = spark.check([run.path for run in played.values()])
        except Exception as error:
            self.note(f"Spark: {reason_of(error)}; the runs are judged without it, by the same rules")
            return {}
        return {name: found.get(name, []) for name in played}

    def _write(self, path: Path, write: Callable[[], object]) -> bool:
        """Write a file of the suite; if that fails, note why and return False."""
        try:
            write()
        except Exception as error:
            self.note(f"{path}: not written: {reason_of(error)}")
            return False
        return True
