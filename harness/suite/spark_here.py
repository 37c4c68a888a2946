"""
Spark in this process, for a command that asks it once: whatever ends the command ends Spark, in silence.

PySpark runs in a thread: in the main one it would take the signals, and print tracebacks of two languages when it
is interrupted. Java and its files are gone when the call returns.
"""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from pyspark.sql import SparkSession

from checkers.spark.options import SparkOptions
from checkers.spark.session import spark_session
from harness.cleanup.process import TOKEN_VARIABLE, bearers, end, identity_of
from harness.model import UsageError
from harness.suite.interrupts import INTERRUPTS, apart

T = TypeVar("T")

_FOLDER: Final = "fencepost-spark-"


def with_spark(work: Callable[[SparkSession], T], options: SparkOptions, *, large: bool = False) -> T:
    """
    Start Spark, call `work` with its session, end Spark, and return the result.

    Args:
        work: called in another thread.
        options: which Spark.
        large: compile for queries of large runs.

    Raises:
        UsageError: there is no Java, it does not start, or no temporary folder can be made.
        BaseException: the exception of `work`.
    """

    def ask() -> T:
        with spark_session(None, options, large=large) as session:
            return work(session)

    with _files(), _processes():
        return apart(ask, "spark")


@contextmanager
def _files() -> Iterator[None]:
    """Have Spark and Java write to a folder that is deleted after the block."""
    before = tempfile.tempdir
    try:
        with tempfile.TemporaryDirectory(prefix=_FOLDER, ignore_cleanup_errors=True) as folder:
            tempfile.tempdir = folder
            yield
    except OSError as error:
        if error.filename is None or _FOLDER not in str(error.filename):
            raise
        raise UsageError(
            f"Spark: {error.filename}: {error.strerror}; expected a temporary folder; free some space, or set "
            "TMPDIR"
        ) from error
    finally:
        tempfile.tempdir = before


@contextmanager
def _processes() -> Iterator[None]:
    """Kill what the block started, Java and the executors' Pythons."""
    ourselves = identity_of(os.getpid())
    assert ourselves is not None, "we are alive, so /proc must know us"
    token, before = secrets.token_hex(6), os.environ.get(TOKEN_VARIABLE)
    os.environ[TOKEN_VARIABLE] = token
    try:
        yield
    finally:
        with INTERRUPTS.shielded():
            _silence()
            for child in bearers(token, ourselves.start):
                end(child)
            if before is None:
                del os.environ[TOKEN_VARIABLE]
            else:
                os.environ[TOKEN_VARIABLE] = before


def _silence() -> None:
    """Let no line say that Java has gone, which is no news: Py4J logs it by itself, and some of it as the root."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    root = logging.getLogger()
    if _is_not_of_py4j not in root.filters:
        root.addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
