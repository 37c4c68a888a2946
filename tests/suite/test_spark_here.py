"""Whatever ends a command that asks Spark, its processes and files are gone, and its environment is as before."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from checkers.spark.options import LOCAL
from harness.cleanup.process import TOKEN_VARIABLE
from harness.suite import spark_here
from harness.suite.interrupts import INTERRUPTS
from harness.suite.spark_here import with_spark


class FakeSpark:
    """A session that has a process and a file, and that remembers where it ran."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.folder: Path | None = None
        self.thread: threading.Thread | None = None

    @contextmanager
    def session(self, *_: Any, **__: Any) -> Iterator[FakeSpark]:
        self.child = subprocess.Popen(["sleep", "600"])
        self.folder = Path(tempfile.gettempdir())
        (self.folder / "blocks").touch()
        self.thread = threading.current_thread()
        yield self

    def is_gone(self) -> bool:
        assert self.child is not None and self.folder is not None
        # A killed process ends a little later than the kill returns.
        return self.child.wait(30) == -signal.SIGKILL and not self.folder.exists()


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSpark]:
    fake = FakeSpark()
    monkeypatch.setattr(spark_here, "spark_session", fake.session)
    before = os.environ.get(TOKEN_VARIABLE), tempfile.gettempdir()
    yield fake
    assert before == (os.environ.get(TOKEN_VARIABLE), tempfile.gettempdir())
    if fake.child is not None:
        fake.child.kill()
        fake.child.wait()


def test_spark_is_gone_when_it_has_answered(spark: FakeSpark) -> None:
    assert 7 == with_spark(lambda _: 7, LOCAL)
    assert spark.is_gone()
    assert spark.thread is not threading.main_thread()


def test_spark_is_gone_when_its_work_fails(spark: FakeSpark) -> None:
    def fails(_: Any) -> None:
        raise ZeroDivisionError("so")

    with pytest.raises(ZeroDivisionError, match="so"):
        with_spark(fails, LOCAL)
    assert spark.is_gone()


def test_token_of_another_is_kept(monkeypatch: pytest.MonkeyPatch, spark: FakeSpark) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "of another")
    with_spark(lambda _: None, LOCAL)
    assert "of another" == os.environ[TOKEN_VARIABLE]
    monkeypatch.delenv(TOKEN_VARIABLE)


def test_interrupt_ends_spark_in_the_middle_of_its_work(spark: FakeSpark) -> None:
    INTERRUPTS.catch()
    asked = threading.Event()

    def works(_: Any) -> None:
        asked.set()
        threading.Event().wait(600)

    def interrupts() -> None:
        asked.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupts, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        with_spark(works, LOCAL)
    assert spark.is_gone()


def test_what_py4j_says_as_the_root_logger_of_a_java_that_has_gone_is_not_printed() -> None:
    """`summary` ended with a traceback of "Exception while sending command" under its tables, logged as root."""
    spark_here._silence()
    root = logging.getLogger()
    try:
        for path, shown in (("/x/py4j/java_gateway.py", False), ("/x/ours/java_gateway.py", True)):
            record = logging.LogRecord("root", logging.ERROR, path, 1, "sending", None, None)
            assert shown is bool(root.filter(record))
    finally:
        root.removeFilter(spark_here._is_not_of_py4j)
        logging.getLogger("py4j").setLevel(logging.NOTSET)
