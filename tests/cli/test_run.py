"""`fencepost run` plays many seeds in the simulator or one seed on any host; every verdict has its exit code."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES, EXIT_OF_VERDICT, ORACLES, Verdict
from harness.scenario.text import text_of
from harness.search.chaos import Limit
from harness.search.pairing import Pairing
from harness.search.random_runs import RandomRuns
from harness.search.search import search
from harness.search.simulated import sim_player, simulate
from harness.suite.options import Options
from harness.suite.scenario_files import read_scenario
from targets import VIRTUAL_HOST as SIM
from tests.kept import exhaustive


def run(tmp_path: Path, *words: str) -> int:
    return main(["run", "--results", str(tmp_path), *words])


@pytest.mark.slow
def test_search_of_a_broken_protocol_ends_at_its_first_finding_and_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(tmp_path, "--protocol", "hw", "--seed", "17", "--seeds", "40", "--stop-at-first", "--no-shrink")
    out = capsys.readouterr().out
    assert EXIT_CODES["invalid"] == code
    (command,) = [line.split("again: ")[1] for line in out.splitlines() if "again: " in line]
    seed = shlex.split(command)[-1]
    (folder,) = tmp_path.glob(f"*-search-17/seed-{seed}-hw")
    assert {"schedule.txt", "history.jsonl", "anomalies.json", "logs"} <= {path.name for path in folder.iterdir()}
    assert str(folder / "schedule.txt") in out
    assert ["fencepost", "run", "--host", "sim", "--protocol", "hw", "--seed", seed] == shlex.split(command)


@pytest.mark.slow
def test_search_of_a_sound_protocol_keeps_nothing_and_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert EXIT_CODES["valid"] == run(tmp_path, "--seed", "0", "--seeds", "12")
    assert [] == list(tmp_path.iterdir())
    assert "seeds per second and core" in capsys.readouterr().out


def test_search_accepts_rules_and_prints_them_in_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--rule",
        "truncate_to=high_watermark",
        "--seed",
        "0",
        "--seeds",
        "20",
        "--stop-at-first",
        "--no-shrink",
    ]
    assert EXIT_CODES["invalid"] == run(tmp_path, *words)
    assert "--rule truncate_to=high_watermark" in capsys.readouterr().out


def test_search_goes_on_until_the_time_is_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--nemesis", "kill,hold", "--seed", "0", "--time", "0.2"]
    assert run(tmp_path, *words) in (EXIT_CODES["valid"], EXIT_CODES["unknown"])
    out = capsys.readouterr().out
    assert "seeds per second and core" in out
    kinds = {line.split()[1] for line in out.partition("what was done")[2].splitlines() if line.startswith("│")}
    drawn_with_the_world = {"depose-controller", "expire", "metadata"}
    assert {"kill"} <= kinds <= {"kill", "hold", "restart"} | drawn_with_the_world


def test_target_names_its_protocol_and_plays_on_real_processes_unless_it_is_our_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[tuple[str, str, str, str]] = []

    def played_by(way: str) -> Callable[..., Verdict | int]:
        def play(runs: RandomRuns, options: Options, *_: object) -> Verdict | int:
            assert runs.host == options.host
            played.append((way, options.host, runs.target, runs.variant))
            return EXIT_CODES["valid"] if way in ("play_one", "play_long") else Verdict.VALID

        return play

    for way in ("play_one", "play_chaos", "play_long", "search_simulated"):
        monkeypatch.setattr(f"harness.cli.run.{way}", played_by(way))
    for words in (
        ("--target", "kafka:3.9.1", "--nemesis", "all", "--time", "600", "--fresh"),
        ("--target", "kafka:3.9.1", "--nemesis", "all", "--time", "600"),
        ("--target", "broker", "--host", "sim", "--time", "600", "--no-fresh"),
        ("--target", "broker:hw", "--time", "600"),
        ("--target", "broker", "--host", "local", "--seeds", "2"),
        ("--target", "broker", "--host", "local"),
        (),
    ):
        assert EXIT_CODES["valid"] == run(tmp_path, *words)
    assert [
        ("play_chaos", "local", "kafka", "3.9.1"),
        ("play_long", "local", "kafka", "3.9.1"),
        ("play_long", "sim", "broker", "kip380"),
        ("search_simulated", "sim", "broker", "hw"),
        ("play_chaos", "local", "broker", "kip380"),
        ("play_one", "local", "broker", "kip380"),
        ("play_one", "sim", "broker", "kip380"),
    ] == played


@pytest.mark.parametrize(("verdict", "word"), [
    (Verdict.PERMITTED, "valid"),
    (Verdict.UNKNOWN, "unknown"),
    (Verdict.HANG, "hang"),
    (Verdict.INVALID, "invalid"),
])  # fmt: skip
def test_exit_code_is_that_of_the_verdict_however_many_seeds_were_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, word: str
) -> None:
    for way in ("play_chaos", "search_simulated"):
        monkeypatch.setattr(f"harness.cli.run.{way}", lambda *_: verdict)
    for way in ("play_one", "play_long"):
        monkeypatch.setattr(f"harness.cli.run.{way}", lambda *_: EXIT_OF_VERDICT[verdict])
    local = ("--host", "local")
    ways = (local, (*local, "--seeds", "2"), (*local, "--time", "2"), ())
    assert [EXIT_CODES[word]] * 4 == [run(tmp_path, *words) for words in ways]


@pytest.mark.parametrize(
    "words",
    [("--host", "sim"), ("--host", "local", "--target", "kafka:0.10.2.2"), ("--host", "sim", "--seeds", "3")],
)
def test_workload_on_libraries_is_refused_where_it_is_impossible(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert EXIT_CODES["usage"] == run(tmp_path, *words, "--workload", "mixed")
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize("option", ["--compare-with", "--beside"])
def test_comparison_plays_seeds_from_the_first_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    compared: list[tuple[list[str], range]] = []

    def compare(pairing: Pairing, options: Options, seeds: range, *_: object) -> int:
        compared.append(([runs.name for runs in pairing.runs.values()], seeds))
        return 0

    monkeypatch.setattr("harness.cli.run.compare", compare)
    run(tmp_path, "--target", "kafka:0.10.2.2", option, "hw", "--seed", "5", "--seeds", "20")
    assert [(["kafka:0.10.2.2", "broker:hw"], range(5, 25))] == compared


def test_comparison_draws_the_chosen_faults_and_clients_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def compare(pairing: Pairing, *_: object) -> int:
        drawn.extend(text_of(runs.spec(5).scenario) for runs in pairing.runs.values())
        return 0

    monkeypatch.setattr("harness.cli.run.compare", compare)
    words = ("--workload", "topics", "--nemesis", "kill,move-away")
    run(tmp_path, "--target", "kafka:3.9.1", "--compare-with", "kip380", *words)
    theirs, ours = drawn
    assert theirs == ours
    assert "churner n1 temp" in ours
    assert "move-away" in ours


def test_limit_is_what_the_options_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Limit] = []

    def search(_runs: RandomRuns, _options: Options, limit: Limit, *_: object) -> Verdict:
        limits.append(limit)
        return Verdict.VALID

    monkeypatch.setattr("harness.cli.run.search_simulated", search)
    run(tmp_path, "--seeds", "5", "--stop-at-first")
    run(tmp_path, "--time", "2.5")
    assert [Limit(seeds=5, first=True), Limit(seeds=1, seconds=2.5)] == limits


@pytest.mark.parametrize("words", [
    ("--seeds", "0"),
    ("--time", "0"),
    ("--time", "5", "--seeds", "5"),
    ("--time", "5", "--schedule", "x.txt"),
    ("--fresh",),
    ("--time", "5", "--no-fresh", "--stop-at-first"),
    ("--time", "5", "--no-fresh", "--narrow"),
    ("--time", "5", "--no-fresh", "--nemesis", "restart"),
    ("--time", "1000000", "--no-fresh"),
    ("--nemesis", "gremlin"),
    ("--target", "broker:hw", "--protocol", "kip380"),
    ("--compare-with", "hw"),
    ("--compare-with", "kip999", "--host", "local"),
    ("--compare-with", "hw", "--host", "local", "--time", "5"),
    ("--compare-with", "hw", "--host", "local", "--nemesis", "gremlin"),
    ("--compare-with", "hw", "--host", "local", "--stop-at-first"),
    ("--seeds", "5", "--schedule", "x.txt"),
    ("--protocol", "kip999"),
    ("--rule", "nothing=no"),
])  # fmt: skip
def test_wrong_use_is_an_error_before_anything_is_written(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert EXIT_CODES["usage"] == run(tmp_path, *words)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.spark
@pytest.mark.slow
@exhaustive
def test_one_seed_is_checked_on_spark_and_reported_as_its_schedule_plays_again(tmp_path: Path) -> None:
    runs = RandomRuns(target="broker", variant="hw", host=SIM)
    seed = next(
        result.seed
        for result in search(runs, range(100), jobs=1, stop=lambda _: False)
        if result.verdict is Verdict.INVALID and any(each.kind in ORACLES for each in result.anomalies)
    )
    assert EXIT_CODES["invalid"] == run(tmp_path, "--protocol", "hw", "--seed", str(seed))
    (folder,) = tmp_path.glob(f"*-run-{seed}")
    (result,) = json.loads((folder / "suite.json").read_text(encoding="utf-8"))["cells"]
    assert "mismatch" == result["status"]
    assert (folder / "report.html").is_file()
    schedule = read_scenario(folder / f"seed-{seed}-hw" / "schedule.txt")
    again = simulate(sim_player(runs.load_target()), replace(runs.spec(seed), scenario=schedule))
    assert [each["sentence"] for each in result["anomalies"]] == [each.sentence for each in again.anomalies]
    oracles = [each.sentence for each in again.anomalies if each.kind in ORACLES]
    assert oracles and all(sentence in result["reason"] for sentence in oracles)
    assert runs.spec(seed).command == result["rerun"]
