"""The class archive: made completely or not at all, and used by the next Java process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkers.spark import archive
from checkers.spark.archive import main, make_archive
from checkers.spark.session import archive_path
from harness.java import Java, executable_of, find_java
from harness.model import UsageError

ROOT = Path(__file__).resolve().parents[3]
# Prints whether Java has mapped this environment's archive, which is made first if it is missing.
PROGRAM = """
from pathlib import Path
from benchmarks.cpu import child_with
from checkers.spark.archive import make_archive
from checkers.spark.session import archive_path, spark_session
from harness.java import executable_of, find_java
home = find_java().home
path = archive_path(executable_of(home))
if not path.exists():
    make_archive(home)
with spark_session(home):
    print(path, str(path) in Path(f"/proc/{child_with('org.apache.spark')}/maps").read_text())
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a Python environment and a Java for this test; return the path of their archive."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    found = Java(home=home, executable=home / "bin" / "java", version=17, source="this test")
    monkeypatch.setattr(archive, "find_java", lambda: found)
    return archive_path(executable_of(home))


def spark_that_writes(text: str | None) -> Any:
    """Return a fake Spark that writes this text as its archive, or nothing."""

    def write(_home: Path, path: Path) -> None:
        if text is not None:
            path.write_text(text, encoding="utf-8")

    return write


def test_archive_is_made_where_it_is_looked_for_and_nothing_beside_it(
    environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.parent.mkdir(parents=True)
    environment.with_name(f"{environment.name}.123").touch()  # left by a killed process
    monkeypatch.setattr(archive, "_have_spark_write", spark_that_writes("classes"))
    assert 0 == main()
    assert f"Spark's classes: {environment}\n" == capsys.readouterr().out
    assert [environment] == list(environment.parent.iterdir())
    assert "classes" == environment.read_text(encoding="utf-8")


def test_archive_that_is_there_is_kept(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment.parent.mkdir(parents=True)
    environment.touch()
    monkeypatch.setattr(archive, "make_archive", lambda _home: pytest.fail("made again"))
    assert 0 == main()


def test_java_that_keeps_no_archive_is_no_failure(
    environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(archive, "_have_spark_write", spark_that_writes(None))
    assert 0 == main()
    assert "keeps no archive" in capsys.readouterr().out
    assert not environment.exists()


def test_environment_that_cannot_be_written_is_told(
    environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "environment").touch()
    with pytest.raises(UsageError, match=f"class archive {environment}: Not a directory; expected"):
        make_archive(tmp_path / "java")
    assert 2 == main()
    assert capsys.readouterr().err.startswith(f"checkers.spark.archive: class archive {environment}: ")


@pytest.mark.slow
@pytest.mark.spark
def test_next_java_takes_its_classes_from_the_archive() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    java = find_java()
    # A Java that came without an archive of its own, as the one from PyPI, keeps none: Spark starts all the same.
    keeps = (java.home / "lib" / "server" / "classes.jsa").exists()
    assert f"{archive_path(executable_of(java.home))} {keeps}\n" == done.stdout
