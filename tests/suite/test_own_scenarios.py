"""A target's folder brings scenarios and expectations; shared files need not name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.suites import Selection, specs_of
from harness.model import UsageError
from harness.run.spec import RunSpec
from harness.search.random_runs import RandomRuns
from harness.suite.options import Options
from harness.suite.scenario_files import expectations_again, files_for, read_for
from harness.target.found import also_in, target
from tests.target.own import TARGET, make_target
from workloads import SCENARIOS

# Our broker in other words: three versions of its own names.
VERSIONS = """
    def protocols(self):
        return {"1": super().rules("kip380", ()), "0": super().rules("hw", ())}

    def rules(self, protocol, changes):
        return super().rules({"1": "kip380", "0": "hw"}.get(protocol, protocol), changes)

    def traits(self, protocol, changes):
        return super().traits({"1": "kip380", "0": "hw"}.get(protocol, protocol), changes)
"""
OWN = """
title T
source S
nodes A B replicas, C controller
records m1 1..4
produce m1 acks=all
under 0: await isr = A B
expect 1: none
expect 1+fence_fetch=no: none
"""
SAID = "as 1: kip380\nscenario kip101-1\nexpect 0: lost m2\nexpect 1: none\n"
SELECTION = Selection(name="test-mine", make="scenarios", patterns=("*",))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = make_target(tmp_path / "mine", TARGET.replace("\n\n\nTARGET =", f"\n{VERSIONS}\n\nTARGET ="))
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "alone.txt").write_text(OWN)
    (folder / "expectations.txt").write_text(SAID)
    return folder


def specs(*names: str) -> list[RunSpec]:
    options = Options(host="sim", seed=1, results=Path("results"))
    return specs_of(SELECTION, target("mine"), options, names, ())


def test_suite_of_a_target_is_its_own_scenarios_and_the_shared_ones_that_it_speaks_of(mine: Path) -> None:
    with also_in([str(mine)]):
        found = {(spec.scenario.name, str(spec.variant)): spec.expectation for spec in specs()}
        assert {
            ("kip101-1", "1"): "none",
            ("kip101-1", "0"): "lost m2",
            ("alone", "1"): "none",
            ("alone", "1+fence_fetch=no"): "none",
        } == found
        (one, *_) = specs("kip101-1")
        said = f"--target mine --targets {mine} "
        assert said in one.command.replace("TARGET=mine", "--target mine").replace("TARGETS=", "--targets ") + " "
        assert "alone" in files_for("mine", ("a*",))
        assert "alone" not in files_for("broker", ("*",))


def test_run_of_a_stored_suite_is_expected_to_show_the_same_again_while_its_folder_is_there(mine: Path) -> None:
    with also_in([str(mine)]):
        assert {"0": "lost m2", "1": "none"} == expectations_again("mine", "kip101-1")
        assert {"1", "1+fence_fetch=no"} == expectations_again("mine", "alone").keys()
    assert {} == expectations_again("mine", "alone")
    assert "0" not in expectations_again("mine", "kip101-1")


def test_schedule_of_a_target_is_read_with_its_own_versions(mine: Path) -> None:
    with also_in([str(mine)]):
        runs = RandomRuns(target="mine", variant="1", host="sim", schedule=mine / "scenarios" / "alone.txt")
        assert "none" == runs.spec(3).expectation
        shared = RandomRuns(target="mine", variant="0", host="sim", schedule=SCENARIOS / "kip101-1.txt")
        assert "lost m2" == shared.spec(3).expectation
        other = RandomRuns(target="mine", variant="0", host="sim", schedule=SCENARIOS / "kip101-2.txt")
        with pytest.raises(UsageError, match="expect"):
            other.spec(3)


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("expectations.txt", "scenario kip101\n", "no scenario 'kip101'; expected a shared one"),
        (
            "expectations.txt",
            "scenario kip101-1\nexpect 2: none\n",
            "expectations.txt:2: protocol '2'; expected one",
        ),
        ("scenarios/alone.txt", OWN.replace("under 0", "under 7"), "protocol '7'; expected one of 1, 0, hw, "),
        ("scenarios/kip101-2.txt", OWN, "scenario kip101-2 is a shared one; expected another name"),
    ],
)
def test_wrong_file_of_a_target_is_told_and_harms_no_other(mine: Path, file: str, text: str, says: str) -> None:
    (mine / file).write_text(text)
    with also_in([str(mine)]):
        with pytest.raises(UsageError, match=says):
            specs()
        assert read_for("broker", SCENARIOS / "kip101-1.txt").expectations


def test_target_of_which_nothing_is_expected_is_told(tmp_path: Path) -> None:
    with (
        also_in([str(make_target(tmp_path / "mine"))]),
        pytest.raises(UsageError, match=r"no scenario of .* for mine"),
    ):
        specs()
