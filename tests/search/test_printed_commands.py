"""Every printed command plays what it stands under: read by its own parser, it gives the run's spec again."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import play
from harness.cli.main import _parser
from harness.cli.run import _refuse, runs_of
from harness.cli.suites import asked_target, specs_of
from harness.random_schedule.profile import ALL
from harness.run.spec import RunSpec
from harness.scenario.text import text_of
from harness.search.long_run import again_of
from harness.search.random_runs import RandomRuns
from harness.search.shrink.subject import Subject
from harness.suite.options import Options
from targets import VIRTUAL_HOST as SIM
from targets.broker_commands import kip101
from targets.broker_target.target import TARGET
from tests.package import sources

SEED = 7
RUNS = {
    "sim": RandomRuns(target="broker", variant="kip380", host=SIM),
    "mutant": RandomRuns(target="broker", variant="kip320+fence_fetch=no", host=SIM),
    "rules": RandomRuns(
        target="broker", variant="kip101", host="local", changes=("epochs=yes", "truncate_to=high_watermark")
    ),
    "nemeses": RandomRuns(target="broker", variant="hw", host="docker", nemeses=("kill", "hold")),
    "narrow": RandomRuns(target="broker", variant="kip279", host=SIM, narrow=True),
    "alike": RandomRuns(target="broker", variant="kip279-2.0.1", host="local", alike=True),
    "workload": RandomRuns(
        target="broker", variant="kip320", host="local", workload="tail", power_tier="watermark"
    ),
    "stop": RandomRuns(target="broker", variant="kip101-text", host=SIM, stop_at_violation=True),
    "kafka": RandomRuns(target="kafka", variant="3.9.1", host="local", nemeses=("kill",), power_tier="loop"),
    "chaos": RandomRuns(
        target="broker", variant="kip279", host="local", seconds=600.0, workload="append", power_tier="loop"
    ),
    "chaos-mutant": RandomRuns(
        target="broker",
        variant="kip320",
        host="docker",
        changes=("fence_fetch=no",),
        seconds=123.40625,
        workload="batches",
        nemeses=("kill", "power-loss"),
        stop_at_violation=True,
    ),
    "chaos-kafka": RandomRuns(target="kafka", variant="2.1.1@1.1", host="local", seconds=20.0, workload="append"),
}


def read(command: str) -> argparse.Namespace:
    """Read a command as `fencepost` does, with its refusals."""
    words = shlex.split(command)
    assert "fencepost" == words[0]
    arguments = _parser(words[1:]).parse_args(words[1:])
    if arguments.command == "run":
        _refuse(arguments)
    return arguments


def spec_of_run(command: str) -> RunSpec:
    """Return what `fencepost run` plays for a command."""
    arguments = read(command)
    return runs_of(arguments).spec(Options.of(arguments).seed)


def spec_of_suite(command: str) -> RunSpec:
    """Return the one run that a command of suites plays."""
    arguments = read(command)
    selection = {"test-kip101": kip101.SELECTION, "play": play.SELECTION}[arguments.command]
    target, protocols = asked_target(arguments)
    (spec,) = specs_of(selection, target, Options.of(arguments), arguments.scenario, protocols)
    return spec


@pytest.mark.parametrize("name", RUNS)
def test_random_run_is_drawn_again(name: str) -> None:
    spec = RUNS[name].spec(SEED)
    assert spec == spec_of_run(spec.command)


@pytest.mark.parametrize("name", [name for name, runs in RUNS.items() if runs.seconds is not None])
def test_steps_of_a_long_run_are_played_under_its_protocol_rules_and_target(name: str, tmp_path: Path) -> None:
    """The page of chaos named no protocol: what a run of kip279 had executed was played under kip380."""
    executed = tmp_path / "executed.txt"
    spec = RUNS[name].spec(SEED)
    executed.write_text(text_of(RandomRuns(target="broker", variant="kip380", host=SIM).spec(SEED).scenario))
    (same, _), (steps, about) = again_of(spec, executed)
    assert spec == spec_of_run(same)
    played = spec_of_run(steps)
    assert (spec.target, spec.variant, spec.changes, spec.rules) == (
        played.target,
        played.variant,
        played.changes,
        played.rules,
    )
    assert (spec.seed, str(executed), spec.stop_at_violation) == (
        played.seed,
        played.schedule,
        played.stop_at_violation,
    )
    assert (SIM if spec.target == "broker" else spec.host) == played.host
    assert (played.host == SIM) == ("simulator" in about)


@pytest.mark.parametrize("nemeses", [(ALL,), ("kill", "hold")])
def test_schedule_of_a_run_is_played_without_what_it_was_drawn_from(
    nemeses: tuple[str, ...], tmp_path: Path
) -> None:
    """`run` refuses --schedule with --nemesis, --workload and --narrow."""
    runs = RandomRuns(target="broker", variant="kip279", host=SIM, nemeses=nemeses, narrow=True)
    drawn = runs.spec(SEED)
    file = tmp_path / "schedule.txt"
    file.write_text(text_of(drawn.scenario))
    again = replace(drawn, schedule=str(file))
    played = spec_of_run(again.command)
    assert (drawn.variant, drawn.rules, str(file), SEED) == (
        played.variant,
        played.rules,
        played.schedule,
        played.seed,
    )
    assert text_of(drawn.scenario).splitlines()[1:] == text_of(played.scenario).splitlines()[1:]


@pytest.mark.parametrize("variant", ["hw", "kip320+fence_fetch=no"])
def test_shrunk_schedule_is_played_under_the_variant_that_it_breaks(variant: str, tmp_path: Path) -> None:
    protocol, _, change = variant.partition("+")
    rules = TARGET.rules(protocol, (change,) if change else ())
    subject = Subject.of(protocol, rules, seed=SEED, name="shrunk", alike=False)
    scenario = RUNS["sim"].spec(SEED).scenario
    file = tmp_path / "shrunk.txt"
    file.write_text(text_of(scenario))
    spec = replace(subject.spec(scenario), schedule=str(file))
    played = spec_of_run(spec.command)
    assert (SIM, spec.variant, spec.rules, SEED) == (played.host, played.variant, played.rules, played.seed)


SUITES = [
    "test-kip101 --scenario kip101-1 --protocol hw --seed 7 --host local",
    "test-kip101 --scenario kip101-2 --protocol kip101 --seed 7 --rule truncate_to=high_watermark --host sim",
    "play --scenario kip101-1 --protocol kip320+truncate_to=high_watermark --seed 7 --host docker",
    "play --scenario kip101-1 --target kafka:3.9.1@0.10.2 --seed 7 --power-tier watermark --stop-at-violation",
]


@pytest.mark.parametrize("words", SUITES)
@pytest.mark.parametrize("checkout", [True, False])
def test_cell_is_played_again_by_make_and_without_a_makefile(
    words: str, checkout: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of_suite(f"fencepost {words}")
    monkeypatch.setattr("harness.run.spec.in_checkout", lambda: checkout)
    command = spec.command
    if checkout:
        done = subprocess.run(
            [*shlex.split(command), "-n", "--no-print-directory"],
            cwd=sources.ROOT,
            # A make in which this test is played hands its flags and variables to all below it.
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        )
        (line,) = (line for line in done.stdout.splitlines() if line.startswith(".venv/bin/fencepost "))
        command = line.removeprefix(".venv/bin/")
    assert spec == spec_of_suite(command)
