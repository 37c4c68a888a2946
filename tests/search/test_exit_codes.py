"""A command that plays one run exits as its table says: by the expectation if there is one, else the verdict."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.java import Java
from harness.model import EXIT_CODES, EXIT_OF_VERDICT, Verdict
from harness.run.result import RunResult, Status
from harness.run.spec import NO_VIOLATION
from harness.search import single
from harness.suite.exit_codes import of_run
from tests.search.results import result_of
from tests.search.test_single import fake_worker
from workloads import SCENARIOS

# Protocol, what the file expects of it, a step that is put in front, the status that is printed, the code.
CASES = [
    ("kip380", "none", "", Status.AS_EXPECTED, "valid"),
    ("kip380", "lost m2", "", Status.MISMATCH, "invalid"),
    ("hw", "lost m2", "", Status.AS_EXPECTED, "valid"),
    ("hw", "none", "", Status.MISMATCH, "invalid"),
    ("kip380", "none", "await log A = end(m2)", Status.UNKNOWN, "unknown"),
    ("kip380", "lost m2", "await log A = end(m2)", Status.UNKNOWN, "unknown"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scenario_of_a_user_exits_as_the_table_that_it_prints(
    case: tuple[str, str, str, Status, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    protocol, expected, step, status, word = case
    java = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    monkeypatch.setattr("harness.suite.runner.find_java", lambda: java)
    monkeypatch.setattr(single, "spark_worker", fake_worker)
    monkeypatch.setattr("harness.limits.CONDITION_WAIT_S_MAX", 1.0)
    text = re.sub(
        r"^expect .*\n", "", (SCENARIOS / "kip101-1.txt").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    text = text.replace("produce m1", f"{step}\nproduce m1", 1) + f"\nexpect {protocol}: {expected}\n"
    file = tmp_path / "mine.txt"
    file.write_text(text, encoding="utf-8")
    words = ["run", "--host", "sim", "--protocol", protocol, "--schedule", str(file), "--seed", "7"]
    code = main([*words, "--results", str(tmp_path / "results")])
    printed = capsys.readouterr().out
    assert status.value in printed, printed
    assert EXIT_CODES[word] == code, printed


def played(expected: str, status: Status, verdict: Verdict) -> RunResult:
    return replace(result_of(verdict), expected=expected, status=status)


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("status", Status)
def test_expectation_decides_where_there_is_one(verdict: Verdict, status: Status) -> None:
    by_status = {Status.AS_EXPECTED: "valid", Status.UNKNOWN: "unknown", Status.MISMATCH: "invalid"}
    assert EXIT_CODES[by_status[status]] == of_run(played("none", status, verdict))
    assert EXIT_OF_VERDICT[verdict] == of_run(played(NO_VIOLATION, status, verdict))


def test_what_could_not_be_taken_down_is_at_least_unknown() -> None:
    for expected in ("none", NO_VIOLATION):
        fine = played(expected, Status.AS_EXPECTED, Verdict.VALID)
        wrong = played(expected, Status.MISMATCH, Verdict.INVALID)
        assert (3, 4) == (of_run(fine, ["left"]), of_run(wrong, ["left"]))
