"""The Spark process answers each request with a line; however it ends, its Java and its folder are gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from harness.cleanup.process import TOKEN_VARIABLE, bearers, until
from harness.java import find_java
from harness.model import Kind
from harness.run.store import create_suite
from tests.checkers.golden import ops_of
from tests.kept import exhaustive

ROOT = Path(__file__).resolve().parents[3]
END_S_MAX = 60.0
TOKEN = "a-process-of-this-test"


@dataclass(slots=True, kw_only=True)
class Parent:
    """The Spark process as its parent sees it."""

    process: subprocess.Popen[str]
    folder: Path

    @property
    def stdin(self) -> IO[str]:
        """The process's standard input."""
        assert self.process.stdin is not None
        return self.process.stdin

    def ask(self, request: list[str] | None) -> None:
        """Send a request."""
        self.stdin.write(json.dumps(request) + "\n")
        self.stdin.flush()

    def answer(self) -> Any:
        """Read and decode a line of output."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def left(self) -> list[object]:
        """Return its processes and its folder that still exist."""
        return [*bearers(f"{TOKEN}-{os.getpid()}", 0), *([self.folder] if self.folder.exists() else [])]


@contextmanager
def started(folder: Path, java_home: Path) -> Iterator[Parent]:
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "checkers.spark.process", str(java_home), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, TOKEN_VARIABLE: f"{TOKEN}-{os.getpid()}", "TMPDIR": str(folder)},
        process_group=0,
    ) as process:
        try:
            yield Parent(process=process, folder=folder)
        finally:
            process.kill()


def test_process_without_a_java_says_so_and_ends(tmp_path: Path) -> None:
    with started(tmp_path / "folder", Path("/none")) as parent:
        assert "Spark: /none/bin/java: no such file" in parent.answer()["usage"]
        assert 1 == parent.process.wait(END_S_MAX)
        assert [] == parent.left()


@pytest.mark.slow
def test_process_whose_java_ends_before_it_serves_says_so_and_ends(tmp_path: Path) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    java.chmod(0o755)
    with started(tmp_path / "folder", java.parents[1]) as parent:
        assert f"Spark: {java}: ended before it served" in parent.answer()["usage"]
        assert 1 == parent.process.wait(END_S_MAX)
        assert [] == parent.left()


@pytest.mark.spark
def test_process_answers_every_request_and_leaves_nothing_when_it_is_told_to_end(tmp_path: Path) -> None:
    run = create_suite(tmp_path, "suite").create_run("lost")
    run.history.write_text("".join(op.to_json() + "\n" for op in ops_of("lost-bad")), encoding="utf-8")
    with started(tmp_path / "folder", find_java().home) as parent:
        parent.ask([str(run.path)])
        parent.ask([])
        parent.ask(None)
        assert {"up": True} == parent.answer()
        assert Kind.LOST in {anomaly["kind"] for anomaly in parent.answer()["found"]["lost"]}
        assert {"found": {}} == parent.answer()
        assert 0 == parent.process.wait(END_S_MAX)
        assert process_said_nothing(parent.process)
        assert [] == parent.left()


@pytest.mark.spark
def test_process_whose_parent_is_gone_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    with started(tmp_path / "folder", find_java().home) as parent:
        assert {"up": True} == parent.answer()
        assert len(parent.left()) > 1
        # As the kernel does when the parent is killed; Spark is still warming up.
        parent.stdin.close()
        assert 1 == parent.process.wait(END_S_MAX)
        assert until(lambda: [] == parent.left(), END_S_MAX), parent.left()


@exhaustive
@pytest.mark.spark
def test_process_that_crashes_says_where(tmp_path: Path) -> None:
    with started(tmp_path / "folder", find_java().home) as parent:
        parent.process.stdin.write("[7]\n")
        parent.process.stdin.flush()
        assert {"up": True} == parent.answer()
        assert "TypeError" in parent.answer()["crash"]
        assert 1 == parent.process.wait(END_S_MAX)
        assert [] == parent.left()


def process_said_nothing(process: subprocess.Popen[str]) -> bool:
    assert process.stderr is not None
    return process.stderr.read() == ""
