"""One ZooKeeper for all that ask for it, signals as on a terminal, and a skip where no Docker engine answers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from harness.cleanup.engine import connect
from harness.history.file import History
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import UsageError
from tests.scenario.fakes import FakeCluster

# Whoever starts the tests behind a shell's & has Ctrl-C ignored, in them and in all that they start; what comes of
# it is what some of them are about.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


@cache
def _lacks_engine() -> str:
    """Why there is no Docker engine, "" when one answers."""
    try:
        connect().close()
    except UsageError as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a Docker engine where none answers."""
    if item.get_closest_marker("docker") and (why := _lacks_engine()):
        pytest.skip(why)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A real ZooKeeper; whoever uses it keeps below a chroot of its own."""
    ground = HOSTS["local"](tmp_path_factory.mktemp("zookeeper"), power_tier="watermark")
    ground.open()
    try:
        yield ground.start_zookeeper()
    finally:
        ground.close()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A run's history."""
    with History(tmp_path / "history.jsonl") as history:
        yield history


@pytest.fixture
def cluster(history: History) -> FakeCluster:
    """A cluster that only remembers."""
    return FakeCluster(history)
