"""`fencepost scenarios` prints each scenario with its title, its sources and its expectation for each protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.cli.scenarios import describe
from harness.model import EXIT_CODES
from harness.suite.scenario_files import read_scenario
from tests.target.own import make_target
from workloads import SCENARIOS


def test_every_scenario_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXIT_CODES["valid"] == main(["scenarios"])
    listed = capsys.readouterr().out.splitlines()
    for path in SCENARIOS.glob("*.txt"):
        assert any(line.startswith(f"{path.stem}  ") for line in listed)


def test_scenario_is_printed_with_its_sources_and_one_line_for_each_outcome(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert EXIT_CODES["valid"] == main(["scenarios", "kip101-1"])
    lines = capsys.readouterr().out.splitlines()
    assert "kip101-1  A follower restarts with a lagging high watermark, and the leader dies" == lines[0]
    assert "  source  Why does Kafka need the leader epoch?, scenario one" in lines
    assert any(line.startswith("  lost m2  hw") for line in lines)
    assert any(line.startswith("  none  kip101, kip101-text, kip279") for line in lines)


def test_unknown_scenario_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXIT_CODES["usage"] == main(["scenarios", "kip101-4"])
    assert "unknown scenario 'kip101-4': expected one of" in capsys.readouterr().err


def test_every_variant_of_a_scenario_is_in_exactly_one_line() -> None:
    scenario = read_scenario(SCENARIOS / "kip101-2b.txt")
    lines = [line.plain for line in describe(scenario)]
    for variant, outcome in scenario.expectations.items():
        mine = [line for line in lines if variant in line.rpartition("  ")[2].split(", ")]
        assert [True] == [line.startswith(f"  {outcome}  ") for line in mine]


def test_scenario_of_a_target_of_ones_own_is_listed_with_its_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_target(tmp_path / "mine") / "scenarios"
    folder.mkdir()
    text = (
        "title T\nsource S\nnodes A B replicas, C controller\nrecords m1 1\nproduce m1 acks=all\nexpect hw: none\n"
    )
    (folder / "alone.txt").write_text(text)
    assert EXIT_CODES["valid"] == main(["scenarios", "alone", "--targets", str(tmp_path / "mine")])
    assert ["alone  T", "  source  S", "  none  hw"] == capsys.readouterr().out.splitlines()
    assert EXIT_CODES["usage"] == main(["scenarios", "alone"])
