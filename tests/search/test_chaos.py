"""Seeds for some time on real processes: what shows nothing leaves nothing, what shows something is kept whole."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.cli.chaos import play_many
from harness.cli.findings import FINDING
from harness.cli.rounds import Ended, Round
from harness.cli.searching import Order
from rich.console import Console

from harness.cli import chaos
from harness.model import EXIT_CODES, Kind, Verdict
from harness.run.store import SuiteDir
from tests.cli.test_searching import trial_of

ORDER = Order(target="kafka", variant="3.9.1", real=True)


def asked(tmp_path: Path, **more: Any) -> argparse.Namespace:
    words: dict[str, Any] = {"seeds": 1, "time": None, "stop_at_first": False, "jobs": 1, "ports": None}
    return argparse.Namespace(host="local", results=tmp_path, power_tier=None, **{**words, **more})


class Stand:
    """In place of brokers: seeds in `bad` show a loss, and each takes a second by the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bad: set[int] = set()
        self.now = 0.0
        monkeypatch.setattr(chaos, "open_sides", self._open)
        monkeypatch.setattr(chaos, "play_rounds", self._play)
        monkeypatch.setattr(chaos.time, "monotonic", lambda: self.now)

    @contextmanager
    def _open(self, specs: dict[str, Any], **_: object) -> Iterator[list[Any]]:
        yield [SimpleNamespace(name=name, spec=spec, stage=None) for name, spec in specs.items()]

    def _play(
        self, rounds: Iterator[Round], _s: Sequence[Any], folder: SuiteDir, _j: int, take: Callable[..., None]
    ) -> None:
        for one in rounds:
            run = folder.create_run(one.name)
            conf = run.path / "nodes" / "A" / "conf"
            conf.mkdir(parents=True)
            (conf / "server.properties").write_text("broker.id=1\n")
            (run.path / "nodes" / "A" / "log.txt").write_text("up")
            (run.logs / "A.log").write_text("up")
            self.now += 1.0
            found = (Verdict.INVALID, Kind.LOST) if one.seed in self.bad else (Verdict.VALID,)
            take(Ended(round=one, run=run, trial=trial_of(*found, seed=one.seed)))


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    return Stand(monkeypatch)


def said(tmp_path: Path, **more: Any) -> tuple[int, str]:
    console = Console(record=True, width=150)
    code = play_many(ORDER, asked(tmp_path, **more), 10, lambda seed: f"again {seed}", console)
    return code, console.export_text()


def test_seeds_are_played_until_the_time_is_up(tmp_path: Path, stand: Stand) -> None:
    code, text = said(tmp_path, time=3.0)
    assert EXIT_CODES["valid"] == code
    assert [True, True, True, False] == [f"seed-{seed}-3.9.1: valid" in text for seed in (10, 11, 12, 13)]
    assert "3 seeds: 3 valid" in text


def test_one_seed_is_played_however_long_it_took_to_begin(tmp_path: Path, stand: Stand) -> None:
    assert "1 seeds: 1 valid" in said(tmp_path, time=0.001)[1]


def test_so_many_seeds_are_played_as_were_asked_for(tmp_path: Path, stand: Stand) -> None:
    assert "5 seeds: 5 valid" in said(tmp_path, seeds=5)[1]


def test_end_comes_with_the_first_finding_where_that_is_asked_for(tmp_path: Path, stand: Stand) -> None:
    stand.bad = {11}
    code, text = said(tmp_path, seeds=9, stop_at_first=True)
    assert EXIT_CODES["invalid"] == code
    assert "2 seeds: 1 valid, 1 invalid" in text


def test_finding_is_kept_with_all_that_a_report_needs_and_the_rest_is_not_kept(
    tmp_path: Path, stand: Stand
) -> None:
    stand.bad = {11}
    _, text = said(tmp_path, seeds=3)
    (folder,) = tmp_path.glob("*-chaos-10")
    assert ["seed-11-3.9.1"] == [path.name for path in folder.iterdir()]
    run = folder / "seed-11-3.9.1"
    assert "broker.id=1\n" == (run / "conf/A/server.properties").read_text()
    assert "up" == (run / "logs/A.log").read_text()
    assert not (run / "nodes").exists()
    page = (run / FINDING).read_text()
    for told in ("# kafka:3.9.1: invalid under the schedule of seed 11", "lost: S.", "    again 11", "Java"):
        assert told in page
    assert str(run / FINDING) in text
    assert "again: again 11" in text


def test_no_more_findings_are_kept_than_somebody_reads(tmp_path: Path, stand: Stand) -> None:
    stand.bad = set(range(100))
    said(tmp_path, seeds=8)
    (folder,) = tmp_path.glob("*-chaos-10")
    assert chaos.KEPT_MAX == len(list(folder.iterdir()))


def test_what_was_played_is_told_when_somebody_ends_it(
    tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(rounds: Iterator[Round], *rest: Any) -> None:
        stand._play(iter([next(rounds)]), *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(chaos, "play_rounds", interrupted)
    console = Console(record=True, width=150)
    with pytest.raises(KeyboardInterrupt):
        play_many(ORDER, asked(tmp_path, time=60.0), 10, str, console)
    assert "1 seeds: 1 valid" in console.export_text()
