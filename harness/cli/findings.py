"""
A trial that is kept: its schedule, its history on disk, and what the oracles saw, in a run's own folder.

The history is the one that a search judged in memory, op by op: the same seed gives the same run.
What real processes showed comes only once: such a finding keeps all that somebody needs who never saw the run.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.chance.text import text_of
from harness.cli.course import commit
from harness.cli.trials import Trial, TrialSpec, run_trial, schedule_of
from harness.history import Clock, History
from harness.java import find_java
from harness.store import RunDir, SuiteDir, write_anomalies, write_parquet
from harness.target import MODELS, NAMED

if TYPE_CHECKING:
    from harness.cli.rounds import Ended

SCHEDULE: Final = "schedule.txt"
ORACLES: Final = "oracles.txt"
FINDING: Final = "finding.md"
# Findings that are kept whole; any other can be played again from its seed.
KEPT_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A trial and the folder that has all of it."""

    trial: Trial
    run: RunDir

    @property
    def schedule(self) -> Path:
        """The schedule that was played."""
        return self.run.path / SCHEDULE


def keep_trial(folder: SuiteDir, spec: TrialSpec, seed: int) -> Kept:
    """Play a seed and keep it: schedule, history and its table, anomalies, and what the oracles said."""
    run = folder.create_run(f"seed-{seed}-{spec.variant}")
    keep_schedule(run, spec, seed)

    def open_history(clock: Clock) -> History:
        return History(run.history, clock)

    trial = run_trial(replace(spec, make_history=open_history), seed)
    write_parquet(run)
    write_anomalies(run, trial.anomalies)
    if trial.violations:
        told = "".join(f"{violation.rule.value}: {violation.sentence}\n" for violation in trial.violations)
        (run.path / ORACLES).write_text(told, encoding="utf-8")
    return Kept(trial=trial, run=run)


def keep_schedule(run: RunDir, spec: TrialSpec, seed: int) -> None:
    """Write the schedule that is played as a scenario file, so that it can be played again, and cut shorter."""
    (run.path / SCHEDULE).write_text(text_of(schedule_of(spec, seed)), encoding="utf-8")


def keep_finding(ended: Ended, *, host: str, command: str) -> Path:
    """
    Complete the folder of a run that showed something, and write what it is; give the page.

    Shapes:  the run's folder has its history, schedule and anomalies already, and in logs what the brokers printed
             and their log directories as they ended; added is conf, with what each node was started with.
    """
    run = ended.run
    for node in sorted((run.path / "nodes").iterdir()):
        if (node / "conf").is_dir():
            shutil.copytree(node / "conf", run.path / "conf" / node.name)
    shutil.rmtree(run.path / "nodes")
    page = run.path / FINDING
    page.write_text(finding_text(ended, host=host, command=command), encoding="utf-8")
    return page


def finding_text(ended: Ended, *, host: str, command: str) -> str:
    """Give what was found, on what, and how it is played again, as Markdown."""
    spec, trial = ended.round.side.spec, ended.trial
    rules = spec.rules
    release = rules.get(NAMED, f"{spec.target.name}:{spec.variant}")
    models = f" (held to what our {rules[MODELS]} promises)" if MODELS in rules else ""
    lines = [
        f"# {release}: {trial.verdict.name.lower()} under the schedule of seed {trial.seed}",
        "",
        *(f"- {sentence}" for sentence in trial.sentences),
        "",
        f"- System: {release}{models}, coordinated by ZooKeeper; host {host}",
        f"- Rules and properties: {_told(rules)}",
        f"- Machine: {platform.platform()}, Java {find_java().version}, Python {platform.python_version()}",
        f"- Harness: commit {commit()}",
        f"- Faults: {', '.join(f'{name} {number}' for name, number in sorted(trial.bit.items()))}",
        "",
        "Played again, with its own timing, by",
        "",
        f"    {command}",
        "",
        "| file | has |",
        "|---|---|",
        f"| {SCHEDULE} | every step, in the order in which it was taken |",
        "| history.jsonl | all that clients, faults, links and ZooKeeper did, and every batch of every log |",
        "| anomalies.json | what was proven, with the lines of the history that prove it |",
        "| conf/ | what each node was started with |",
        "| logs/*.log | what each node printed |",
        "| logs/*-data/ | each replica's log directory as it ended |",
    ]
    return "\n".join(lines) + "\n"


def _told(rules: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(rules.items())) or "nothing"
