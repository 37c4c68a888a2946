"""One random run on any host, checked on Spark and reported: `fencepost run` with one seed."""

from __future__ import annotations

from rich.console import Console

from harness.report.table import render_table
from harness.run.store import Run
from harness.search.random_runs import RandomRuns
from harness.search.replay import as_replay
from harness.suite.exit_codes import of_run
from harness.suite.options import Options
from harness.suite.runner import SuiteRunner
from harness.suite.spark_worker import spark_worker


def play_one(runs: RandomRuns, options: Options, console: Console) -> int:
    """Play one run on any host, check it on Spark, print and write its report; return the exit code."""
    spec, target = as_replay(runs.spec(options.seed)), runs.load_target()
    environment = options.make_environment(target)
    runner = SuiteRunner.begin("run", options, runs.name, console, folder="run")
    with spark_worker(runner.java.home) as spark:
        runner.play(environment, [spec])
        suite, report = runner.conclude(spark, target.name)
    (result,) = suite.results
    render_table(suite, console)
    runner.say(f"schedule: {Run(path=runner.folder.path / result.run).schedule}")
    runner.say(f"report: {report or 'none'}")
    return of_run(result, runner.problems)
