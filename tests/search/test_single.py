"""One random run with its report has the verdict that a search of many seeds has for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from checkers.judge import check_in_process
from harness.history.file import read_history
from harness.java import Java
from harness.model import EXIT_CODES, Anomaly
from harness.run.result import Status
from harness.run.suite import Suite
from harness.search import single
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player, simulate
from harness.search.single import play_one
from harness.suite.options import Options
from targets import VIRTUAL_HOST as SIM

NO_FAULT = """title No fault bites
source chance
nodes A B replicas, C controller
records m1 1, last1 1, last2 1, last3 1, last4 1
settings min_isr=1 heal_within_s=3

produce m1 acks=all meanwhile
pass 30ms
"""


class FakeSpark:
    """A fake Spark that applies the rules in this process."""

    def check(self, folders: Sequence[Path]) -> dict[str, list[Anomaly]]:
        return {folder.name: check_in_process(read_history(folder / "history.jsonl")) for folder in folders}


@contextmanager
def fake_worker(_java_home: Path) -> Iterator[FakeSpark]:
    yield FakeSpark()


@pytest.fixture
def quiet(tmp_path: Path) -> RandomRuns:
    """Return runs of a schedule without a fault."""
    path = tmp_path / "quiet.txt"
    path.write_text(NO_FAULT, encoding="utf-8")
    return RandomRuns(target="broker", variant="kip380", host=SIM, schedule=path)


def test_one_seed_in_which_no_fault_bit_is_unknown_as_among_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: RandomRuns
) -> None:
    java = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    monkeypatch.setattr("harness.suite.runner.find_java", lambda: java)
    monkeypatch.setattr(single, "spark_worker", fake_worker)
    console = Console(record=True, width=200)
    options = Options(host=SIM, seed=2, results=tmp_path / "results")
    assert EXIT_CODES["unknown"] == play_one(quiet, options, console)
    (path,) = options.results.glob("*-run-2/suite.json")
    (result,) = Suite.read(path).results
    among_many = simulate(sim_player(quiet.load_target()), quiet.spec(2))
    assert (Status.UNKNOWN, "No fault of the schedule bit.") == (result.status, result.vacuous)
    assert (among_many.verdict, among_many.anomalies, among_many.activity) == (
        result.verdict,
        result.anomalies,
        result.activity,
    )
    printed = console.export_text()
    assert f"schedule: {path.parent / 'quiet-kip380' / 'schedule.txt'}" in printed
    assert f"report: {path.parent / 'report.html'}" in printed
