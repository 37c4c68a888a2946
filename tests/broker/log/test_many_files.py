"""
Thousands of files hold up no loop: what a step does about each is counted, not timed.

A cut renames its files, as Kafka does, and a thread unlinks them; one append begins few files.
Source:  Kafka, LocalLog.deleteSegmentFiles (asyncDelete), UnifiedLog.append (it rolls at most once).
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.log import checkpoint, open_data_dir
from targets.broker.log.discards import STEP_FILES, Work
from targets.broker.log.file_log import FileLog
from targets.broker.log.names import DELETED_SUFFIX, segment_offsets
from targets.broker.log.options import APPEND_FILES_MAX
from targets.broker.log.together import THREADS_MAX
from tests.broker.log.batches import TP, all_of, batch, offsets, singles
from tests.broker.log.test_discards import made

FILES = 1_000
CALLS = ("open", "unlink", "rename", "fsync", "ftruncate")
# A checkpoint's, and what belongs to the one file that is cut or begun.
FEW = 20


@pytest.fixture
def later() -> list[Work]:
    return []


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targets.broker.log.discards.STEP_FILES", 10)


class Calls:
    """Counts calls of the system, as they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, str]] = []
        for name in CALLS:
            monkeypatch.setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.made.append((name, str(args[0])))
            return real(*args, **named)

        return call

    def take(self) -> Counter[str]:
        """Return how many there were of each since the last time."""
        found = Counter(name for name, _ in self.made)
        self.made.clear()
        return found


def bases(log: FileLog) -> list[int]:
    return segment_offsets(log.directory)


def leftovers(log: FileLog) -> list[str]:
    return sorted(path.name for path in log.directory.iterdir() if path.name.endswith(DELETED_SUFFIX))


CUTS: dict[str, tuple[Callable[[FileLog], object], list[int]]] = {
    "to the middle": (lambda log: log.truncate_to(FILES // 2, LeoAfterCut.TARGET), [*range(FILES // 2 + 1)]),
    "fully": (lambda log: log.truncate_fully(7), [7]),
    "fully, below its start": (lambda log: log.truncate_fully(0), [0]),
}


@pytest.mark.parametrize("name", CUTS)
def test_cut_of_1000_files_unlinks_none_in_the_loop_and_few_in_each_step(
    name: str, tmp_path: Path, later: list[Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, left = CUTS[name]
    with monkeypatch.context() as quick:
        quick.setattr(os, "fsync", lambda _: None)  # 1,000 files are made durable one by one
        _, log = made(tmp_path, later, FILES)
        if name == "fully, below its start":
            log.advance_start(FILES - 10)
    calls = Calls(monkeypatch)
    cut(log)
    found = calls.take()
    gone = FILES - len(set(left) & {*range(FILES)})
    assert left == bases(log)
    assert 0 == found["unlink"]
    # One rename for each file is all that grows with them.
    assert gone <= found["rename"] <= FILES + FEW
    assert max(found[each] for each in ("open", "fsync", "ftruncate")) <= FEW
    (work,) = later
    more = True
    while more:
        more = work()
        assert calls.take()["unlink"] <= STEP_FILES
    assert (left, []) == (bases(log), leftovers(log))


def test_cut_renames_its_files_from_the_last_to_the_first(
    tmp_path: Path, later: list[Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash in between leaves a shorter log, not one with a gap."""
    _, log = made(tmp_path, later)
    calls = Calls(monkeypatch)
    log.truncate_to(3, LeoAfterCut.TARGET)
    renamed = [path for name, path in calls.made if name == "rename"]
    assert [f"{base:020d}.log" for base in range(29, 3, -1)] == renamed


@pytest.mark.parametrize("steps", [0, 1, 3], ids=["before a step", "after a step", "at the end"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean end", "crash"])
@pytest.mark.parametrize("fully", [True, False], ids=["fully", "to the middle"])
@pytest.mark.usefixtures("small_steps")
def test_what_was_cut_never_comes_back_when_the_broker_ends(
    tmp_path: Path, later: list[Work], steps: int, clean: bool, fully: bool
) -> None:
    data, log = made(tmp_path, later)
    log.flush()
    if fully:
        log.truncate_fully(4)
    else:
        log.truncate_to(4, LeoAfterCut.TARGET)
    singles(log, 2)
    for _ in range(steps):
        later[0]()
    kept = [(at, at) for at in range(4 if fully else 0, 6)]
    assert kept == offsets(all_of(log))
    if clean:
        data.close_cleanly({TP: 5})
    else:
        data.close()
    found = open_data_dir(tmp_path).data.logs[TP]
    assert (kept, []) == (offsets(all_of(found)), leftovers(found))


def test_log_that_is_cut_again_before_its_files_are_gone_keeps_the_newest(
    tmp_path: Path, later: list[Work]
) -> None:
    """Files of one name wait twice, and one of that name is in use."""
    _, log = made(tmp_path, later)
    for _ in range(2):
        log.truncate_to(4, LeoAfterCut.TARGET)
        singles(log, 10)
    while later[0]():
        pass
    assert ([*range(14)], []) == (bases(log), leftovers(log))
    assert [(at, at) for at in range(14)] == offsets(all_of(log))


def test_start_that_is_lowered_takes_the_names_below_it_durably_first(
    tmp_path: Path, later: list[Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next start would find the records below the old start again."""
    _, log = made(tmp_path, later)
    log.advance_start(20)
    calls = Calls(monkeypatch)
    log.truncate_fully(5)
    lowered = next(
        at for at, call in enumerate(calls.made) if call == ("rename", f"{checkpoint.LOG_STARTS_FILE}.tmp")
    )
    before = calls.made[:lowered]
    assert {f"{base:020d}.log" for base in range(20)} <= {path for name, path in before if name == "rename"}
    last = max(at for at, (name, path) in enumerate(before) if name == "rename" and path.endswith(".log"))
    assert "fsync" in {name for name, _ in before[last:]}


def test_append_of_1000_batches_begins_few_files(
    tmp_path: Path, later: list[Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit into them joins the last one: Kafka rolls once for all that it appends at once."""
    data = open_data_dir(tmp_path, segment_bytes=62, later=later.append).data
    log = data.create_log(TP)
    log.adopt(1)
    calls = Calls(monkeypatch)
    log.append_as_leader([batch() for _ in range(FILES)], 0)
    assert calls.take()["fsync"] <= APPEND_FILES_MAX
    assert [*range(APPEND_FILES_MAX + 1)] == bases(log)
    assert [(at, at) for at in range(FILES)] == offsets(all_of(log))
    singles(log, 2)
    assert [*range(APPEND_FILES_MAX + 1), FILES, FILES + 1] == bases(log)
    data.close()
    assert FILES + 2 == open_data_dir(tmp_path).data.logs[TP].end_offset


def test_append_as_follower_begins_few_files(tmp_path: Path, later: list[Work]) -> None:
    of_leader = open_data_dir(tmp_path / "a").data.create_log(TP)
    singles(of_leader, 100)
    log = open_data_dir(tmp_path / "b", segment_ms=1, later=later.append).data.create_log(TP)
    log.configure(62, 1)
    log.append_as_follower(all_of(of_leader))
    assert [*range(APPEND_FILES_MAX + 1)] == bases(log)
    assert [(at, at) for at in range(100)] == offsets(all_of(log))


@pytest.mark.parametrize("end", ["flush", "close"])
def test_files_that_a_crash_left_are_flushed_side_by_side(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start does not know which of them are durable, so its first flush is of all."""
    data, _ = made(tmp_path, [], 4 * THREADS_MAX)
    data.close()
    found = open_data_dir(tmp_path).data
    # The first file of each thread waits for that of every other.
    together, waited, flushed = threading.Barrier(THREADS_MAX), threading.local(), list[str]()
    real = os.fsync

    def fsync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.suffix == ".log":
            if not hasattr(waited, "done"):
                waited.done = True
                together.wait(5)
            flushed.append(path.name)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    if end == "flush":
        found.logs[TP].flush()
    else:
        found.close_cleanly({TP: 0})
    assert [f"{base:020d}.log" for base in range(4 * THREADS_MAX)] == sorted(flushed)
    assert 4 * THREADS_MAX == found.logs[TP].recovery_point
