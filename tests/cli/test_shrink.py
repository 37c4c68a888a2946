"""`fencepost shrink` prints and writes what is left of a schedule; a search shrinks its first findings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.search.shrink.signature import Outcome, Signature
from harness.search.shrink.subject import Subject
from harness.suite.scenario_files import read_scenario
from tests.kept import exhaustive

FINDING = Path(__file__).parents[1] / "search/shrink/findings/hw-2.txt"


@pytest.fixture
def schedule(tmp_path: Path) -> Path:
    path = tmp_path / "schedule.txt"
    path.write_bytes(FINDING.read_bytes())
    return path


def shrink(schedule: Path, *words: str) -> int:
    return main(["shrink", str(schedule), "--seed", "2", "--protocol", "hw", "--jobs", "1", *words])


def test_schedule_is_shrunk_and_printed_with_its_figures_and_the_command_that_plays_it(
    schedule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert EXIT_CODES["valid"] == shrink(schedule)
    out = capsys.readouterr().out
    assert out.startswith("17 steps, seed 2, hw\n")
    about = r"as a written scenario, the same in \d+ of 10 slowed runs: \d+ tries, \d+\.\d s"
    assert re.search(rf"^shrunk from 17 steps to 2, {about}$", out, re.M)
    written = schedule.parent / "shrunk.txt"
    assert written.read_text(encoding="utf-8") in out
    assert "\nled-twice: " in out
    command = f"again: fencepost run --host sim --protocol hw --seed 2 --schedule {written}"
    assert [command, f"schedule: {written}"] == out.splitlines()[:-3:-1]
    assert 2 == len(read_scenario(written).steps)


def test_output_is_written_where_it_is_told_and_nothing_is_overwritten(
    schedule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = schedule.parent / "leads twice.txt"
    assert EXIT_CODES["valid"] == shrink(schedule, "--output", str(output))
    before = output.read_bytes()
    assert EXIT_CODES["usage"] == shrink(schedule, "--output", str(output))
    assert before == output.read_bytes()
    assert "leads twice.txt: already there; expected a new name (--output)\n" in capsys.readouterr().err
    assert EXIT_CODES["usage"] == shrink(schedule, "--output", str(schedule))
    assert FINDING.read_bytes() == schedule.read_bytes()


def test_schedule_that_shows_nothing_is_unknown_and_what_it_shows_is_told(
    schedule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert EXIT_CODES["unknown"] == shrink(schedule, "--protocol", "kip380")
    out = capsys.readouterr().out
    assert "schedule.txt: seed 2 of kip380 shows no violation in the simulator: valid, found none;" in out
    assert ["schedule.txt"] == [path.name for path in schedule.parent.iterdir()]


def test_tries_that_are_spent_leave_what_is_found(schedule: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert EXIT_CODES["valid"] == shrink(schedule, "--tries", "6")
    assert ": 6 tries, " in (out := capsys.readouterr().out)
    assert "; perhaps not minimal: its tries or its time are spent\n" in out
    assert True is (schedule.parent / "shrunk.txt").exists()


def test_interrupt_leaves_what_is_found_and_has_its_own_code(
    schedule: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[str] = []
    outcome = Subject.outcome

    def interrupted(subject: Subject, signature: Signature, text: str) -> Outcome:
        played.append(text)
        if len(played) == 10:
            raise KeyboardInterrupt
        return outcome(subject, signature, text)

    monkeypatch.setattr(Subject, "outcome", interrupted)
    assert 130 == shrink(schedule)
    assert "; perhaps not minimal: interrupted\n" in capsys.readouterr().out
    assert len(read_scenario(schedule.parent / "shrunk.txt").steps) < 17


@pytest.mark.slow
@exhaustive
def test_search_shrinks_its_first_findings_beside_their_schedules_unless_it_is_told_not_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--protocol", "hw", "--seed", "0", "--seeds", "40", "--stop-at-first"]
    assert EXIT_CODES["invalid"] == main([*words, "--results", str(tmp_path / "one")])
    (written,) = (tmp_path / "one").glob("2*/*/shrunk.txt")
    out = capsys.readouterr().out
    steps = [step.text for step in read_scenario(written).steps]
    assert f"steps to {len(steps)}, " in out
    assert "".join(f"    {step}\n" for step in steps) in out
    again = shlex.split(next(line for line in out.splitlines() if str(written) in line).removeprefix("  again: "))
    assert ["fencepost", "run", "--schedule", str(written)] == [*again[:2], *again[-2:]]
    assert EXIT_CODES["invalid"] == main([*words, "--no-shrink", "--results", str(tmp_path / "two")])
    assert [] == list((tmp_path / "two").glob("2*/*/shrunk.txt"))
    assert "shrunk" not in capsys.readouterr().out
