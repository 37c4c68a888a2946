"""`fencepost nightly` plays what its options say, ends with a code of the table, and goes on after a SIGKILL."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cleanup.process import until
from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.night.journal import LINES
from harness.night.plan import default_text
from tests.kept import exhaustive
from tests.night.nights import BOTH, Fakes, fakes

__all__ = ["fakes"]

END_S_MAX = 120.0
PLAN = """
seeds_a_minute = 60
[[play]]
hosts = ["sim"]
protocols = ["kip380+truncate_to=high_watermark", "kip380", "kip320"]
narrow = true
[[canary]]
hosts = ["sim"]
protocols = ["{canary}"]
{of}
"""


def nightly(folder: Path, *words: str, plan: str = BOTH) -> int:
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    return main(["nightly", "--plan", str(folder / "plan.toml"), "--results", str(folder / "r"), *words])


def data_of(folder: Path) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((folder / "r" / "nights" / "latest" / "night.json").read_text("utf-8"))
    return raw


def found_in(raw: dict[str, Any]) -> list[tuple[str, int, list[str]]]:
    return sorted(
        (each["line"], each["seed"], each["kinds"]) for cause in raw["causes"] for each in cause["findings"]
    )


def test_plan_is_printed_and_nothing_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["nightly", "--print-plan", "--results", str(tmp_path / "r")])
    assert default_text() == capsys.readouterr().out
    assert not (tmp_path / "r").exists()


def test_hosts_and_length_of_the_command_line_count(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert EXIT_CODES["invalid"] == nightly(tmp_path, "--host", "sim", "--minutes", "0.2", "--seed", "105")
    assert {"sim"} == {host for host, _ in fakes.played}
    raw = data_of(tmp_path)
    assert (12.0, 4) == (raw["asked_s"], raw["exit_code"])
    out = capsys.readouterr().out
    assert f"page: {tmp_path / 'r' / 'nights' / raw['night'] / 'night.html'}" in out
    assert "show a violation" in out


@pytest.mark.slow
@exhaustive
def test_target_of_the_command_line_is_played_in_place_of_the_plans(tmp_path: Path, fakes: Fakes) -> None:
    nightly(tmp_path, "--target", "broker:kip279", "--minutes", "0.1", "--seed", "1", "--host", "sim,local")
    assert {"broker:kip279"} == {line["target"] for line in data_of(tmp_path)["lines"] if line["role"] == "play"}


@pytest.mark.slow
def test_real_night_in_the_simulator_finds_what_a_mutant_loses_and_is_red_for_a_canary_without_a_bug(
    tmp_path: Path,
) -> None:
    plan = PLAN.format(canary="kip380", of='scenarios = ["kip101-1"]')
    assert EXIT_CODES["invalid"] == nightly(tmp_path, "--minutes", "0.1", "--seed", "3", "--jobs", "1", plan=plan)
    raw = data_of(tmp_path)
    assert found_in(raw)
    (canary,) = (line for line in raw["lines"] if line["role"] == "canary")
    assert ("not as expected", "a violation was expected, and none was found in 1 run") == (
        canary["status"],
        canary["why"],
    )
    for finding in (each for cause in raw["causes"] for each in cause["findings"] if each["folder"]):
        kept = tmp_path / "r" / "nights" / raw["night"] / finding["folder"]
        assert {"history.jsonl", "schedule.txt", "anomalies.json"} <= {path.name for path in kept.iterdir()}


@pytest.mark.slow
@exhaustive
def test_night_that_is_killed_by_sigkill_and_started_again_has_one_page_and_the_findings_of_an_undisturbed_one(
    tmp_path: Path,
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(canary="hw", of="seeds = 20"), encoding="utf-8")
    words = ["nightly", "--plan", str(plan), "--minutes", "0.2", "--seed", "3"]

    def start(results: str, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "harness.cli.main", *words, "--results", str(tmp_path / results), *more]
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with start("whole", "--jobs", "1") as whole:
        assert EXIT_CODES["invalid"] == whole.wait(END_S_MAX)
    lines = len(_journal(tmp_path / "whole").read_bytes().splitlines())
    moment = random.Random(29).randrange(4, lines - 1)
    # With two processes beside it: they end with the night that is killed.
    with start("killed", "--jobs", "2") as killed:
        assert until(lambda: _lines(tmp_path / "killed") >= moment or killed.poll() is not None, END_S_MAX)
        killed.send_signal(signal.SIGKILL)
        assert -signal.SIGKILL == killed.wait(END_S_MAX)
    assert until(lambda: not _alive(tmp_path), END_S_MAX), _alive(tmp_path)
    with start("killed", "--jobs", "1") as again:
        assert EXIT_CODES["invalid"] == again.wait(END_S_MAX)
    pages = {name: list((tmp_path / name / "nights").glob("2*/night.json")) for name in ("whole", "killed")}
    assert {"whole": 1, "killed": 1} == {name: len(found) for name, found in pages.items()}
    undisturbed, resumed = (json.loads(pages[name][0].read_text("utf-8")) for name in ("whole", "killed"))
    assert found_in(undisturbed) == found_in(resumed)
    assert [line["count"]["verdicts"] for line in undisturbed["lines"]] == [
        line["count"]["verdicts"] for line in resumed["lines"]
    ]
    assert (2, 1) == (resumed["sessions"], resumed["killed"])


def _journal(results: Path) -> Path:
    return next(iter((results / "nights").glob(f"2*/{LINES}")), results / "none")


def _lines(results: Path) -> int:
    path = _journal(results)
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _alive(folder: Path) -> list[str]:
    """Name every process that has the folder in its environment."""
    mark, found = str(folder).encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes() and int(pid) != os.getpid():
                found.append(
                    Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
        except OSError:
            continue
    return found
