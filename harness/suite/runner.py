"""
`SuiteRunner` turns specs into a suite: it plays them, judges all histories on Spark, and writes the report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from checkers.facts.unread import readable
from checkers.judge import judge
from harness.history.file import read_history
from harness.java import Java, find_java
from harness.report.page import build_report
from harness.run.environment import Environment
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir, create_suite, write_anomalies
from harness.run.suite import Suite
from harness.suite.interrupts import INTERRUPTS, apart
from harness.suite.options import Options
from harness.suite.playing import play_all
from harness.suite.progress import RunProgress
from harness.suite.spark_worker import SparkWorker
from harness.suite.version import commit
from nemesis import NEMESES


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRunner:
    """One suite in progress: its options, its folder, and the runs that were played."""

    name: str
    options: Options
    console: Console
    java: Java
    folder: SuiteDir
    commit: str
    started: datetime
    began: float
    runs: dict[str, tuple[RunSpec, Run]] = field(default_factory=dict)

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
        runner.say(f"seed {options.seed}, commit {playing}, host {options.host}, {about}, Java {java.version}")
        return runner

    def say(self, text: str) -> None:
        """Print a line without wrapping it."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def play(self, environment: Environment, specs: Sequence[RunSpec]) -> None:
        """Open the environment, play the specs in it, and close it in any case."""
        try:
            apart(lambda: environment.open(self.folder.path / "zookeeper"), "environment")
            self.play_in(environment, specs)
        finally:
            with INTERRUPTS.shielded():
                environment.close()

    def play_in(self, environment: Environment, specs: Sequence[RunSpec]) -> None:
        """Play the specs in an open environment."""
        player = Player(environment=environment, faults=NEMESES)
        side_by_side = min(self.options.jobs or environment.jobs, len(specs))
        with RunProgress(self.console, len(specs)) as progress:
            for spec, run in play_all(player, specs, self.folder, side_by_side, progress):
                self.runs[spec.name] = (spec, run)

    def leaves_a_core(self, environment: Environment) -> bool:
        """Return True if runs in that environment leave a core idle, on which Spark may start meanwhile."""
        return int(self.options.jobs or environment.jobs) < (os.cpu_count() or 1)

    def conclude(self, spark: SparkWorker, target: str) -> tuple[Suite, Path]:
        """Judge every run that was played, write the report, and return the suite and the report's path."""
        with self.console.status("checking on Spark"):
            found = spark.check([run.parquet for _, run in self.runs.values()])
        histories = {name: read_history(run.history) for name, (_, run) in self.runs.items()}
        results: list[RunResult] = []
        for name, (spec, run) in self.runs.items():
            result = judge(spec, histories[name], anomalies=found.get(name, []), seconds=run.seconds)
            write_anomalies(run, result.anomalies)
            results.append(result)
        suite = Suite(
            name=self.name,
            started=self.started.isoformat(timespec="seconds"),
            commit=self.commit,
            host=self.options.host,
            target=target,
            power_tier=", ".join(sorted({run.power_tier for _, run in self.runs.values()})),
            seed=self.options.seed,
            rules=dict(rule.split("=", 1) for rule in self.options.rules),
            results=tuple(results),
            seconds=time.monotonic() - self.began,
        )
        suite.write(self.folder.suite)
        shown = {name: readable(ops) for name, ops in histories.items()}
        return suite, build_report(suite, shown, self.folder.report)
