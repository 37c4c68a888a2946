"""
A long run: one cluster lives through chaos for a given time, with all faults that its host can inject.

What the host cannot do is printed, with the reason, before the run; it is then no part of the schedule.
The steps that were executed are kept as a schedule, which plays again on any host and target.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from harness.report.chaos_page import LongRun, build_chaos_page
from harness.report.table import render_table
from harness.run.failure import reason_of
from harness.run.folders import SERVICES
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run
from harness.search.chaos_kinds import possible
from harness.search.chaos_line import ChaosLine, Seen
from harness.search.random_runs import RandomRuns
from harness.suite.environments import closing, open_environment
from harness.suite.exit_codes import of_run
from harness.suite.options import Options
from harness.suite.runner import SuiteRunner
from harness.suite.scenario_files import faults_on
from harness.suite.spark_worker import spark_worker
from targets import VIRTUAL_HOST

# The clients of a long run for which no workload was chosen: without clients nothing could be unavailable.
WORKLOAD: Final = "append"


def play_long(runs: RandomRuns, options: Options, console: Console) -> int:
    """
    Play chaos on one cluster for the time of `runs`, check it on Spark, print and write its report; return the
    exit code.

    Raises:
        UsageError: a chosen fault is not possible on the host, or none is.
    """
    assert runs.seconds is not None, "a long run has a time"
    target = runs.load_target()
    environment = options.make_environment(target)
    runner = SuiteRunner.begin(
        "run", options, f"{runs.name}, {runs.seconds:g} s of chaos", console, folder="chaos"
    )
    with closing(environment.close, runner.note):
        open_environment(environment, runner.folder.path / SERVICES)
        kinds, lacking = possible(runs.nemeses, environment, faults_on(runs.target))
        for name, reason in lacking.items():
            runner.say(f"left out: {name}: {reason}")
        spec = replace(runs, nemeses=kinds).spec(options.seed)
        line = ChaosLine(console, spec)
        runner.play_in(environment, [spec], shown=line, listeners=[line.listen])
    with spark_worker(runner.java.home) as spark:
        suite, report = runner.conclude(spark, target.name)
    (result,) = suite.results
    render_table(suite, console)
    for kind, asked in sorted(result.activity.asked.items()):
        runner.say(f"  {kind}: {result.activity.bit.get(kind, 0)} of {asked} bit")
    run = Run(path=runner.folder.path / result.run)
    _write_page(runner, spec, result, line.seen, run)
    runner.say(f"executed: {run.executed}")
    runner.say(f"availability: {run.chaos}")
    runner.say(f"report: {report or 'none'}")
    return of_run(result, runner.problems)


def again_of(spec: RunSpec, executed: Path) -> list[tuple[str, str]]:
    """Return the commands that play a long run again, each with what it repeats."""
    replay = spec.replay(executed, VIRTUAL_HOST)
    where = (
        "here in the simulator; any host" if replay.host == VIRTUAL_HOST else "in the same order; any real host"
    )
    return [
        (spec.command, "The same seed draws the same rounds; what happens in them differs."),
        (replay.command, f"The steps that were executed, {where} and target can play them."),
    ]


def _write_page(runner: SuiteRunner, spec: RunSpec, result: RunResult, seen: Seen, run: Run) -> None:
    page = LongRun(
        result=result,
        windows=seen.windows.found,
        spans=list(seen.faults.spans(seen.now_ns)),
        seconds=seen.now_ns / 1e9,
        again=again_of(spec, run.executed),
    )
    try:
        build_chaos_page(page, run.chaos)
    except OSError as error:
        runner.note(f"{run.chaos}: not written: {reason_of(error)}")
