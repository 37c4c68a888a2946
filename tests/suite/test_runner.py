"""The suite runner: what it prints, how it judges runs, and what it stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from checkers.judge import judge
from harness.ability import Ability
from harness.java import Java
from harness.model import Anomaly, Kind, UsageError, Verdict
from harness.run.environment import Environment
from harness.run.spec import RunSpec
from harness.run.store import read_anomalies
from harness.run.suite import Suite
from harness.scenario.steps import Inject
from harness.scenario.variant import Variant
from harness.suite import runner as module
from harness.suite.options import Options
from harness.suite.runner import SuiteRunner
from harness.suite.spark_worker import SparkWorker
from harness.target.found import target as target_of
from harness.version import version
from tests.checkers.golden import ops_of
from tests.needs import needs
from tests.suite.cells import spec_of

TARGET = target_of("broker")


@pytest.fixture(autouse=True)
def _java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the search for Java by a fixed result; no Java is started."""
    found = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    monkeypatch.setattr(module, "find_java", lambda: found)


def begin(
    results: Path, *, jobs: int | None = None, folder: str = "", console: Console | None = None
) -> SuiteRunner:
    options = Options(host="local", seed=7, results=results, jobs=jobs, rules=("epochs=yes",))
    return SuiteRunner.begin("some", options, "two runs", console or Console(quiet=True), folder=folder)


class FakeSpark:
    """A fake Spark worker: it returns the given anomalies and records which tables it was asked to check."""

    def __init__(self, found: dict[str, list[Anomaly]]) -> None:
        self.found = found
        self.asked: list[Path] = []

    def check(self, parquet_paths: Sequence[Path]) -> dict[str, list[Anomaly]]:
        self.asked = list(parquet_paths)
        return self.found


def stored(runner: SuiteRunner, spec: RunSpec, golden: str, *, power_tier: str) -> None:
    """Store a golden history as the run of a spec."""
    run = replace(runner.folder.create_run(spec.name), power_tier=power_tier, seconds=1.5)
    run.history.write_text("".join(op.to_json() + "\n" for op in ops_of(golden)), encoding="utf-8")
    runner.runs[spec.name] = (spec, run)


@needs("git")
def test_begin_prints_what_is_played_and_names_the_folder_after_the_seed(tmp_path: Path) -> None:
    console = Console(width=60)
    with console.capture() as printed:
        runner = begin(tmp_path, console=console)
    assert printed.get().startswith(f"seed 7, fencepost {version()}, commit ")
    assert "host local, two runs, Java 17\n" in printed.get()
    assert f"{runner.started:%Y%m%dT%H%M%S}-7" == runner.folder.path.name
    word = begin(tmp_path, folder="run")
    assert f"{word.started:%Y%m%dT%H%M%S}-run-7" == word.folder.path.name


def test_conclusion_judges_every_run_by_what_spark_found_and_keeps_all_of_it(tmp_path: Path) -> None:
    runner = begin(tmp_path)
    specs = [spec_of("kip101-1", Variant(protocol=name), TARGET, 7) for name in ("hw", "kip101")]
    stored(runner, specs[0], "lost-bad", power_tier="watermark")
    stored(runner, specs[1], "lost-ok", power_tier="loop")
    lost = Anomaly(kind=Kind.LOST, topic="t", partition=0, ranges=((3, 5),), sentence="S.")
    spark = FakeSpark({"kip101-1-hw": [lost]})
    suite, report = runner.conclude(cast(SparkWorker, spark), "broker")
    assert [run.path for _, run in runner.runs.values()] == spark.asked
    assert ("some", 7, "loop, watermark", {"epochs": "yes"}) == (
        suite.name,
        suite.seed,
        suite.power_tier,
        suite.rules,
    )
    assert [(Verdict.INVALID, (lost,)), (Verdict.VALID, ())] == [(r.verdict, r.anomalies) for r in suite.results]
    assert suite.results[0] == judge(specs[0], ops_of("lost-bad"), anomalies=[lost], seconds=1.5)
    assert [lost] == read_anomalies(runner.runs["kip101-1-hw"][1])
    assert suite == Suite.read(runner.folder.suite)
    assert report.exists()


@pytest.mark.parametrize(("cores", "jobs", "leaves"), [(2, None, True), (1, None, False), (2, 2, False)])
def test_spark_starts_meanwhile_where_runs_leave_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int | None, leaves: bool
) -> None:
    monkeypatch.setattr(module.os, "cpu_count", lambda: cores)
    environment = cast(Environment, SimpleNamespace(jobs=1))
    assert leaves is begin(tmp_path, jobs=jobs).leaves_a_core(environment)


def test_environment_is_closed_when_playing_in_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise OSError("no")

    calls: list[str] = []
    environment = SimpleNamespace(
        jobs=1,
        name="local",
        lacks=lambda _: "",
        open=lambda _: calls.append("open"),
        close=lambda: calls.append("close"),
    )
    monkeypatch.setattr(module, "play_all", fails)
    with pytest.raises(OSError, match="no"):
        begin(tmp_path).play(
            cast(Environment, environment), [spec_of("kip101-1", Variant(protocol="hw"), TARGET, 7)]
        )
    assert ["open", "close"] == calls


def test_scenario_that_needs_what_its_target_lacks_is_not_played_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both need a request: one for elections, which is there, the other for moves."""
    monkeypatch.setattr(TARGET, "abilities", TARGET.abilities - {Ability.MOVE})
    environment = SimpleNamespace(
        jobs=1, name="local", lacks=lambda _: "", open=lambda _: None, close=lambda: None
    )
    specs = [
        spec_of(name, Variant(protocol="kip380"), TARGET, 7) for name in ("kip101-1-elect", "v3-reassignment")
    ]
    played: list[str] = []
    monkeypatch.setattr(module, "play_all", lambda _, specs, *__: played.extend(each.name for each in specs) or ())
    runner = begin(tmp_path)
    runner.play(cast(Environment, environment), specs)
    assert [specs[0].name] == played
    suite, _ = runner.conclude(cast(SparkWorker, FakeSpark({})), "broker")
    assert "broker has no move" == suite.why_not("v3-reassignment", "kip380")
    with pytest.raises(UsageError, match="v3-reassignment: broker has no move; expected a scenario that"):
        begin(tmp_path, folder="other").play(cast(Environment, environment), specs[1:])


def test_scenario_that_takes_the_power_of_a_service_is_not_played_where_the_host_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "host local: power tier watermark"
    environment = SimpleNamespace(
        jobs=1,
        name="local",
        lacks=lambda ability: why if ability is Ability.SERVICE_POWER_LOSS else "",
        open=lambda _: None,
        close=lambda: None,
    )
    specs = [hitting(fault) for fault in ("kill", "power-loss")]
    played: list[str] = []
    monkeypatch.setattr(module, "play_all", lambda _, specs, *__: played.extend(each.name for each in specs) or ())
    runner = begin(tmp_path)
    runner.play(cast(Environment, environment), specs)
    assert [specs[0].name] == played
    assert {"power-loss": {"hw": why}} == runner.unplayed
    with pytest.raises(UsageError, match=f"power-loss: {why}; expected a scenario that can be played here"):
        begin(tmp_path, folder="other").play(cast(Environment, environment), specs[1:])


def hitting(fault: str) -> RunSpec:
    """Return the run of a scenario that ends with this fault of a service, and has its name."""
    spec = spec_of("kip101-1", Variant(protocol="hw"), TARGET, 7)
    step = replace(spec.scenario.steps[-1], act=Inject(fault, ("service",)))
    steps = (*spec.scenario.steps, step)
    return replace(spec, scenario=replace(spec.scenario, name=fault, steps=steps))


@pytest.mark.parametrize("host", ["poor", "rich"])
def test_suite_is_refused_before_its_first_run_where_machines_lack_what_a_fault_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    calls: list[str] = []
    environment = SimpleNamespace(
        jobs=1,
        name="local",
        open=lambda _: calls.append("open"),
        lacks=lambda ability: f"no {ability}" if host == "poor" and ability is Ability.DISK_FULL else "",
        close=lambda: calls.append("close"),
    )

    def play(*_: Any) -> list[Any]:
        calls.append("play")
        return []

    monkeypatch.setattr(module, "play_all", play)
    spec = spec_of("kip101-1", Variant(protocol="hw"), TARGET, 7)
    step = replace(spec.scenario.steps[-1], act=Inject("disk-full", ("A",)))
    spec = replace(spec, scenario=replace(spec.scenario, steps=(*spec.scenario.steps, step)))
    if host == "rich":
        begin(tmp_path).play(cast(Environment, environment), [spec])
        assert ["open", "play", "close"] == calls
        return
    with pytest.raises(UsageError, match="fault disk-full: no disk-full"):
        begin(tmp_path).play(cast(Environment, environment), [spec])
    assert ["open", "close"] == calls
