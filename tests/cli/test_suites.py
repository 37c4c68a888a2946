"""The runs that the options for scenarios, protocols and mutants select, and the default selection."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from harness.ability import Ability
from harness.cli import play, suites
from harness.cli.suites import Selection, asked_target, specs_of, variants_of
from harness.model import EXIT_CODES, UsageError, Verdict
from harness.run.result import Status
from harness.run.spec import RunSpec
from harness.scenario.file import parse
from harness.suite import scenario_files
from harness.suite.exit_codes import of_suite
from harness.suite.options import Options
from harness.target.found import target as target_of
from harness.target.target import Target
from harness.target.traits import Traits
from targets.broker_commands import kip101
from tests.faults import NEMESES
from tests.report.samples import sample_result

BROKER: Target = target_of("broker")
TEXT = """
title T
source S
nodes A B replicas, C controller
records m1 1..4
# story
produce m1 acks=all
expect kip320+fence_fetch=no: lost m1
expect kip380, hw, kip320: none
"""
ALL = Selection(name="all", make="scenarios", patterns=("*",))


class Releases:
    """A target whose protocols are the releases of another system."""

    name = "kafka"
    abilities = frozenset({Ability.CONTROLLER, Ability.MEMBERS})

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return two releases; the scenario has an expectation for the model of one."""
        return {"2.0.0": {}, "2.1.1": {}}

    def rules(self, protocol: str, _changes: tuple[str, ...]) -> Mapping[str, str]:
        """Return the protocol's rules unchanged."""
        return self.protocols()[protocol]

    def traits(self, protocol: str, _changes: tuple[str, ...]) -> Traits:
        """Return which protocol of ours a release corresponds to."""
        return Traits(models={"2.0.0": "kip279", "2.1.1": "kip320"}[protocol])


@pytest.fixture
def scenarios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two scenarios."""
    monkeypatch.setattr(scenario_files, "SCENARIOS", tmp_path)
    (tmp_path / "a-1.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "b-1.txt").write_text(TEXT.replace("kip380, hw, kip320", "kip101"), encoding="utf-8")
    return tmp_path


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    suites.configure(parser)
    return parser.parse_args(["--seed", "5", *words])


def specs(*words: str, selection: Selection = ALL) -> list[RunSpec]:
    arguments = parsed(*words)
    target, protocols = asked_target(arguments)
    return specs_of(selection, target, Options.of(arguments), arguments.scenario or (), protocols)


def names(*words: str, selection: Selection = ALL) -> list[str]:
    return [spec.name for spec in specs(*words, selection=selection)]


def test_scenario_is_played_under_all_that_it_names_in_the_order_of_the_ladder_mutants_last() -> None:
    found = variants_of(parse("s", TEXT, "s.txt", NEMESES), BROKER, ())
    assert ["hw", "kip320", "kip380", "kip320+fence_fetch=no"] == list(map(str, found))


def test_target_may_name_its_protocol() -> None:
    words = ("--target", "kafka:2.1.1@1.1", "--protocol", "1.1.1", "--set", "a.b=1")
    target, protocols = asked_target(parsed(*words))
    assert ("kafka", ("2.1.1@1.1", "1.1.1")) == (target.name, protocols)
    assert ("a.b=1",) == Options.of(parsed(*words)).rules
    assert ("broker", ()) == (asked_target(parsed())[0].name, asked_target(parsed())[1])


def test_columns_leave_mutants_and_other_protocols_out() -> None:
    found = variants_of(parse("s", TEXT, "s.txt", NEMESES), BROKER, ("kip320", "kip101", "hw"))
    assert ["hw", "kip320"] == list(map(str, found))


def test_release_is_played_where_the_scenario_says_something_of_what_it_models() -> None:
    target = cast(Target, Releases())
    assert ["2.1.1"] == list(map(str, variants_of(parse("s", TEXT, "s.txt", NEMESES), target, ())))
    assert ["2.1.1"] == list(map(str, variants_of(parse("s", TEXT, "s.txt", NEMESES), target, ("kip320",))))
    assert [] == variants_of(parse("s", TEXT, "s.txt", NEMESES), target, ("hw",))


@pytest.mark.usefixtures("scenarios")
def test_everything_is_played_when_nothing_is_asked_for() -> None:
    assert [
        *("a-1-hw", "a-1-kip320", "a-1-kip380", "a-1-kip320+fence_fetch=no"),
        *("b-1-kip101", "b-1-kip320+fence_fetch=no"),
    ] == names()


@pytest.mark.usefixtures("scenarios")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--protocol", "kip101"), ["b-1-kip101"]),
        (("--protocol", "kip320+fence_fetch=no", "--scenario", "a-1"), ["a-1-kip320+fence_fetch=no"]),
        (("--scenario", "b-1"), ["b-1-kip101", "b-1-kip320+fence_fetch=no"]),
        (("--protocol", "kip380", "--protocol", "hw", "--scenario", "a-1"), ["a-1-kip380", "a-1-hw"]),
    ],
)
def test_what_is_asked_for_is_played_and_no_more(words: tuple[str, ...], expected: list[str]) -> None:
    assert expected == names(*words)


@pytest.mark.usefixtures("scenarios")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("--scenario", "a-1", "--protocol", "kip101"),
            "scenario a-1: no expectation for protocol kip101; expected a",
        ),
        (("--protocol", "kip279"), "no scenario of * has an expectation for kip279; expected one that does"),
        (("--protocol", "kip999"), "unknown protocol 'kip999'"),
        (("--protocol", "kip320+fence=no"), "rule 'fence': no such rule"),
        (
            ("--protocol", "kip320+fence"),
            "option --protocol: 'kip320+fence'; expected PROTOCOL or PROTOCOL+RULE=VALUE",
        ),
        (("--scenario", "c-1"), "unknown scenario 'c-1': expected one of a-1, b-1"),
    ],
)
def test_what_cannot_be_played_is_an_error_that_says_why(words: tuple[str, ...], error: str) -> None:
    with pytest.raises(UsageError) as raised:
        specs(*words)
    assert error in str(raised.value)


@pytest.mark.usefixtures("scenarios")
def test_rule_that_is_changed_for_all_leaves_each_its_own_expectation() -> None:
    spec = specs("--scenario", "a-1", "--rule", "fence_fetch=yes")[-1]
    assert ("lost m1", "yes") == (spec.expectation, spec.rules["fence_fetch"])


@pytest.mark.usefixtures("scenarios")
def test_patterns_choose_the_files() -> None:
    b = Selection(name="b", make="b", patterns=("b-*",))
    assert ["b-1-kip101"] == names("--protocol", "kip101", selection=b)


def test_first_command_plays_kip_101_and_kafka_6361_under_four_protocols() -> None:
    found = names(selection=kip101.SELECTION)
    assert {"kip101-1-hw", "kip101-3-kip320"} <= set(found)
    assert all(name.startswith(("kip101-", "kafka-6361-")) for name in found)
    assert {"hw", "kip101", "kip279", "kip320"} == {name.rsplit("-", 1)[1] for name in found}


def test_play_plays_every_scenario_and_mutants_too() -> None:
    found = specs(selection=play.SELECTION)
    of_kafka = {"upgrade-releases"}  # jars are installed there, and no protocol of ours
    assert {path.stem for path in scenario_files.SCENARIOS.glob("*.txt")} - of_kafka == {
        spec.scenario.name for spec in found
    }
    assert any("+" in spec.name for spec in found)


@pytest.mark.usefixtures("scenarios")
def test_run_is_played_again_by_a_command_that_a_shell_reads_as_it_is() -> None:
    words = ("--host", "sim", "--rule", "epochs=yes", "--protocol", "kip320+fence_fetch=no")
    assert (
        "make scenarios SCENARIO=a-1 PROTOCOL=kip320+fence_fetch=no SEED=5 HOST=sim RULES=epochs=yes"
        == specs(*words)[0].command
    )
    assert specs("--power-tier", "loop", "--scenario", "a-1")[0].command.endswith(" HOST=local TIER=loop")


@pytest.mark.parametrize(("statuses", "word"), [
    ([Status.AS_EXPECTED, Status.AS_EXPECTED], "valid"),
    ([Status.AS_EXPECTED, Status.UNKNOWN], "unknown"),
    ([Status.UNKNOWN, Status.MISMATCH, Status.AS_EXPECTED], "invalid"),
    ([], "unknown"),
])  # fmt: skip
def test_exit_code_is_that_of_the_run_that_is_least_as_expected(statuses: list[Status], word: str) -> None:
    results = [sample_result("kip101-1", "hw", status=status, verdict=Verdict.INVALID) for status in statuses]
    assert EXIT_CODES[word] == of_suite(results)
