"""The options for the host, the ports, the seed and the number of parallel runs."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from harness.ending import Parser
from harness.model import UsageError
from harness.suite.options import RANDOM_SEED_MAX, Options, configure_options, configure_stop, ports


def options(*words: str) -> Options:
    parser = Parser()
    configure_options(parser, ["local"])
    return Options.of(parser.parse_args(words))


@pytest.mark.parametrize(
    ("text", "expected"), [("20000-20999", range(20000, 21000)), ("1-65535", range(1, 65536))]
)
def test_ports_are_a_range_with_both_ends(text: str, expected: range) -> None:
    assert expected == ports(text) == options("--ports", text).ports


@pytest.mark.parametrize("text", ["", "1", "0-5", "9-5", "1-65536", "a-b", "1-2-3"])
def test_ports_that_are_no_range_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected FIRST-LAST"):
        ports(text)


@pytest.mark.parametrize("text", ["0", "-1", "two", "", "513", "9" * 5000])
def test_jobs_are_a_number_from_one(text: str) -> None:
    assert (2, None) == (options("--jobs", "2").jobs, options().jobs)
    with pytest.raises(UsageError, match=r"--jobs: .*: expected a whole number from 1 to 512"):
        options("--jobs", text)


@pytest.mark.parametrize("text", ["-1", "1.5", "", "0x10", str(2**53 + 1), "9" * 5000])
def test_seed_is_a_number_that_every_reader_of_the_results_can_hold(text: str) -> None:
    with pytest.raises(UsageError, match=r"--seed: .*: expected a whole number from 0 to 9007199254740992"):
        options("--seed", text)


def test_seed_is_the_one_that_was_asked_for_or_chance() -> None:
    assert 0 == options("--seed", "0").seed
    assert {True} == {0 <= options().seed < RANDOM_SEED_MAX for _ in range(9)}


def test_options_without_words_are_those_of_the_help() -> None:
    found = options("--seed", "1")
    assert Options(host="local", seed=1, results=Path("results")) == found


def test_runs_stop_at_a_violation_only_where_a_command_has_the_option_and_is_asked_to() -> None:
    parser = Parser()
    configure_options(parser, ["local"])
    configure_stop(parser)
    asked, not_asked = parser.parse_args(["--stop-at-violation"]), parser.parse_args([])
    assert (True, False) == (Options.of(asked).stop_at_violation, Options.of(not_asked).stop_at_violation)
    assert not options().stop_at_violation


def test_rules_are_those_of_a_command_that_has_them() -> None:
    parser = Parser()
    configure_options(parser, ["local"])
    parser.add_argument("--rule", action="append")
    assert () == Options.of(parser.parse_args([])).rules
    with pytest.raises(UsageError, match="option --rule: rule 'a' is changed twice; expected each once"):
        Options.of(parser.parse_args(["--rule", "a=b", "--rule", "a=c"]))
    assert ("a=b", "c=d") == Options.of(parser.parse_args(["--rule", "a=b", "--rule", "c=d"])).rules
