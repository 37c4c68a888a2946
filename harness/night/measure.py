"""How available a run on real processes was, from the lines of its history."""

from __future__ import annotations

from pathlib import Path

from checkers.measures.run import RunMeasures, facts_of, is_looked_at
from harness.model import HistoryError, Op
from harness.night.count import Count
from harness.run.store import Run
from harness.tables.manifest import LINES_MAX


def add_availability(count: Count, run: Run) -> None:
    """Add a run's windows and its longest gap to a count; a history that is huge or unreadable adds nothing."""
    try:
        if run.history.stat().st_size > LINES_MAX:
            return
        facts = facts_of(_measured(run.history).measures())
    except (OSError, HistoryError, UnicodeDecodeError, ValueError):
        return  # its verdict says why
    if facts[0]["what"] == "run":
        count.windows += facts[0]["windows"]
        count.available += facts[0]["available"]
        count.gap_s = max(count.gap_s, facts[0]["unavailable_s"])


def _measured(history: Path) -> RunMeasures:
    measured = RunMeasures()
    with history.open(encoding="utf-8") as lines:
        for line in lines:
            op = Op.from_json(line.rstrip("\n"))
            if is_looked_at(op.source, op.f):
                measured.add(op)
    return measured
