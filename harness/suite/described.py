"""
The table of a suite that has none, as its runs describe themselves.

Only a command that plays a whole suite writes suite.json, when it ends. A search, chaos seed by seed, a comparison
and a night keep runs one by one: of each its history says what was played, and its anomalies.json what was found.
A suite whose command was killed is the same, but none of its runs was judged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from harness.events import Setup
from harness.model import UsageError
from harness.run.result import RunResult
from harness.run.store import Run, SuiteDir
from harness.run.suite import Suite
from harness.scenario.variant import Variant
from harness.suite.again import RunHistory, concluded
from harness.suite.stored import stored_run

# How folders of suites and of nights are named, in UTC.
_NAMED: Final = re.compile(r"(\d{8}T\d{6})(?:-|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """
    A suite, most often one without a table.

    Attributes:
        suite: without a table, the results of the runs that were judged, by name; no run says how long it took, or
            what it did.
        unread: run -> why it has no result.
    """

    suite: Suite
    unread: Mapping[str, str]


def describe(folder: Path, runs: Iterable[Run]) -> Described:
    """
    Return what the runs of a folder without suite.json say of themselves.

    Args:
        folder: the suite's folder.
        runs: those of its runs that are asked for.
    """
    results: list[RunResult] = []
    setups: list[Setup] = []
    unread: dict[str, str] = {}
    for run in sorted(runs, key=lambda each: each.name):
        try:
            setup, result = _described(run)
        except UsageError as error:
            unread[run.name] = str(error)
        else:
            setups.append(setup)
            results.append(result)
    first = setups[0] if setups else None
    suite = Suite(
        name=folder.name,
        started=_started(folder).isoformat(timespec="seconds"),
        commit="",
        version=(first and first.version) or "",
        host=first.host if first else "",
        target=first.target if first else "",
        power_tier=", ".join(sorted({setup.power_tier for setup in setups} - {""})),
        seed=min((setup.seed for setup in setups), default=0),
        rules={},
        results=tuple(results),
        seconds=0.0,
    )
    return Described(suite=suite, unread=unread)


def suite_in(folder: Path) -> Described:
    """
    Return a suite by its table, or if it has none by what its runs say.

    Raises:
        UsageError: its table cannot be read; or it has none, and no run that was judged.
    """
    stored = SuiteDir(path=folder)
    runs = stored.runs()
    if os.path.lexists(stored.suite) or not runs:
        return Described(suite=Suite.read(stored.suite), unread={})
    found = describe(folder, runs)
    if not found.suite.results:
        name, why = next(iter(found.unread.items()))
        raise UsageError(f"{folder}: no suite.json, and no run that was judged; of {name}: {why}")
    return found


def _described(run: Run) -> tuple[Setup, RunResult]:
    """Return what a run's history and anomalies.json say; raise UsageError for one that cannot be described."""
    stored = stored_run(run)
    if stored.problem or stored.doubt:
        raise UsageError(stored.problem or stored.doubt)
    if stored.anomalies is None:
        raise UsageError(
            f"{run.anomalies}: No such file or directory; expected what was found when the run was judged; "
            "`fencepost check --store` judges it"
        )
    history = RunHistory(stored)
    setup = history.setup
    if setup is None:
        raise UsageError(f"{run.history}: no line with the run's set-up; expected it to be the first")
    expected = history.expected
    found = concluded(expected, stored.anomalies, history)
    return setup, RunResult(
        scenario=setup.scenario,
        title="",
        source="",
        protocol=str(Variant(protocol=setup.protocol, changes=setup.changes or ())),
        seed=setup.seed,
        expected=expected,
        found=found.found,
        status=found.status,
        reason=found.reason,
        verdict=found.verdict,
        anomalies=stored.anomalies,
        run=run.name,
        rerun=setup.again or "",
        seconds=0.0,
    )


def _started(folder: Path) -> datetime:
    """Return when a folder's command began: by its name or that of one above it, else when it was last changed."""
    for name in (folder.name, *(path.name for path in folder.parents)):
        if named := _NAMED.match(name):
            try:
                return datetime.strptime(named[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
            except ValueError:
                continue
    return datetime.fromtimestamp(folder.stat().st_mtime, UTC)
