"""Shared fixtures: one ZooKeeper per session, a terminal's signal handlers, a skip without a Docker engine."""

from __future__ import annotations

import gc
import re
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
from harness.suite.interrupts import SIGNALS
from tests.scenario.fakes import FakeCluster

# The markers of what a test needs beside Python, and how a file names one of them.
NEEDS = ("slow", "spark", "docker", "root", "kafka")
NEED = re.compile(rf"\bmark\.({'|'.join(NEEDS)})\b|\bLATER\b")

# A shell starts a background job (&) with SIGINT ignored, and every child process inherits that; some tests need
# the default handlers.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options by which `make evidence` keeps what faults said, and slow lanes read few files."""
    parser.addoption(
        "--write-evidence", action="store_true", help="keep what each fault said, for docs/nemeses.md"
    )
    parser.addoption(
        "--marked", action="store_true", help=f"read only files that name one of {', '.join(NEEDS)}: slow lanes"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --marked, leave out files without a test for a slow lane: importing all takes long."""
    skipped = (
        config.getoption("marked") and collection_path.match("test_*.py") and not _names_a_need(collection_path)
    )
    return True if skipped else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test of a slow lane that --marked would not see."""
    hidden = {
        str(item.path)
        for item in items
        if not _names_a_need(item.path) and any(map(item.get_closest_marker, NEEDS))
    }
    if hidden:
        raise pytest.UsageError(f"{min(hidden)}: has a slow test; expected `mark.slow` or `LATER` in this file")


@cache
def _names_a_need(path: Path) -> bool:
    return NEED.search(path.read_text(encoding="utf-8")) is not None


@cache
def _lacks_engine() -> str:
    """Return why no Docker engine answers, or "" when one does."""
    try:
        connect().close()
    except UsageError as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need a Docker engine when none answers."""
    if item.get_closest_marker("docker") and (why := _lacks_engine()):
        pytest.skip(why)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let no collection of garbage visit the tests themselves: they are there until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def garbage_of_the_module() -> Iterator[None]:
    """
    Free what the module's tests left, then let no later collection visit what is still there.

    A full collection visits every object that it may free; with all that tests cache it takes seconds.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """Restore the signal handlers after the test: a command in this process replaces them, or ignores signals."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a real ZooKeeper; each test uses a chroot of its own."""
    ground = HOSTS["local"](tmp_path_factory.mktemp("zookeeper"), power_tier="watermark")
    ground.open()
    try:
        yield ground.start_zookeeper()
    finally:
        ground.close()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Open a run's history."""
    with History(tmp_path / "history.jsonl") as history:
        yield history


@pytest.fixture
def cluster(history: History) -> FakeCluster:
    """Return a fake cluster that only records the calls."""
    return FakeCluster(history)
