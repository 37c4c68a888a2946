"""
Workloads: one file and one line for each. Scenarios are data, below scenarios/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from workloads import append, batches, crash, idempotent, mixed, tail, topics, upgrade
from workloads.definition import Definition

WORKLOADS: Final[dict[str, Definition]] = {
    "append": append.WORKLOAD,
    "tail": tail.WORKLOAD,
    "batches": batches.WORKLOAD,
    "mixed": mixed.WORKLOAD,
    "crash": crash.WORKLOAD,
    "topics": topics.WORKLOAD,
    "idempotent": idempotent.WORKLOAD,
    "upgrade": upgrade.WORKLOAD,
}
SCENARIOS: Final = Path(__file__).parent / "scenarios"
