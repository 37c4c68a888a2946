"""Shared fixtures and hooks: one ZooKeeper per session, a terminal's signal handlers, which tests are played."""

from __future__ import annotations

import gc
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from harness.cli import check
from harness.history.file import History
from harness.hosts import HOSTS
from harness.java import Java
from harness.launch import Address
from harness.suite import runner
from harness.suite.interrupts import SIGNALS
from targets.zookeeper import server
from tests.needs import ROWS, names_of
from tests.scenario.fakes import FakeCluster
from tests.services import zookeeper_on
from tests.skips import LACKED, Skips

# The markers of the slow lanes, and how a file names one of them.
LANES = ("slow", "spark", "docker", "root", "kafka", "exhaustive")
LANE = re.compile(rf"\bmark\.({'|'.join(LANES)})\b|\bexhaustive\b|\bkeep\(")

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
        "--marked", action="store_true", help=f"read only files that name one of {', '.join(LANES)}: slow lanes"
    )
    parser.addoption("--lane", default="", metavar="NAME", help="keep what was skipped for the end of `make test`")
    parser.addoption(
        "--one-for-each",
        default="",
        metavar="ROW,ROW",
        help="also play one test for each of these rows of tests/needs.py, and fail unless the machine lacks all",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the table of abilities decide which tests are skipped."""
    config.pluginmanager.register(Skips())
    config.pluginmanager.register(OneForEach(config.getoption("--one-for-each")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --marked, leave out files without a test for a slow lane: importing all takes long."""
    skipped = (
        config.getoption("marked") and collection_path.match("test_*.py") and not _names_a_lane(collection_path)
    )
    return True if skipped else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test of a slow lane that --marked would not see, and one that does not name its jars."""
    hidden = {
        str(item.path)
        for item in items
        if not _names_a_lane(item.path) and any(map(item.get_closest_marker, LANES))
    }
    if hidden:
        raise pytest.UsageError(f"{min(hidden)}: has a slow test; expected `mark.slow` or `exhaustive` in it")


class OneForEach:
    """Adds one test for each row of --one-for-each to the tests that the other options select."""

    def __init__(self, names: str) -> None:
        """Take the option's value."""
        self._names = [name for name in names.split(",") if name]
        self._added: list[pytest.Item] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Add them, after the other options have deselected what they do not want."""
        self._added = one_for_each(self._names, items)
        yield
        items += [item for item in self._added if item not in items]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail unless each of them was skipped."""
        if session.testscollected and any(not item.stash.get(LACKED, "") for item in self._added):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def one_for_each(names: list[str], items: list[pytest.Item]) -> list[pytest.Item]:
    """Return for each row one test that names it and few others; raise UsageError unless all rows are lacking."""
    first: dict[str, pytest.Item] = {}
    for item in sorted(items, key=lambda item: len(names_of(item))) if names else ():
        for name in names_of(item):
            first.setdefault(name, item)
    present = [name for name in names if not ROWS[name].why_not()]
    unnamed = [name for name in names if name not in first]
    if present or unnamed:
        raise pytest.UsageError(
            f"--one-for-each: here all the same: {present}; named by no test: {unnamed}; expected rows of "
            "tests/needs.py that the machine lacks, and a test that names each"
        )
    return list({first[name].nodeid: first[name] for name in names}.values())


@cache
def _names_a_lane(path: Path) -> bool:
    return LANE.search(path.read_text(encoding="utf-8")) is not None


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
        yield zookeeper_on(ground)
    finally:
        ground.close()


@pytest.fixture
def java_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the search for Java by a fixed result, for a test that starts none."""
    found = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    for module in (runner, server, check):
        monkeypatch.setattr(module, "find_java", lambda: found)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Open a run's history."""
    with History(tmp_path / "history.jsonl") as history:
        yield history


@pytest.fixture
def cluster(history: History) -> FakeCluster:
    """Return a fake cluster that only records the calls."""
    return FakeCluster(history)
