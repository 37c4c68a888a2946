"""Spark beside a suite: warm when there is time for it, and gone at the end; its failure is raised by a check."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkers.checker import Checker
from harness.model import UsageError
from harness.process import until
from harness.suite import spark_worker as module
from harness.suite.spark_worker import Found, spark_worker

JAVA = Path("/none")
RUN = Path("/results/suite/run/history.parquet")
WAIT_S_MAX = 30.0


class Spark:
    """In place of Spark: remembers what is done with it, and starts once `up` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.up = threading.Event()
        self.up.set()
        self.fails: Exception | None = None
        self.env: Mapping[str, str] = {}
        monkeypatch.setattr(module, "spark_session", self.session)
        monkeypatch.setattr(module, "warm_up", lambda _: self.done.append("warm"))
        monkeypatch.setattr(module, "check_runs", self.check)

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
    """Start Spark in a block that fails at that moment."""
    with spark_worker(JAVA) as worker:
        worker.start()
        assert until(moment, WAIT_S_MAX)
        raise error


def test_spark_is_warm_when_a_check_comes_late_and_ends_with_the_block(spark: Spark) -> None:
    with spark_worker(JAVA) as worker:
        worker.start()
        worker.start()
        assert until(has(spark, "warm"), WAIT_S_MAX)
        assert {"run": []} == worker.check([RUN])
    assert ["up", "warm", "check", "down"] == spark.done


def test_spark_that_has_a_check_waiting_does_not_warm_up_first(spark: Spark) -> None:
    spark.up.clear()
    with spark_worker(JAVA) as worker:
        threading.Timer(0.01, spark.up.set).start()
        assert {"run": []} == worker.check([RUN])
    assert ["up", "check", "down"] == spark.done


def test_spark_that_was_not_started_is_not_there(spark: Spark) -> None:
    with spark_worker(JAVA):
        pass
    with pytest.raises(KeyError), spark_worker(JAVA):
        raise KeyError
    assert [] == spark.done


def test_spark_without_a_check_ends_with_the_block(spark: Spark) -> None:
    with spark_worker(JAVA) as worker:
        worker.start()
        assert until(has(spark, "warm"), WAIT_S_MAX)
    assert ["up", "warm", "down"] == spark.done


def test_failure_of_spark_is_raised_by_the_check(spark: Spark) -> None:
    spark.fails = UsageError("no such Java")
    with pytest.raises(UsageError, match="no such Java"), spark_worker(JAVA) as worker:
        worker.check([RUN])


def test_failure_of_spark_without_a_check_is_not_raised_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "spark_session", lambda *_, **__: 1 // 0)
    with spark_worker(JAVA) as worker:
        worker.start()
    assert ("", "") == capsys.readouterr()


def test_error_of_the_block_ends_spark_and_is_the_one_that_is_raised(spark: Spark) -> None:
    with pytest.raises(KeyError, match="a run failed"):
        _fail_once(has(spark, "warm"), KeyError("a run failed"))
    assert ["up", "warm", "down"] == spark.done


def test_error_of_the_block_kills_what_spark_started_and_silences_what_it_logs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    @contextmanager
    def session(_java_home: Path, *, env: Mapping[str, str]) -> Iterator[None]:
        with subprocess.Popen(["sleep", "60"], env=env) as process:
            started.append(process)
            # PySpark too waits for the answer of a process that has been killed.
            process.wait()
            logging.error("Exception while sending command.")
            raise ConnectionResetError
        yield

    monkeypatch.setattr(module, "spark_session", session)
    before = logging.root.manager.disable
    with pytest.raises(KeyboardInterrupt):
        _fail_once(lambda: len(started) == 1, KeyboardInterrupt())
    assert -9 == started[0].returncode
    assert [] == caplog.records
    assert ("", "") == capsys.readouterr()
    assert before == logging.root.manager.disable
    assert "spark" not in {thread.name for thread in threading.enumerate()}
