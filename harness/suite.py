"""
A suite: many cells (scenario x protocol), what was expected of each and what was found.

Plain data that is written to results/SUITE/suite.json, so that a report can be built again from disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.model import Anomaly, Verdict
from harness.variant import RENAMED_RULES, Variant, is_mutant


class Status(StrEnum):
    """How a cell stands to its expectation; `unknown` is never as expected."""

    AS_EXPECTED = "as expected"
    UNKNOWN = "unknown"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """
    One scenario under one protocol.

    Shapes:  expected and found are short texts ("lost m2", "permitted m2, diverged m2, stuck A", "none").
             run is the run's folder name below the suite's. rerun is the command that plays this cell alone.
             reason says why the status is not "as expected", "" when it is. anomalies are all that the
             checkers proved, in the order found.
    """

    scenario: str
    title: str
    source: str
    protocol: str
    expected: str
    found: str
    status: Status
    reason: str
    verdict: Verdict
    anomalies: tuple[Anomaly, ...]
    run: str
    rerun: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Cells in the order of the table: scenario by scenario, protocols in the order of the ladder."""

    name: str
    started: str
    commit: str
    host: str
    target: str
    power_tier: str
    seed: int
    rules: Mapping[str, str]
    cells: tuple[Cell, ...]
    seconds: float

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Names of scenarios, in order of first appearance."""
        return tuple(dict.fromkeys(cell.scenario for cell in self.cells))

    @property
    def protocols(self) -> tuple[str, ...]:
        """Names of protocols, in order of first appearance."""
        return tuple(dict.fromkeys(cell.protocol for cell in self.cells))

    def cell(self, scenario: str, protocol: str) -> Cell | None:
        """The cell at that crossing, None when it was not played."""
        return next((c for c in self.cells if (c.scenario, c.protocol) == (scenario, protocol)), None)

    def write(self, path: Path) -> None:
        """Write the suite as JSON."""
        raw = asdict(self)
        raw["cells"] = [
            {
                **{k: v for k, v in asdict(cell).items() if k != "anomalies"},
                "anomalies": [a.to_dict() for a in cell.anomalies],
            }
            for cell in self.cells
        ]
        path.write_text(json.dumps(raw, indent=1), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Suite:
        """Read what write wrote."""
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        cells = tuple(
            Cell(
                **{
                    **cell,
                    "protocol": _present(cell["protocol"]),
                    "status": Status(cell["status"]),
                    "verdict": Verdict(cell["verdict"]),
                    "anomalies": tuple(Anomaly.from_dict(a) for a in cell["anomalies"]),
                }
            )
            for cell in raw.pop("cells")
        )
        rules = {RENAMED_RULES.get(name, name): value for name, value in raw.pop("rules").items()}
        return Suite(**raw, rules=rules, cells=cells)


def _present(protocol: str) -> str:
    """Return the text of a stored cell's variant, with the names that its rules have now."""
    return str(Variant.parse(protocol, "stored suite")) if is_mutant(protocol) else protocol
