"""The same seeds on both: played once each, told when somebody ends it, gone on with, and judged anew."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.cli.conform import Compared, compare, lighten
from harness.cli.rounds import Ended, Round
from harness.cli.searching import Order
from rich.console import Console

from harness.cli import conform
from harness.model import EXIT_CODES, Kind, UsageError, Verdict
from harness.run.store import SuiteDir
from tests.cli.test_searching import trial_of

THEIRS = Order(target="kafka", variant="0.10.2.2", real=True)


def asked(tmp_path: Path, *, host: str = "local") -> argparse.Namespace:
    return argparse.Namespace(
        host=host, results=tmp_path, beside="hw", jobs=1, ports=None, power_tier=None, seeds=2
    )


class Stand:
    """In place of brokers: each round gives the trial that was set for its side and seed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.played: list[tuple[str, int]] = []
        self.bad: set[tuple[str, int]] = set()
        self.end_after: int | None = None
        monkeypatch.setattr(conform, "open_sides", self._open)
        monkeypatch.setattr(conform, "play_rounds", self._play)
        monkeypatch.setattr(conform, "judge_run", self._judge)

    @contextmanager
    def _open(self, specs: dict[str, Any], **_: object) -> Iterator[list[Any]]:
        yield [SimpleNamespace(name=name, spec=spec, stage=None) for name, spec in specs.items()]

    def _play(
        self, rounds: Iterator[Round], _s: Sequence[Any], folder: SuiteDir, _j: int, take: Callable[..., None]
    ) -> None:
        for one in rounds:
            if self.end_after == len(self.played):
                raise KeyboardInterrupt
            run = folder.create_run(one.name)
            (run.path / "nodes").mkdir()
            self.played.append((one.side.name, one.seed))
            take(Ended(round=one, run=run, trial=self._trial(one.side.name, one.seed)))

    def _judge(self, run: Any, seed: int, _seconds: float, *, alike: bool) -> Any:
        assert alike, "what only one of them tells must not count"
        return self._trial("ours" if run.path.name.endswith("-hw") else "theirs", seed)

    def _trial(self, side: str, seed: int) -> Any:
        bad = (side, seed) in self.bad
        return trial_of(Verdict.INVALID, Kind.LOST, seed=seed) if bad else trial_of(Verdict.VALID, seed=seed)


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    return Stand(monkeypatch)


def said(tmp_path: Path, seeds: range) -> tuple[int, str]:
    console = Console(record=True, width=150)
    return compare(THEIRS, asked(tmp_path), seeds, console), console.export_text()


def test_every_seed_is_played_on_both_and_kinds_that_agree_are_valid(tmp_path: Path, stand: Stand) -> None:
    stand.bad = {("ours", 1), ("theirs", 1)}
    code, text = said(tmp_path, range(2))
    assert EXIT_CODES["valid"] == code
    assert {("theirs", 0), ("ours", 0), ("theirs", 1), ("ours", 1)} == set(stand.played)
    assert "2 seeds on both: 2 of the same kind, 0 differ" in text
    assert "kafka:0.10.2.2: 1 of 2 invalid" in text


def test_seed_that_differs_is_told_with_the_commands_that_play_it_again(tmp_path: Path, stand: Stand) -> None:
    stand.bad = {("ours", 1)}
    code, text = said(tmp_path, range(2))
    assert EXIT_CODES["invalid"] == code
    assert "seed 1: ours lost, theirs valid" in text
    assert "fencepost run --host local --target kafka:0.10.2.2 --seed 1" in text
    (folder,) = tmp_path.iterdir()
    summary = json.loads((folder / "summary.json").read_text())
    assert [1] == [one["seed"] for one in summary["differing"]]
    # What differs is kept whole; what shows nothing is kept as far as its verdict needs it.
    assert (folder / "play-1/seed-1-hw/nodes").exists()
    assert not (folder / "play-1/seed-0-hw/nodes").exists()


def test_comparison_that_was_ended_tells_what_it_has_and_goes_on_where_it_ended(
    tmp_path: Path, stand: Stand
) -> None:
    stand.end_after = 3
    with pytest.raises(KeyboardInterrupt):
        said(tmp_path, range(2))
    (folder,) = tmp_path.iterdir()
    assert 1 == json.loads((folder / "summary.json").read_text())["seeds"]
    stand.end_after = None
    first = list(stand.played)
    _, text = said(tmp_path, range(2))
    assert "3 rounds of 4 played before" in text
    assert 4 == len(stand.played)
    assert stand.played[3] not in first
    # Nothing is left to play: it is judged anew.
    assert EXIT_CODES["valid"] == said(tmp_path, range(2))[0]
    assert 4 == len(stand.played)


def test_seeds_that_prove_nothing_on_either_are_unknown(
    tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stand, "_trial", lambda side, seed: trial_of(Verdict.UNKNOWN, seed=seed))
    assert EXIT_CODES["unknown"] == said(tmp_path, range(2))[0]


def test_simulator_is_not_compared_with_real_processes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected real processes"):
        compare(THEIRS, asked(tmp_path, host="sim"), range(2), Console())


def test_command_names_what_was_changed() -> None:
    changed = Order(target="kafka", variant="3.9.1", changes=("min.insync.replicas=2",), real=True)
    compared = Compared(orders={"theirs": changed}, host="local")
    assert "--rule min.insync.replicas=2 --seed 7" in compared.again("theirs", 7)
    assert "kafka:3.9.1+min.insync.replicas=2" == compared.name("theirs")


def test_run_that_shows_something_keeps_all(tmp_path: Path) -> None:
    run = SuiteDir(path=tmp_path).create_run("run")
    lighten(Ended(round=SimpleNamespace(), run=run, trial=trial_of(Verdict.UNKNOWN)))  # type: ignore[arg-type]
    assert run.logs.exists()
    lighten(Ended(round=SimpleNamespace(), run=run, trial=trial_of(Verdict.PERMITTED)))  # type: ignore[arg-type]
    assert not run.logs.exists()
