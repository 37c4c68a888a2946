"""
Keep the runs with findings: schedule, history and anomalies, each in its own folder.

A simulated run is played again from its seed, into files: the same seed gives the same run. A run on real
processes cannot be repeated, so its folder is completed with all files that an engineer needs to understand it.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from checkers.judge import failure_in
from harness.beneath import Folder, RefusedError
from harness.hosts.trees import copy_pass
from harness.java import find_java
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir
from harness.search.real_runs import RealRun
from harness.suite.judged import judge_run
from harness.version import build

FINDING: Final = "finding.md"
# The number of findings that are kept; the others can be played again from their seeds.
KEPT_MAX: Final = 5
# Violations on real processes, which cannot be repeated.
VIOLATIONS_KEPT_MAX: Final = 50


def keep_simulated(player: Player, spec: RunSpec, folder: SuiteDir) -> Run:
    """
    Play a run again, into files: schedule, history, Parquet, anomalies, oracles' violations, or a traceback.

    Returns:
        The run; its `failure` says what could not be played or stored.
    """
    run = player.attempt(spec, folder)
    result, _ = judge_run(spec, run)
    return replace(run, failure=failure_in(result.anomalies))


def keep_finding(found: RealRun) -> Path:
    """
    Complete the folder of a run with a finding, write the page that describes it, and return the page's path.

    The folder already has history, schedule and anomalies, and in logs/ the brokers' printed lines and final log
    directories. This adds conf/, with the configuration of each node.
    """
    run = found.run
    _keep_conf(run)
    shutil.rmtree(run.path / "nodes")
    page = run.path / FINDING
    page.write_text(finding_text(found.spec, found.result), encoding="utf-8")
    return page


def _keep_conf(run: Run) -> None:
    """Copy each node's configuration; a link in it is kept as a link, since the node may have made it."""
    with Folder.no_link(run.path / "nodes") as nodes:
        for name in sorted(entry.name for entry in nodes.entries()):
            with ExitStack() as opened:
                try:
                    conf = opened.enter_context(nodes.folder(f"{name}/conf"))
                except (FileNotFoundError, RefusedError):
                    continue
                kept = run.path / "conf" / name
                kept.mkdir(parents=True)
                copy_pass(conf, opened.enter_context(Folder.at(kept)))


def finding_text(spec: RunSpec, result: RunResult) -> str:
    """Return a description of a finding in Markdown: the anomalies, the system, the command to play it again."""
    traits = spec.traits
    release = traits.named or f"{spec.target}:{spec.variant}"
    models = f" (compared with what our {traits.models} promises)" if traits.models else ""
    lines = [
        f"# {release}: {result.verdict.name.lower()} under the schedule of seed {spec.seed}",
        "",
        *(f"- {sentence}" for sentence in result.sentences),
        "",
        f"- System: {release}{models}; host {spec.host}",
        f"- Rules and properties: {_listed(spec.rules)}",
        f"- Machine: {platform.platform()}, Java {find_java().version}, Python {platform.python_version()}",
        f"- Harness: {build()}",
        f"- Faults: {', '.join(f'{name} {number}' for name, number in sorted(result.activity.bit.items()))}",
        "",
        "Play it again, with timing of its own:",
        "",
        f"    {spec.command}",
        "",
        "| file | content |",
        "|---|---|",
        "| schedule.txt | every step, in the order in which it was played |",
        "| history.jsonl | all that clients, faults, links and metadata did, and every batch of every log |",
        "| anomalies.json | what was proven, with the lines of the history that prove it |",
        "| conf/ | what each node was started with |",
        "| logs/*.log | what each node printed |",
        "| logs/*-data/ | each replica's log directory as it ended |",
    ]
    return "\n".join(lines) + "\n"


def _listed(rules: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(rules.items())) or "nothing"
