"""
What executors elsewhere need before they can check: our code, the packages it imports, and the same Python.

Our code is always sent. Packages are sent if the Python of an executor lacks one: as an archive that each executor
unpacks into its own folder, which is on its path. All of this is asked of the executors before the first check, so
that what is missing is said in one line, and no run is unknown for it.
"""

from __future__ import annotations

import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import SparkSession

from checkers.spark.errors import said
from checkers.spark.options import PYTHON
from harness.model import UsageError

# The folder of an executor into which it unpacks the packages; it is on the path whether they are sent or not.
PACKAGES: Final = "fencepost-packages"
# What the work of executors imports (checkers/spark/executor.py): names of packages, and of what PyPI has them in.
NEEDED: Final = ("numpy", "pyarrow")
# How long a master has to start the first executor, in which others may be served before us.
EXECUTORS_S_MAX: Final = 120.0

_ROOT: Final = Path(__file__).resolve().parents[2]
_OURS: Final = ("checkers", "harness", "nemesis", "targets", "workloads")
# Tests and headers are half of the size.
_LEFT_OUT: Final = frozenset({"tests", "include", "__pycache__", "src"})
# Several questions a core, since Spark may ask one executor twice before another is up.
_QUESTIONS: Final = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """What an executor's Python says of itself: its executable, its host, and the packages that it lacks."""

    python: str
    host: str
    lacks: tuple[str, ...]


def equip(session: SparkSession, folder: Path) -> None:
    """
    Send executors our code, and the packages that they lack.

    Args:
        session: of a master whose executors are elsewhere.
        folder: where to make the files that are sent; they must stay as long as the session.

    Raises:
        UsageError: there are no executors, they run another Spark or Python, or still lack a package.
    """
    context = session.sparkContext
    if session.version != pyspark.__version__:
        raise UsageError(
            f"Spark: SPARK_HOME has {session.version}; expected {pyspark.__version__}, the version of PySpark"
        )
    sent = bool(_lacking(_ask(session)))
    if sent:
        context.addArchive(f"{_archive_of_packages(folder)}#{PACKAGES}")
    # Last: where the path changes, a Python that has looked for the packages in vain looks again.
    context.addPyFile(str(_zip_of_code(folder)))
    if sent:
        left = _lacking(_ask(session))
        if left:
            raise UsageError(
                f"Spark: {left[0].python} on {left[0].host} cannot import {', '.join(left[0].lacks)}, though they "
                f"were sent; expected executors with this machine's kind of processor and libraries; install the "
                f"packages there, or name another Python by --conf {PYTHON}=PATH"
            )


def _lacking(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.lacks]


def _ask(session: SparkSession) -> list[Answer]:
    """Ask executors' Pythons what they are."""
    context = session.sparkContext
    count = _QUESTIONS * context.defaultParallelism
    answers: list[Any] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.extend(context.parallelize(range(count), count).mapPartitions(_question(NEEDED)).collect())
        except Exception as error:
            errors.append(error)

    # In a thread: a master without a free core has Spark wait without end.
    asking = threading.Thread(target=ask, name="executors", daemon=True)
    asking.start()
    asking.join(EXECUTORS_S_MAX)
    if asking.is_alive():
        raise UsageError(
            f"Spark: {context.master}: no executor answered within {EXECUTORS_S_MAX:.0f} s; expected workers with "
            "a free core and the memory that is asked for; --conf spark.executor.memory=512m asks for less"
        )
    if errors:
        raise UsageError(_why(errors[0])) from errors[0]
    return [Answer(*answer) for answer in answers]


def _question(names: Sequence[str]) -> Callable[[Any], Iterator[tuple[str, str, tuple[str, ...]]]]:
    """Return a function that is sent whole: it refers to no module that an executor might lack."""

    def question(_: Any) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        import importlib
        import socket
        import sys

        lacks = []
        for name in names:
            try:
                importlib.import_module(name)
            except ImportError:
                lacks.append(name)
        yield sys.executable, socket.gethostname(), tuple(lacks)

    return question


def _why(error: Exception) -> str:
    """Return what is wrong with executors' Python, as the error of their first task says it."""
    text, ours = str(error), f"{sys.version_info.major}.{sys.version_info.minor}"
    named = f"name one by --conf {PYTHON}=PATH, or by PYSPARK_PYTHON"
    if "PYTHON_VERSION_MISMATCH" in text:
        return (
            f"Spark: executors do not run Python {ours}, as this process does; expected the same version; {named}"
        )
    program = text.partition('Cannot run program "')[2].partition('"')[0]
    if program:
        return f"Spark: executors have no program {program}; expected Python {ours} there; {named}"
    return f"Spark: executors' Python does not run: {said(error)}; expected Python {ours}; {named}"


def _zip_of_code(folder: Path) -> Path:
    path = folder / "fencepost-code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _OURS:
            for file in sorted((_ROOT / package).rglob("*")):
                if file.is_file() and not _LEFT_OUT.intersection(file.relative_to(_ROOT).parts):
                    archive.write(file, file.relative_to(_ROOT))
    return path


def _archive_of_packages(folder: Path) -> Path:
    path = folder / f"{PACKAGES}.tar.gz"
    # The lowest level takes a third of the time of the usual one, and a tenth more bytes.
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name in NEEDED:
            # Its libraries, and what it says of itself, are in folders of their own beside it.
            for file in metadata.files(name) or ():
                path_of_file = Path(str(file.locate()))
                if not _LEFT_OUT.intersection(file.parts) and ".." not in file.parts and path_of_file.is_file():
                    archive.add(path_of_file, str(file))
    return path
