"""`fencepost test-kafka`: its default scenarios, and the releases that it rejects."""

from __future__ import annotations

import argparse

import pytest

from harness.cli.main import main
from harness.cli.suites import scenario_files
from harness.model import EXIT_CODES
from targets.kafka_commands import suite
from targets.kafka_commands.pairs import PATTERNS


def scenarios(*words: str) -> list[str]:
    parser = argparse.ArgumentParser()
    suite.configure(parser)
    return [scenario.name for scenario in suite._scenarios(parser.parse_args(words))]


def test_scenarios_that_both_can_play_are_played_and_any_other_that_is_asked_for() -> None:
    assert list(scenario_files(PATTERNS)) == scenarios()
    (other, *_) = (name for name in scenario_files(("*",)) if name not in scenario_files(PATTERNS))
    assert [other] == scenarios("--scenario", other)


def test_unknown_release_is_an_error_that_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXIT_CODES["usage"] == main(["test-kafka", "--release", "1.1.0"])
    assert "unknown release of Apache Kafka '1.1.0': expected one of" in capsys.readouterr().err
