"""
The target of docs/mylog goes through all that Fencepost does, by the installed command, from a folder of its own.

It shares nothing with Kafka: three processes with a file each, a socket, and a file that says who leads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from harness.docs.pages import ROOT
from tests.needs import needs

EXAMPLE: Final = ROOT / "docs" / "mylog"
LINES_MAX: Final = 300
# What its chaos must have done, as its summary names it.
# The first two rounds of its seed have each of them twice.
BITTEN: Final = ("kill", "pause", "expire", "partition-isolate")


@dataclass
class Room:
    """A folder outside of the checkout with a copy of the example, where commands are run."""

    folder: Path
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)

    def start(self, name: str, *words: str) -> None:
        """Start a command of the installed package; its results are in a folder of this name."""
        command = [str(Path(sys.executable).with_name("fencepost")), *words]
        environment = {each: value for each, value in os.environ.items() if each != "PYTHONPATH"}
        self._running[name] = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment | {"FENCEPOST_TARGETS": str(self.folder / "mylog"), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def play(self, name: str, *words: str) -> None:
        """Start a command that plays runs."""
        self.start(name, *words, "--results", name)

    def ended(self, name: str) -> tuple[int, str]:
        """Wait for a command; return its exit code, and what it said."""
        if name not in self._said:
            self._said[name] = self._running[name].communicate()[0]
        return self._running[name].returncode, self._said[name]

    def close(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.terminate()
                process.communicate()

    def runs(self, name: str) -> Mapping[str, Path]:
        """Return run -> its folder, of a command that played runs."""
        return {each.parent.name: each.parent for each in self.folder.glob(f"{name}/**/history.jsonl")}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """All that takes long, two commands at a time: they mostly wait for processes."""
    made = Room(tmp_path_factory.mktemp("outside"))
    shutil.copytree(EXAMPLE, made.folder / "mylog", ignore=shutil.ignore_patterns("__pycache__"))
    chaos = ("--time", "12", "--nemesis", ",".join(BITTEN), "--workload", "append")
    try:
        made.play("suite", "test", "mylog")
        made.play("chaos", "run", "--target", "mylog:1", "--host", "local", "--seed", "1529", *chaos)
        made.ended("suite"), made.ended("chaos")
        made.play("random", "run", "--target", "mylog:1", "--host", "local", "--seed", "4", "--seeds", "3")
        made.play("night", "nightly", "--target", "mylog:1", "--host", "local", "--minutes", "0.2")
        made.ended("random"), made.ended("night")
        yield made
    finally:
        made.close()


def anomalies(folder: Path) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = json.loads((folder / "anomalies.json").read_text(encoding="utf-8"))
    return found


def test_whole_target_has_few_lines_and_nothing_of_kafka() -> None:
    files = [path for path in EXAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert sum(len(text.splitlines()) for text in texts.values()) <= LINES_MAX
    code = "".join(text for name, text in texts.items() if name.endswith(".py"))
    assert not re.search(r"(?i)kafka|zookeeper|znode", code)


@pytest.mark.parametrize("name", ["target.py", "parts.py"])
def test_page_shows_its_files_as_they_are(name: str) -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    text = (EXAMPLE / name).read_text(encoding="utf-8")
    assert f"```python\n{text}```" in page, f"docs/extending.md shows another docs/mylog/{name}; copy it there"


@needs("java")
@pytest.mark.slow
def test_suite_of_it_finds_what_each_version_must_show(room: Room) -> None:
    code, said = room.ended("suite")
    assert 0 == code, said
    runs = room.runs("suite")
    assert {"early-1", "early-1-early"} == {*runs}
    assert [] == anomalies(runs["early-1"])
    (lost,) = anomalies(runs["early-1-early"])
    assert ("lost", "acknowledged (acks=all)") == (
        lost["kind"],
        *re.findall(r"acknowledged \(acks=all\)", lost["sentence"])[:1],
    )
    assert re.search(
        r"from epoch 2 on, in which B was elected .* no leader is known to have had it", lost["sentence"]
    )
    report = next(room.folder.glob("suite/*/report.html")).read_text(encoding="utf-8")
    assert "from epoch 2 on, in which B was elected" in report


@needs("java")
@pytest.mark.slow
def test_random_schedules_find_nothing_and_leave_out_what_it_lacks(room: Room) -> None:
    code, said = room.ended("random")
    assert code in (0, 3), said  # a run without a fault that had an effect proves nothing
    assert re.search(r"[1-9]\d* steps skipped as not applicable", said), said


@needs("java")
@pytest.mark.slow
def test_kill_pause_cut_and_end_of_a_membership_bite_in_its_chaos(room: Room) -> None:
    code, said = room.ended("chaos")
    assert 0 == code, said
    bitten = {name: int(count) for name, count in re.findall(r"^ +(\S+): (\d+) of \d+ bit$", said, re.MULTILINE)}
    assert all(bitten.get(name, 0) > 0 for name in BITTEN), said


@needs("java")
@pytest.mark.slow
def test_night_plays_it(room: Room) -> None:
    code, said = room.ended("night")
    assert code in (0, 3), said  # it has so few runs that one without a fault that had an effect makes it unknown
    page = next(room.folder.glob("night/nights/*/night.md")).read_text(encoding="utf-8")
    assert "mylog:1" in page


@needs("java")
@pytest.mark.slow
def test_lineage_reads_what_its_nodes_left(room: Room) -> None:
    logs = sorted(str(path.parent) for path in room.runs("suite")["early-1"].glob("logs/*/log"))
    room.start("lineage", "lineage", "--target", "mylog", "--json", *logs)
    code, said = room.ended("lineage")
    assert (0, 3) == (code, len(logs)), said
    assert '"log-0"' in said


@needs("java")
@pytest.mark.slow
def test_targets_show_it_with_what_it_has_and_lacks(room: Room) -> None:
    room.start("targets", "targets", "mylog")
    code, said = room.ended("targets")
    assert 0 == code, said
    assert re.search(
        r"versions +1, 1-early\n +has +wire, elect, expire, members\n +lacks +clocks, move, remove, ", said
    )
