"""Spark beside a suite: warm when there is time for it, and gone at the end; its failure is told to who asks."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.cli.beside import Found, spark_beside

from checkers.checker import Checker
from harness.cli import beside
from harness.model import UsageError
from harness.process import until

JAVA = Path("/none")
RUN = Path("/results/suite/run/history.parquet")
WAIT_S_MAX = 30.0


class Spark:
    """Takes the place of Spark: notes what is done with it, and waits where it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.up = threading.Event()
        self.up.set()
        self.fails: Exception | None = None
        self.env: Mapping[str, str] = {}
        monkeypatch.setattr(beside, "spark_session", self.session)
        monkeypatch.setattr(beside, "warm_up", lambda _: self.done.append("warm"))
        monkeypatch.setattr(beside, "check_runs", self.check)

    @contextmanager
    def session(self, java_home: Path, *, env: Mapping[str, str]) -> Iterator[None]:
        assert JAVA == java_home
        self.env = env
        assert self.up.wait(WAIT_S_MAX)
        self.done.append("up")
        try:
            yield
        finally:
            self.done.append("down")

    def check(self, _session: None, paths: Sequence[Path], _checkers: Mapping[str, Checker]) -> Found:
        if self.fails is not None:
            raise self.fails
        self.done.append("check")
        return {path.parent.name: [] for path in paths}


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    return Spark(monkeypatch)


def has(spark: Spark, what: str) -> Callable[[], bool]:
    return lambda: what in spark.done


def _fail_once(moment: Callable[[], bool], error: BaseException) -> None:
    """Have Spark beside a block that fails at that moment."""
    with spark_beside(JAVA) as running:
        running.start()
        assert until(moment, WAIT_S_MAX)
        raise error


def test_spark_is_warm_when_it_is_asked_late_and_ends_with_the_block(spark: Spark) -> None:
    with spark_beside(JAVA) as running:
        running.start()
        running.start()
        assert until(has(spark, "warm"), WAIT_S_MAX)
        assert {"run": []} == running.check([RUN])
    assert ["up", "warm", "check", "down"] == spark.done


def test_spark_that_is_asked_before_it_is_up_does_not_warm_up_first(spark: Spark) -> None:
    spark.up.clear()
    with spark_beside(JAVA) as running:
        threading.Timer(0.01, spark.up.set).start()
        assert {"run": []} == running.check([RUN])
    assert ["up", "check", "down"] == spark.done


def test_spark_that_nobody_starts_is_not_there(spark: Spark) -> None:
    with spark_beside(JAVA):
        pass
    with pytest.raises(KeyError), spark_beside(JAVA):
        raise KeyError
    assert [] == spark.done


def test_spark_that_nobody_asks_ends_with_the_block(spark: Spark) -> None:
    with spark_beside(JAVA) as running:
        running.start()
        assert until(has(spark, "warm"), WAIT_S_MAX)
    assert ["up", "warm", "down"] == spark.done


def test_what_is_wrong_with_spark_is_told_to_whoever_asks(spark: Spark) -> None:
    spark.fails = UsageError("no such Java")
    with pytest.raises(UsageError, match="no such Java"), spark_beside(JAVA) as running:
        running.check([RUN])


def test_what_is_wrong_with_spark_is_nobodys_loss_when_nobody_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beside, "spark_session", lambda *_, **__: 1 // 0)
    with spark_beside(JAVA) as running:
        running.start()
    assert ("", "") == capsys.readouterr()


def test_error_of_the_block_ends_spark_and_is_the_one_that_is_told(spark: Spark) -> None:
    with pytest.raises(KeyError, match="a cell failed"):
        _fail_once(has(spark, "warm"), KeyError("a cell failed"))
    assert ["up", "warm", "down"] == spark.done


def test_error_of_the_block_kills_what_spark_started_and_silences_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    @contextmanager
    def session(_java_home: Path, *, env: Mapping[str, str]) -> Iterator[None]:
        with subprocess.Popen(["sleep", "60"], env=env) as process:
            started.append(process)
            # As PySpark does, which waits for an answer of a process that does not live to give it.
            process.wait()
            logging.error("Exception while sending command.")
            raise ConnectionResetError
        yield

    monkeypatch.setattr(beside, "spark_session", session)
    before = logging.root.manager.disable
    with pytest.raises(KeyboardInterrupt):
        _fail_once(lambda: len(started) == 1, KeyboardInterrupt())
    assert -9 == started[0].returncode
    assert [] == caplog.records
    assert ("", "") == capsys.readouterr()
    assert before == logging.root.manager.disable
    assert "spark" not in {thread.name for thread in threading.enumerate()}
