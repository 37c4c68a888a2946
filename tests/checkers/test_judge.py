"""One function judges every run, random or written, by the same rules wherever they are applied."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from checkers.judge import check_in_process, compare, judge
from checkers.verdict import records_of
from harness.model import Anomaly, Kind, Op, Verdict
from harness.run.result import Activity, Status
from harness.run.spec import NO_VIOLATION, RunSpec
from harness.scenario.variant import Variant
from targets import VIRTUAL_HOST as SIM
from tests.checkers.golden import ops_of
from tests.checkers.specs import BROKER, random_spec, written_spec
from tests.checkers.story import Story

ROOT = Path(__file__).parents[2]
PACKAGES = ("harness", "nemesis", "workloads", "checkers", "targets", "benchmarks")


# --- one function ----------------------------------------------------------------------------------------------
def test_no_other_module_makes_a_result() -> None:
    makers = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "RunResult" in text else ():  # to parse all takes seconds
                if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "RunResult":
                    makers.add(str(path.relative_to(ROOT)))
    # The others read results back: from suite.json, and where there is none from what each judged run says.
    assert {"checkers/judge.py", "harness/run/result.py", "harness/suite/described.py"} == makers


@pytest.mark.parametrize("golden", ["lost-bad", "vacuous-bad", "oracles-bad", "unchecked-bad"])
@pytest.mark.parametrize("spec", [random_spec(), random_spec("local")], ids=["sim", "local"])
def test_verdict_is_the_same_wherever_the_rules_were_applied(spec: RunSpec, golden: str) -> None:
    ops = ops_of(golden)
    found = check_in_process(ops)
    assert judge(spec, ops) == judge(spec, ops, anomalies=found)
    assert Verdict.merge(each.verdict for each in found) is judge(spec, ops).verdict


# --- random runs -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", [SIM, "local"])
def test_random_run_in_which_no_fault_bit_is_unknown_on_any_host(host: str) -> None:
    ops = ops_of("vacuous-bad")
    result = judge(random_spec(host), ops)
    assert (Verdict.UNKNOWN, Status.UNKNOWN) == (result.verdict, result.status)
    assert [Kind.VACUOUS] == [each.kind for each in result.anomalies]
    assert result.vacuous and result.vacuous == result.reason
    assert not result.is_finding
    assert Verdict.VALID is judge(random_spec(host), ops_of("vacuous-ok")).verdict


def test_random_run_in_which_an_oracle_saw_a_violation_is_invalid_though_its_end_shows_nothing() -> None:
    result = judge(random_spec(), ops_of("oracles-bad"))
    assert (Verdict.INVALID, Status.MISMATCH, NO_VIOLATION) == (result.verdict, result.status, result.expected)
    assert "Step 9" in result.reason
    assert result.is_finding


@pytest.mark.parametrize(("verdict", "kind", "status"), [
    (Verdict.VALID, Kind.UNPROMISED, Status.AS_EXPECTED),
    (Verdict.PERMITTED, Kind.PERMITTED, Status.AS_EXPECTED),
    (Verdict.UNKNOWN, Kind.UNREADABLE, Status.UNKNOWN),
    (Verdict.HANG, Kind.STUCK, Status.MISMATCH),
    (Verdict.INVALID, Kind.DIVERGED, Status.MISMATCH),
])  # fmt: skip
def test_random_run_is_as_expected_unless_it_shows_a_violation_or_a_hang(
    verdict: Verdict, kind: Kind, status: Status
) -> None:
    found = Anomaly(kind=kind, topic="t", partition=0, sentence="S.")
    result = judge(random_spec(), ops_of("vacuous-ok"), anomalies=[found])
    assert (verdict, status) == (result.verdict, result.status)
    assert ("" if status is Status.AS_EXPECTED else "S.") == result.reason


# --- evidence that a power loss destroyed ----------------------------------------------------------------------
def silent_loss() -> Story:
    """Return a history without broker events: A acknowledges m1, loses power, and leads again without m1."""
    story = Story({"m1": ("x",)}).elected("A", 0).sends("m1").acked("m1", 0)
    story.fault("power-loss", "A").fault("restart", "A").elected("A", 1)
    return story.healed().log("A", []).log("B", []).read().done()


@pytest.mark.parametrize("spec", [written_spec("none"), random_spec(), random_spec("local")])
def test_loss_that_power_loss_keeps_from_being_proven_is_unknown_in_every_run(spec: RunSpec) -> None:
    result = judge(spec, silent_loss().ops)
    assert (Verdict.UNKNOWN, Status.UNKNOWN) == (result.verdict, result.status)
    assert "this cannot be judged, as B had it and could lead" in result.reason
    assert Kind.LOST not in {each.kind for each in result.anomalies}


def test_loss_is_proven_where_brokers_emit_what_they_append() -> None:
    story = Story({"m1": ("x",)}).elected("A", 0).leads("A", 0, 0).sends("m1").append("A", 0, 1, 0, "leader")
    story.append("B", 0, 1, 0, "follower").acked("m1", 0)
    story.fault("power-loss", "A").fault("restart", "A").elected("A", 1).leads("A", 1, 0)
    ops = story.healed().log("A", []).log("B", []).read().done().ops
    assert Kind.LOST in {each.kind for each in judge(written_spec("none"), ops).anomalies}


# --- written scenarios -----------------------------------------------------------------------------------------
def test_written_scenario_is_compared_with_its_exact_outcome() -> None:
    ops = ops_of("lost-bad")
    expected, other = judge(written_spec("lost m2"), ops), judge(written_spec("none"), ops)
    assert (Status.AS_EXPECTED, "", "lost m2") == (expected.status, expected.reason, expected.found)
    assert Status.MISMATCH is other.status
    assert "lost m2" in other.reason
    assert Verdict.INVALID is expected.verdict is other.verdict


def test_result_has_what_decided_the_run_and_how_much_was_done() -> None:
    spec, ops = written_spec("lost m2"), ops_of("lost-bad")
    result = judge(spec, ops, seconds=1.5)
    assert ("written-1", "T", "KIP-101; KIP-279", "hw", 3, 1.5) == (
        result.scenario,
        result.title,
        result.source,
        result.protocol,
        result.seed,
        result.seconds,
    )
    assert (spec.name, spec.command) == (result.run, result.rerun)
    # KIP-101, scenario 1: two kills and two restarts, an election, and five records.
    done = {"kill": 2, "restart": 2}
    sent = {"records_sent": 5, "bytes_sent": 20}
    assert Activity(asked=done, bit=done, elections=1, acked=5, **sent) == result.activity


def test_written_scenario_without_an_expectation_is_not_judged() -> None:
    spec = replace(written_spec("none"), variant=Variant(protocol="kip380"), rules=BROKER.rules("kip380", ()))
    with pytest.raises(AssertionError, match="played without an expectation"):
        judge(spec, ops_of("lost-ok"))


@pytest.mark.parametrize(("kinds", "status"), [
    ([Kind.UNCHECKED], Status.UNKNOWN),
    ([Kind.LOST, Kind.UNCHECKED], Status.UNKNOWN),
    ([Kind.LOST, Kind.DIVERGED, Kind.UNCHECKED], Status.MISMATCH),
])  # fmt: skip
def test_run_with_unchecked_parts_is_unknown_but_nothing_masks_an_unexpected_violation(
    kinds: Sequence[Kind], status: Status
) -> None:
    ops: list[Op] = ops_of("lost-bad")
    found = [Anomaly(kind=kind, topic="t", partition=0, ranges=((3, 5),), sentence=f"{kind}.") for kind in kinds]
    assert status is compare("lost m2", found, records_of(ops))[0]
