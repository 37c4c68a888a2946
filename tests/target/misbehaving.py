"""Targets that misbehave: docs/mylog with one part changed, and whole runs of them on real nodes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.docs.pages import ROOT
from harness.environment.real import make_environment
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.file import draw
from harness.scenario.variant import Variant
from harness.suite.judged import judge_run
from harness.suite.scenario_files import read_for
from harness.target.found import also_in, target
from harness.target.target import traits_under
from nemesis import NEMESES

VARIANT: Final = Variant(protocol="1")
SCENARIO: Final = """title    A log is written, and its leader changes
source   docs/mylog
nodes    A B C replicas
records  m1 1..4
{settings}produce m1 acks=all
await log B = end(m1)
{steps}
expect 1, 1-early: none
"""


@dataclass(frozen=True, kw_only=True)
class Room:
    """
    A folder with a target whose part is changed.

    Attributes:
        code: what is put at the end of target.py.
        steps: the scenario's, after a group is written and copied.
    """

    folder: Path
    code: str = ""
    steps: str = ""
    settings: str = ""
    made: list[Path] = field(default_factory=list)

    def make(self, name: str = "mylog") -> Path:
        """Make the target's folder; return it."""
        place = self.folder / name
        shutil.copytree(ROOT / "docs" / "mylog", place, ignore=shutil.ignore_patterns("__pycache__"))
        with (place / "target.py").open("a", encoding="utf-8") as file:
            file.write(f"\n\n{self.code}\n")
        scenario = SCENARIO.format(steps=self.steps, settings=self.settings)
        (place / "scenarios" / "early.txt").write_text(scenario, encoding="utf-8")
        return place

    def play(self) -> RunResult:
        """Play the scenario on this machine, and judge it; nodes and disks are gone then, or it raises."""
        with also_in([str(self.make())]):
            system = target("mylog")
            scenario = read_for("mylog", self.folder / "mylog" / "scenarios" / "early.txt")
            spec = RunSpec(
                target="mylog",
                host="local",
                variant=VARIANT,
                rules=system.rules("1", ()),
                traits=traits_under(system, "1", ()),
                scenario=scenario,
                draw=draw(scenario, 1),
                make="test-mylog",
            )
            environment = make_environment("local", target=system, power_tier=None, ports=None)
            environment.open(self.folder / "shared")
            try:
                run = Player(environment=environment, faults=NEMESES).attempt(
                    spec, create_suite(self.folder / "results", "suite")
                )
            finally:
                environment.close()
            return judge_run(spec, run)[0]
