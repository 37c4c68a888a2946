"""`fencepost run`: many seeds in the simulator, one seed on any host, and exit codes that say what came of it."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from harness.cli.searching import Order
from harness.cli.trials import run_trial

from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.schedule import read_scenario


def run(tmp_path: Path, *words: str) -> int:
    return main(["run", "--results", str(tmp_path), *words])


def test_search_of_a_broken_protocol_ends_at_its_first_finding_and_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(tmp_path, "--protocol", "hw", "--seed", "0", "--seeds", "40", "--stop-at-first")
    out = capsys.readouterr().out
    assert EXIT_CODES["invalid"] == code
    (command,) = [line.split("again: ")[1] for line in out.splitlines() if "again: " in line]
    seed = shlex.split(command)[-1]
    (folder,) = tmp_path.glob(f"*-search-0/seed-{seed}-hw")
    assert {"schedule.txt", "history.jsonl", "history.parquet", "anomalies.json", "logs"} <= {
        path.name for path in folder.iterdir()
    }
    assert str(folder / "schedule.txt") in out
    assert ["fencepost", "run", "--host", "sim", "--protocol", "hw", "--seed", seed] == shlex.split(command)


def test_search_of_a_sound_protocol_keeps_nothing_and_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert EXIT_CODES["valid"] == run(tmp_path, "--seed", "0", "--seeds", "12")
    assert [] == list(tmp_path.iterdir())
    assert "seeds per second and core" in capsys.readouterr().out


def test_search_takes_rules_and_says_them_in_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--rule", "truncate_to=high_watermark", "--seed", "0", "--seeds", "20", "--stop-at-first"]
    assert EXIT_CODES["invalid"] == run(tmp_path, *words)
    assert "--rule truncate_to=high_watermark" in capsys.readouterr().out


def test_search_goes_on_until_the_time_is_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--nemesis", "kill,hold", "--seed", "0", "--time", "0.2"]
    assert run(tmp_path, *words) in (EXIT_CODES["valid"], EXIT_CODES["unknown"])
    out = capsys.readouterr().out
    assert "seeds per second and core" in out
    kinds = {line.split()[1] for line in out.partition("what was done")[2].splitlines() if line.startswith("│")}
    assert kinds <= {"kill", "hold", "restart", "expire", "zookeeper"}


def test_target_names_its_protocol_and_plays_on_real_processes_unless_it_is_our_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str]] = []

    def play(order: Order, arguments: argparse.Namespace, *_: object) -> int:
        asked.append((arguments.host, order.target, order.variant))
        return 0

    monkeypatch.setattr("harness.cli.run.play_many", play)
    monkeypatch.setattr("harness.cli.run._search", play)
    run(tmp_path, "--target", "kafka:3.9.1", "--nemesis", "all", "--time", "600")
    run(tmp_path, "--target", "broker:hw", "--time", "600")
    run(tmp_path, "--target", "broker", "--host", "local", "--seeds", "2")
    assert [("local", "kafka", "3.9.1"), ("sim", "broker", "hw"), ("local", "broker", "kip380")] == asked


def test_comparison_takes_seeds_from_the_first_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, range]] = []

    def compare(theirs: Order, arguments: argparse.Namespace, seeds: range, *_: object) -> int:
        asked.append((theirs.variant, arguments.beside, seeds))
        return 0

    monkeypatch.setattr("harness.cli.run.compare", compare)
    run(tmp_path, "--target", "kafka:0.10.2.2", "--beside", "hw", "--seed", "5", "--seeds", "20")
    assert [("0.10.2.2", "hw", range(5, 25))] == asked


@pytest.mark.parametrize("words", [
    ("--seeds", "0"),
    ("--time", "0"),
    ("--time", "5", "--seeds", "5"),
    ("--time", "5", "--schedule", "x.txt"),
    ("--nemesis", "gremlin"),
    ("--target", "broker:hw", "--protocol", "kip380"),
    ("--beside", "hw"),
    ("--beside", "hw", "--host", "local", "--time", "5"),
    ("--beside", "hw", "--host", "local", "--nemesis", "kill"),
    ("--seeds", "5", "--schedule", "x.txt"),
    ("--protocol", "kip999"),
    ("--rule", "nothing=no"),
])  # fmt: skip
def test_wrong_use_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert EXIT_CODES["usage"] == run(tmp_path, *words)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.spark
@pytest.mark.slow
def test_one_seed_is_checked_on_spark_and_reported_as_its_schedule_plays_again(tmp_path: Path) -> None:
    assert EXIT_CODES["invalid"] == run(tmp_path, "--protocol", "hw", "--seed", "6")
    (folder,) = tmp_path.glob("*-run-6")
    (cell,) = json.loads((folder / "suite.json").read_text(encoding="utf-8"))["cells"]
    assert "mismatch" == cell["status"]
    assert (folder / "report.html").is_file()
    schedule = read_scenario(folder / "seed-6-hw" / "schedule.txt")
    again = run_trial(replace(Order(target="broker", variant="hw").spec(), schedule=schedule), 6)
    assert [each["sentence"] for each in cell["anomalies"]] == [each.sentence for each in again.anomalies]
    assert all(violation.sentence in cell["reason"] for violation in again.violations)
