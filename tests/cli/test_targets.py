"""`fencepost targets` lists what can be tested, and every command finds a target in a folder of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.facts.view import setup_of
from harness.cli.main import main
from harness.history.file import read_history
from harness.model import EXIT_CODES, PartOps
from tests.target.own import make_target


def test_targets_are_listed_with_versions_and_place_and_wrong_ones_with_their_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, broken = make_target(tmp_path / "mine"), make_target(tmp_path / "broken", "import nothing_such\n")
    assert EXIT_CODES["valid"] == main(["targets", "--targets", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert "broker  runs when no target is named" in lines
    assert "  versions  hw, kip101, kip101-text, kip279, kip279-2.0.1, kip320, kip380" in lines
    assert f"  found     {mine}, by --targets {tmp_path}" in lines
    at = lines.index("broken  cannot be used")
    assert lines[at + 1].startswith("  reason    target.py does not import: ModuleNotFoundError: No module named")
    assert f"  found     {broken}, by --targets {tmp_path}" == lines[at + 2]


def test_named_target_that_cannot_be_used_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = make_target(tmp_path / "broken", "import nothing_such\n")
    assert EXIT_CODES["usage"] == main(["targets", "broken", "--targets", str(broken)])
    told = capsys.readouterr()
    assert "" == told.out
    assert f"fencepost: target broken: {broken}: target.py does not import: " in told.err
    assert EXIT_CODES["valid"] == main(["targets", "kafka", "--targets", str(broken)])
    assert capsys.readouterr().out.startswith("kafka\n")


@pytest.mark.slow
def test_run_of_a_target_of_ones_own_says_how_it_is_found_and_is_played_by_worker_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_target(tmp_path / "mine")
    words = ["run", "--target", "mine:hw", "--targets", "mine", "--host", "sim", "--seed", "0", "--seeds", "2"]
    assert EXIT_CODES["invalid"] == main([*words, "--jobs", "2", "--no-shrink"])
    assert "mine:hw" in capsys.readouterr().out
    (history,) = tmp_path.glob("results/*-search-0/seed-0-hw/history.jsonl")
    setup = setup_of(PartOps(read_history(history)))
    assert setup is not None and setup.again is not None
    assert ["--target", "mine:hw", "--targets", str(tmp_path / "mine")] == setup.again.split()[4:8]
    assert EXIT_CODES["usage"] == main([word for word in words if word not in ("--targets", "mine")])
    assert "unknown target 'mine'" in capsys.readouterr().err
