"""
Skips a test for what the machine lacks and for nothing else, and prints the table of what was skipped.

A test that skips itself fails: it would hide what a green run did not test. With `--lane NAME` what was skipped is
kept for the end of `make test`, which prints one table of all lanes: `python -m tests.skips NAME ...`.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Final

import pytest
from rich.console import Console
from rich.table import Table

from tests import needs
from tests.tidy import ROOT

KEPT: Final = ROOT / ".venv" / ".lanes"
WIDTH: Final = 160
LACKED: Final = pytest.StashKey[str]()


@dataclass(slots=True, kw_only=True)
class Lane:
    """
    What came of one pytest.

    Attributes:
        lacked: for each row of the table that a test was skipped for, how many were.
        whys: why the machine lacks these rows.
    """

    name: str
    outcomes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    lacked: dict[str, int] = field(default_factory=dict)
    whys: dict[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """Return the lane in one line."""
        said = ", ".join(f"{count:,} {what}" for what, count in self.outcomes.items()) or "no test"
        return f"{self.name}: {said} in {self.seconds:.0f} s"

    def keep(self) -> None:
        """Keep it for the end of `make test`."""
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / f"{self.name}.json"
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(asdict(self)), encoding="utf-8")
        fresh.replace(path)

    @classmethod
    def kept(cls, name: str) -> Lane:
        """Return a lane that was kept."""
        return cls(**json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8")))


class Skips:
    """The plugin that skips tests, and fails those that skip themselves."""

    def __init__(self, rows: Mapping[str, needs.Row] = needs.ROWS) -> None:
        """Take the table that decides."""
        self._rows = rows
        self._lacked: Counter[str] = Counter()
        self._began = monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test for the first row that it names and the machine lacks."""
        for name in needs.names_of(item):
            if why := self._rows[name].why_not():
                item.stash[LACKED] = name
                self._lacked[name] += 1
                pytest.skip(f"{name}: {why}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        """Fail a test that was skipped by itself or by a fixture."""
        report: pytest.TestReport = yield  # type: ignore[assignment]
        if report.skipped and LACKED not in item.stash and not hasattr(report, "wasxfail"):
            _fail(report, item.nodeid)
        return report  # type: ignore[return-value]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Fail a file that is skipped while it is read."""
        report: pytest.CollectReport = yield  # type: ignore[assignment]
        if report.skipped:
            _fail(report, collector.nodeid)
        return report  # type: ignore[return-value]

    def lane(self, name: str, reporter: pytest.TerminalReporter) -> Lane:
        """Return what came of this run."""
        counts = {what: len(reporter.getreports(what)) for what in ("passed", "failed", "error", "skipped")}
        return Lane(
            name=name,
            outcomes={what: count for what, count in counts.items() if count},
            seconds=monotonic() - self._began,
            lacked={row: self._lacked[row] for row in self._rows if self._lacked[row]},
            whys={row: self._rows[row].why_not() for row in self._rows if self._lacked[row]},
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Print what was skipped; with --lane keep it, and print the lane's line."""
        name = config.getoption("--lane")
        lane = self.lane(name or "pytest", terminalreporter)
        for line in table([lane]):
            terminalreporter.write_line(line)
        if name:
            try:
                lane.keep()
            except OSError as error:  # the checkout is somebody else's: this run has its table all the same
                terminalreporter.write_line(f"{KEPT}: {error.strerror}; `make test` does not count this lane")
            terminalreporter.write_line(lane.line())


def _fail(report: pytest.TestReport | pytest.CollectReport, nodeid: str) -> None:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = (
        f"{nodeid}: skipped itself ({said}); expected a test that names what it needs of the machine, "
        "@needs(ROW) of tests/needs.py, and is skipped only where the machine lacks that"
    )


def table(lanes: Iterable[Lane]) -> list[str]:
    """Return the table of what these lanes skipped as lines; none if that is nothing."""
    lanes = list(lanes)
    counts: Counter[str] = Counter()
    whys: dict[str, str] = {}
    for lane in lanes:
        counts.update(lane.lacked)
        whys |= lane.whys
    if not counts:
        return []
    made = Table(title="not tested: what this machine lacks", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("ability", "tests skipped", "why", "what brings it"):
        made.add_column(column, overflow="fold", justify="right" if column == "tests skipped" else "left")
    for name, row in needs.ROWS.items():
        if counts[name]:
            made.add_row(name, str(counts[name]), " ".join(whys[name].split()), row.install)
    console = Console(width=WIDTH, no_color=True)
    with console.capture() as captured:
        console.print(made, highlight=False, markup=False)
    return [line.rstrip() for line in captured.get().splitlines()]


def main(names: list[str]) -> int:
    """Print the table of kept lanes, then each lane's line."""
    lanes = [Lane.kept(name) for name in names]
    for line in (*table(lanes), *(lane.line() for lane in lanes)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
