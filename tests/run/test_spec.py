"""A spec determines a run, the name of its folder, and the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.run.player import setup_event
from harness.run.spec import RunSpec
from harness.scenario.file import parse
from harness.scenario.text import text_of
from harness.scenario.variant import Variant
from harness.search.random_runs import RandomRuns
from targets import VIRTUAL_HOST as SIM
from tests.checkers.specs import random_spec, written_spec
from tests.faults import NEMESES

MUTANT = Variant(protocol="kip320", changes=("fence_fetch=no",))


def test_run_is_named_after_its_scenario_and_variant() -> None:
    assert "written-1-hw" == written_spec("none").name
    assert "written-1-kip320+fence_fetch=no" == replace(written_spec("none"), variant=MUTANT).name
    assert ("seed-3-kip101", 3) == (random_spec().name, random_spec().seed)


def test_run_is_random_where_its_schedule_was_drawn() -> None:
    assert (False, True) == (written_spec("none").random, random_spec().random)


def test_expectation_is_the_one_of_the_variant_that_is_played() -> None:
    spec = written_spec("lost m1")
    assert ("lost m1", None) == (spec.expectation, replace(spec, variant=MUTANT).expectation)


@pytest.mark.parametrize(("spec", "command"), [
    (random_spec(), "fencepost run --host sim --protocol kip101 --seed 3"),
    (random_spec("local"), "fencepost run --host local --protocol kip101 --seed 3"),
    (replace(random_spec(), variant=MUTANT), "fencepost run --host sim --protocol kip320+fence_fetch=no --seed 3"),
    (
        replace(random_spec(), schedule="my schedule.txt", changes=("a=b",)),
        "fencepost run --host sim --protocol kip101 --rule a=b --seed 3 --schedule 'my schedule.txt'",
    ),
    (replace(random_spec(), narrow=True), "fencepost run --host sim --protocol kip101 --seed 3 --narrow"),
    (
        replace(random_spec(), stop_at_violation=True),
        "fencepost run --host sim --protocol kip101 --seed 3 --stop-at-violation",
    ),
    (
        replace(written_spec("none"), stop_at_violation=True),
        "make scenarios SCENARIO=written-1 PROTOCOL=hw SEED=3 HOST=local ARGS=--stop-at-violation",
    ),
    (written_spec("none"), "make scenarios SCENARIO=written-1 PROTOCOL=hw SEED=3 HOST=local"),
    (
        replace(random_spec("ssh"), machines="my hosts.toml"),
        "fencepost run --host ssh --hosts 'my hosts.toml' --protocol kip101 --seed 3",
    ),
    (
        replace(written_spec("none"), host="ssh", machines="hosts.toml"),
        "make scenarios SCENARIO=written-1 PROTOCOL=hw SEED=3 HOST=ssh HOSTS=hosts.toml",
    ),
    (
        replace(written_spec("none"), target="kafka", changes=("a=b", "c=d e"), power_tier="loop"),
        "make scenarios SCENARIO=written-1 PROTOCOL=hw SEED=3 HOST=local TARGET=kafka RULES='a=b c=d e' TIER=loop",
    ),
])  # fmt: skip
def test_command_repeats_the_run_as_a_shell_reads_it(spec: RunSpec, command: str) -> None:
    assert command == spec.command
    assert shlex.split(command)


def test_history_begins_with_all_that_decides_the_run() -> None:
    spec = replace(random_spec(), variant=MUTANT)
    setup = setup_event(spec, traits=spec.traits, power_tier="none", sends_once=True)
    assert ("seed-3", "kip320", ("fence_fetch=no",), spec.rules) == (
        setup.scenario,
        setup.protocol,
        setup.changes,
        setup.rules,
    )
    assert ("sim", "broker", 3, True, spec.command) == (
        setup.host,
        setup.target,
        setup.seed,
        setup.random,
        setup.again,
    )
    read = parse(spec.scenario.name, setup.schedule or "", "setup", NEMESES)
    assert [step.text for step in spec.scenario.steps] == [step.text for step in read.steps]
    assert spec.scenario.settings == read.settings


def test_schedule_from_a_file_is_played_in_place_of_the_seeds_own(tmp_path: Path) -> None:
    runs = RandomRuns(target="broker", variant="hw", host=SIM)
    path = tmp_path / "mine.txt"
    path.write_text(text_of(runs.spec(8).scenario), encoding="utf-8")
    spec = replace(runs, schedule=path).spec(9)
    assert ([step.text for step in runs.spec(8).scenario.steps], 9, str(path)) == (
        [step.text for step in spec.scenario.steps],
        spec.seed,
        spec.schedule,
    )
