"""A run that fails says why, unless all runs are cancelled: what is taken down under a run may fail in any way."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from harness.cluster.cluster import RunCancelled
from harness.history.file import History
from harness.random_schedule.timing import REAL
from harness.run.environment import Environment
from harness.run.player import Player
from harness.run.store import SuiteDir
from harness.search.random_runs import RandomRuns

SPEC = RandomRuns(target="broker", variant="hw", host="local").spec(4)


class Refusing:
    """An environment that opens no cluster."""

    timing = REAL

    def __init__(self, error: Exception) -> None:
        self.error = error

    def open_cluster(self, _spec: object, _folder: Path, history: History) -> Any:
        history.close()
        raise self.error


def player(error: Exception) -> Player:
    return Player(environment=cast(Environment, Refusing(error)), faults={})


def test_run_that_fails_says_why_and_how_long_it_took(tmp_path: Path) -> None:
    run = player(KeyError("x")).attempt(SPEC, SuiteDir(path=tmp_path))
    assert (SPEC.name, "KeyError: 'x' (traceback in traceback.txt)") == (run.name, run.failure)
    assert run.seconds > 0
    assert True is run.traceback.exists()


def test_run_whose_folder_exists_says_so(tmp_path: Path) -> None:
    (tmp_path / SPEC.name).mkdir()
    run = player(KeyError("x")).attempt(SPEC, SuiteDir(path=tmp_path))
    assert f"{tmp_path / SPEC.name}: already there" in run.failure


@pytest.mark.parametrize("error", [RunCancelled("cancelled"), OSError("the host is closed")])
def test_run_that_is_cancelled_is_no_failure(tmp_path: Path, error: Exception) -> None:
    cancelled = player(error)
    cancelled.cancel()
    with pytest.raises(type(error)):
        cancelled.attempt(SPEC, SuiteDir(path=tmp_path))
