"""A large history has its tables made by a process beside it, which ends with it however it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cleanup.ledger import reap, runs_dir
from harness.cleanup.process import Identity, end, ended_within, identity_of, is_alive
from harness.history.file import History
from harness.model import OpType, Source
from harness.tables import following as module
from harness.tables.following import Following
from harness.tables.manifest import FOLDER
from harness.tables.writer import make_tables, read_manifest
from tests.simulator.broker.test_environment import play as play_in_simulator

ROOT = Path(__file__).resolve().parents[2]
SAYS = "import sys; print('first'); print('no room')"


@pytest.fixture(autouse=True)
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have histories of 1,000 bytes followed, and ledgers of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(module, "LINES_MAX", 1_000)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[History]:
    """Return the history of a run in its folder."""
    (tmp_path / "run").mkdir()
    with History(tmp_path / "run" / "history.jsonl") as history:
        yield history


def record(history: History, ops: int) -> None:
    """Record so many ops."""
    for number in range(ops):
        history.record_line(Source.BROKER, "A", OpType.INFO, "high-watermark", {"topic": "t", "to": number})


def started(following: Following) -> Identity:
    """Return the identity of the process, after it was started."""
    assert following._starting is not None
    following._starting.join()
    assert following._follower is not None
    found = identity_of(following._follower._process.pid)
    assert found is not None
    return found


def left(history: History) -> tuple[list[str], list[str]]:
    """Return the names in the run's folder, and the ledgers that are left."""
    names = sorted(path.name for path in history.path.parent.iterdir())
    return names, [path.name for path in runs_dir().iterdir() if path.is_dir()]


def test_small_history_starts_nothing(run: History) -> None:
    threads = set(threading.enumerate())
    with Following(run) as following:
        record(run, 5)
        assert run.size <= 1_000
        assert set(threading.enumerate()) <= threads
        run.close()
        following.finish()
    assert (["history.jsonl"], []) == left(run)


@pytest.mark.slow
def test_large_history_has_its_tables_and_leaves_no_process(tmp_path: Path, run: History) -> None:
    with Following(run) as following:
        record(run, 500)
        follower = started(following)
        assert [] == run.listeners
        record(run, 500)
        run.close()
        following.finish()
        assert not is_alive(follower)
    assert (["history.jsonl", "tables"], []) == left(run)
    assert (1_000, run.size) == (read_manifest(run.path).ops, read_manifest(run.path).size)
    by_follower = {path.name: path.read_bytes() for path in (run.path.parent / FOLDER).iterdir()}
    make_tables(run.path)
    assert {path.name: path.read_bytes() for path in (run.path.parent / FOLDER).iterdir()} == by_follower


@pytest.mark.slow
def test_run_that_fails_ends_the_process_and_leaves_nothing_half(run: History) -> None:
    found: list[Identity] = []

    def fail() -> None:
        with Following(run) as following:
            record(run, 500)
            found.append(started(following))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [False] == [is_alive(follower) for follower in found]
    assert (["history.jsonl"], []) == left(run)


@pytest.mark.slow
def test_follower_that_is_killed_fails_no_run(run: History, caplog: pytest.LogCaptureFixture) -> None:
    with Following(run) as following:
        record(run, 500)
        assert end(started(following))
        record(run, 500)
        run.close()
        following.finish()
    assert (["history.jsonl"], []) == left(run)
    (said,) = caplog.messages
    assert f"{run.path}: has no tables yet: its process ended with -9; they are made when it is checked" == said
    make_tables(run.path)
    assert 1_000 == read_manifest(run.path).ops


def test_process_that_cannot_make_tables_says_why_in_one_line(
    run: History, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRAM", (sys.executable, "-c", SAYS + "; sys.exit(1)"))
    with Following(run) as following:
        record(run, 50)
        run.close()
        following.finish()
    assert [f"{run.path}: has no tables yet: no room; they are made when it is checked"] == caplog.messages
    assert (["history.jsonl"], []) == left(run)


def test_process_that_cannot_be_started_says_why_in_one_line(
    run: History, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRAM", ("/no/such/program",))
    with Following(run) as following:
        record(run, 50)
        run.close()
        following.finish()
    (said,) = caplog.messages
    assert "is not followed: [Errno 2] No such file or directory: '/no/such/program'" in said
    assert (["history.jsonl"], []) == left(run)


def test_run_that_is_cancelled_does_not_wait(run: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRAM", (sys.executable, "-c", "import signal; signal.pause()"))
    cancelled = threading.Event()
    with Following(run, cancelled.is_set) as following:
        record(run, 50)
        follower = started(following)
        cancelled.set()
        following.finish()
        assert is_alive(follower)
    assert not is_alive(follower)
    assert (["history.jsonl"], []) == left(run)


def test_process_that_takes_too_long_is_ended(
    run: History, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRAM", (sys.executable, "-c", "import signal; signal.pause()"))
    monkeypatch.setattr("harness.limits.TABLES_END_S_MAX", 0.01)
    with Following(run) as following:
        record(run, 50)
        follower = started(following)
        run.close()
        following.finish()
    assert not is_alive(follower)
    (said,) = caplog.messages
    assert f"{run.path}: has no tables yet: not made 0 s after the run; they are made when it is checked" == said


_PARENT = """
import sys
from pathlib import Path
from harness.history.file import History
from harness.tables import following
from harness.tables.following import Following
from harness.model import OpType, Source

following.LINES_MAX = 1_000
history = History(Path(sys.argv[1]))
with Following(history) as follow:
    for number in range(500):
        history.record_line(Source.BROKER, "A", OpType.INFO, "high-watermark", {"topic": "t", "to": number})
    follow._starting.join()
    print(follow._follower._process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_process_ends_with_a_harness_that_is_killed_and_leaves_nothing_half(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(history)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        follower = identity_of(pid)
        assert follower is not None
        parent.send_signal(signal.SIGKILL)
        assert ended_within(follower, 60)
    assert ["history.jsonl"] == sorted(path.name for path in tmp_path.iterdir() if path.name != "state")
    (ledger,) = [path for path in runs_dir().iterdir() if path.is_dir()]
    notes = [
        json.loads(line)["kind"] for line in (ledger / "ledger.jsonl").read_text().splitlines() if '"note"' in line
    ]
    assert ["directory", "process"] == notes
    assert () == reap().left
    assert not ledger.exists()


@pytest.mark.slow
def test_large_run_in_the_simulator_has_its_tables_when_it_has_been_played(tmp_path: Path) -> None:
    run = play_in_simulator(tmp_path)
    manifest = read_manifest(run.history)
    assert run.history.stat().st_size == manifest.size
    assert run.history.read_bytes().count(b"\n") == manifest.ops
    assert not (run.path / "tables.partial").exists()
    assert [] == [path for path in runs_dir().iterdir() if path.is_dir()]


def test_small_run_in_the_simulator_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES_MAX", 10**6)
    monkeypatch.setattr(module, "PROGRAM", ("/no/such/program",))
    run = play_in_simulator(tmp_path)
    assert not run.tables.exists()
    assert not (tmp_path / "state").exists()
