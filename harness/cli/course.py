"""
A suite under way, for the commands that play scenarios: their options, and the course from a seed to a report.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console

from harness import limits
from harness.cell import CellSpec, Played, Stage
from harness.cli.beside import Beside
from harness.cli.interrupts import INTERRUPTS, apart
from harness.cli.judging import judge
from harness.cli.playing import play_all
from harness.cli.progress import CellProgress
from harness.ground import Ground
from harness.java import Java, find_java
from harness.model import Op
from harness.report.page import build_report
from harness.store import SuiteDir, create_suite
from harness.suite import Cell, Suite
from harness.target import Target
from nemesis import NEMESES

ROOT: Final = Path(__file__).resolve().parents[2]
SEED_MAX: Final = 1_000_000


def configure_course(
    parser: argparse.ArgumentParser, hosts: Collection[str], *, host: str | None = "local", otherwise: str = ""
) -> None:
    """Add the options that say where, from which seed and how fast a suite is played."""
    parser.add_argument(
        "--host", default=host, help=f"where nodes run: {', '.join(hosts)} (default: {host or otherwise})"
    )
    parser.add_argument("--seed", type=int, help="draw broker ids and record counts from this (default: chance)")
    parser.add_argument(
        "--jobs", type=jobs, help="cells side by side (default: one for each core, one in the simulator)"
    )
    parser.add_argument("--power-tier", choices=("loop", "watermark"), help="insist on a way to lose power")
    parser.add_argument(
        "--ports",
        type=ports,
        metavar="FIRST-LAST",
        help=f"ports that local nodes may take (default: {limits.PORT_FIRST}-{limits.PORT_LAST})",
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="where the run is kept")


def jobs(text: str) -> int:
    """Read how many cells are played side by side."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1")
    return int(text)


def ports(text: str) -> range:
    """Read FIRST-LAST; both are in the range."""
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r}: expected FIRST-LAST, from 1 to 65535, as in 20000-20999")
    return range(int(first), int(last) + 1)


def seed_of(arguments: argparse.Namespace) -> int:
    """The seed that was asked for, or one by chance."""
    return secrets.randbelow(SEED_MAX) if arguments.seed is None else int(arguments.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One suite from its begin on: what it is told to be, and where it is kept."""

    name: str
    arguments: argparse.Namespace
    console: Console
    seed: int
    started: datetime
    began: float
    commit: str
    java: Java
    folder: SuiteDir

    @staticmethod
    def begin(name: str, arguments: argparse.Namespace, seed: int, about: str, console: Console) -> Course:
        """Say what will be played, and make its folder; UsageError where the machine lacks something."""
        java, started, playing = find_java(), datetime.now(UTC), commit()
        course = Course(
            name=name,
            arguments=arguments,
            console=console,
            seed=seed,
            started=started,
            began=time.monotonic(),
            commit=playing,
            java=java,
            folder=create_suite(arguments.results, f"{started:%Y%m%dT%H%M%S}-{seed}"),
        )
        course.say(f"seed {seed}, commit {playing}, host {arguments.host}, {about}, Java {java.version}")
        return course

    def say(self, text: str) -> None:
        """Print a line, however long."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def play(self, ground: Ground, target: Target, specs: Sequence[CellSpec]) -> list[Played]:
        """Play cells on one ground; it is down again whatever happens."""
        try:
            apart(lambda: ground.open(self.folder.path / "zookeeper"), "ground")
            return self.play_on(ground, target, specs)
        finally:
            with INTERRUPTS.shielded():
                ground.close()

    def play_on(self, ground: Ground, target: Target, specs: Sequence[CellSpec]) -> list[Played]:
        """Play cells on a ground that is open."""
        stage = Stage(ground=ground, target=target, faults=NEMESES)
        side_by_side = min(self.arguments.jobs or ground.jobs, len(specs))
        with CellProgress(self.console, len(specs)) as progress:
            return play_all(stage, specs, self.folder, side_by_side, progress)

    def leaves_a_core(self, ground: Ground) -> bool:
        """Whether cells on that ground leave a core idle, on which Spark may start meanwhile."""
        return int(self.arguments.jobs or ground.jobs) < (os.cpu_count() or 1)

    def conclude(
        self, spark: Beside, played: Sequence[Played], rerun: Callable[[Played], str], target: str
    ) -> tuple[Suite, Path]:
        """Judge all that was played, keep it, and write the report; give the suite and the report's path."""
        with self.console.status("checking on Spark"):
            cells, histories = judge(spark, played, rerun)
        return self._keep(played, cells, histories, target)

    def _keep(
        self, played: Sequence[Played], cells: Sequence[Cell], histories: dict[str, list[Op]], target: str
    ) -> tuple[Suite, Path]:
        suite = Suite(
            name=self.name,
            started=self.started.isoformat(timespec="seconds"),
            commit=self.commit,
            host=self.arguments.host,
            target=target,
            power_tier=", ".join(sorted({one.power_tier for one in played})),
            seed=self.seed,
            rules=dict(rule.split("=", 1) for rule in getattr(self.arguments, "rule", None) or ()),
            cells=tuple(cells),
            seconds=time.monotonic() - self.began,
        )
        suite.write(self.folder.suite)
        return suite, build_report(suite, histories, self.folder.report)


def commit() -> str:
    """The commit that is played, with + when there are changes on top of it."""
    try:
        found = subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return found.stdout.strip() or "unknown"
