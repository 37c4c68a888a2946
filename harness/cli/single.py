"""
One random schedule, played on any host, checked on Spark and reported: what `fencepost run` does with one seed.

In the simulator the oracles are heard too: what they saw is in the report's reason, and makes the run invalid.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from rich.console import Console

from checkers.verdict import found_text, records_of, verdict_of
from harness.cli.beside import spark_beside
from harness.cli.course import commit
from harness.cli.findings import keep_schedule, keep_trial
from harness.cli.hindsight import with_hindsight
from harness.cli.playing import play_all
from harness.cli.progress import CellProgress
from harness.cli.rounds import cell_spec, open_sides
from harness.cli.trials import HOST, TrialSpec, schedule_of
from harness.history import read_history
from harness.java import find_java
from harness.model import Anomaly, Op, Verdict
from harness.report.page import build_report
from harness.report.table import render_table
from harness.store import RunDir, SuiteDir, create_suite, write_anomalies
from harness.suite import Cell, Status, Suite

EXPECTED: Final = "no violation"
_STATUS: Final = {
    Verdict.VALID: Status.AS_EXPECTED,
    Verdict.PERMITTED: Status.AS_EXPECTED,
    Verdict.UNKNOWN: Status.UNKNOWN,
    Verdict.HANG: Status.MISMATCH,
    Verdict.INVALID: Status.MISMATCH,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A run that was played: oracles are what they saw, sentence by sentence; unknown is why it proves nothing."""

    run: RunDir
    power_tier: str
    oracles: tuple[str, ...] = ()
    unknown: str = ""


def play_single(
    spec: TrialSpec, arguments: argparse.Namespace, seed: int, rerun: str, console: Console
) -> Verdict:
    """Play the seed's schedule, check it, print and write its report; give what it is."""
    began, started, java = time.monotonic(), datetime.now(UTC), find_java()
    folder = create_suite(arguments.results, f"{started:%Y%m%dT%H%M%S}-run-{seed}")
    with spark_beside(java.home) as spark:
        if arguments.host == HOST:
            done = _simulate(folder, spec, seed)
        else:
            done = _play_real(folder, spec, arguments, seed, console)
        with console.status("checking on Spark"):
            proven = spark.check([done.run.parquet]).get(done.run.name, [])
    ops = read_history(done.run.history)
    anomalies = with_hindsight(ops, proven)
    write_anomalies(done.run, anomalies)
    cell = cell_of(spec, seed, done, anomalies, ops)
    cell = replace(cell, rerun=rerun, seconds=time.monotonic() - began)
    suite = Suite(
        name="run",
        started=started.isoformat(timespec="seconds"),
        commit=commit(),
        host=arguments.host,
        target=spec.target.name,
        power_tier=done.power_tier,
        seed=seed,
        rules={},
        cells=(cell,),
        seconds=time.monotonic() - began,
    )
    suite.write(folder.suite)
    report = build_report(suite, {done.run.name: ops}, folder.report)
    render_table(suite, console)
    for text in (f"schedule: {folder.path / done.run.name / 'schedule.txt'}", f"report: {report}"):
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    return cell.verdict


def _simulate(folder: SuiteDir, spec: TrialSpec, seed: int) -> Done:
    kept = keep_trial(folder, spec, seed)
    return Done(
        run=kept.run,
        power_tier=HOST,
        oracles=tuple(violation.sentence for violation in kept.trial.violations),
        unknown=kept.trial.vacuous,
    )


def _play_real(
    folder: SuiteDir, spec: TrialSpec, arguments: argparse.Namespace, seed: int, console: Console
) -> Done:
    """Play it on real processes: the same schedule at their own tempo; what chance decides is theirs."""
    opened = open_sides(
        {spec.target.name: spec},
        host=arguments.host,
        ports=arguments.ports,
        power_tier=arguments.power_tier,
        folder=folder.path / "zookeeper",
    )
    with opened as (side,), CellProgress(console, 1) as progress:
        (played,) = play_all(side.stage, [cell_spec(spec, seed)], folder, 1, progress)
    keep_schedule(played.run, spec, seed)
    return Done(run=played.run, power_tier=played.power_tier)


def cell_of(spec: TrialSpec, seed: int, done: Done, anomalies: Sequence[Anomaly], ops: Sequence[Op]) -> Cell:
    """Hold what was found against what is expected of any schedule: no violation."""
    schedule = schedule_of(spec, seed)
    verdict = Verdict.merge(
        [
            verdict_of(anomalies),
            Verdict.INVALID if done.oracles else Verdict.VALID,
            Verdict.UNKNOWN if done.unknown else Verdict.VALID,
        ]
    )
    severe = [anomaly.sentence for anomaly in anomalies if anomaly.verdict >= Verdict.UNKNOWN]
    status = _STATUS[verdict]
    reasons = [*done.oracles, *severe, *([done.unknown] if done.unknown else [])]
    return Cell(
        scenario=schedule.name,
        title=schedule.title,
        source="; ".join(schedule.sources),
        protocol=str(spec.variant),
        expected=EXPECTED,
        found=found_text(anomalies, records_of(ops)),
        status=status,
        reason="" if status is Status.AS_EXPECTED else " | ".join(reasons),
        verdict=verdict,
        anomalies=tuple(anomalies),
        run=done.run.name,
        rerun="",
        seconds=0.0,
    )
