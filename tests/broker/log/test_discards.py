"""Files below a log's start go beside the loop, some at a time; none comes back, and no new one goes with them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.log import checkpoint, open_data_dir
from targets.broker.log.data_dir import DataDir
from targets.broker.log.discards import STEP_FILES, Work
from targets.broker.log.file_log import FileLog
from targets.broker.log.names import segment_offsets
from tests.broker.log.batches import TP, all_of, offsets, singles

FILES = 3_000
START = FILES - 10


@pytest.fixture
def later() -> list[Work]:
    return []


def made(path: Path, later: list[Work], files: int = 30) -> tuple[DataDir, FileLog]:
    """Return a log of one batch a file, whose files below its start wait to be unlinked."""
    data = open_data_dir(path, segment_bytes=62, later=later.append).data
    log = data.create_log(TP)
    singles(log, files)
    return data, log


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the calls that change names, as they are made."""
    calls: list[str] = []
    for name in ("unlink", "rename"):
        real = getattr(os, name)

        def call(*args: Any, _name: str = name, _real: Any = real, **named: Any) -> Any:
            calls.append(_name)
            return _real(*args, **named)

        monkeypatch.setattr(os, name, call)
    return calls


def test_start_that_passes_3000_files_unlinks_none_in_the_loop_and_few_in_each_step(
    tmp_path: Path, later: list[Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # 3,000 files are made durable one by one
    _, log = made(tmp_path, later, FILES)
    calls = counted(monkeypatch)
    log.advance_start(START)
    # The start's checkpoint is all that the loop has written.
    assert ["rename"] == calls
    assert FILES == len(segment_offsets(log.directory))
    assert [(at, at) for at in range(START, FILES)] == offsets(all_of(log))
    (work,) = later
    more, steps = True, 0
    while more:
        calls.clear()
        more, steps = work(), steps + 1
        assert calls == ["unlink"] * len(calls)
        assert len(calls) <= STEP_FILES
    assert FILES // STEP_FILES == steps
    assert [*range(START, FILES)] == segment_offsets(log.directory)


@pytest.mark.parametrize("steps", [0, 1, 2], ids=["before a step", "after a step", "at the end"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean end", "crash"])
def test_what_is_left_when_the_broker_ends_never_comes_back(
    tmp_path: Path, later: list[Work], monkeypatch: pytest.MonkeyPatch, steps: int, clean: bool
) -> None:
    """A clean shutdown keeps the start, which the name of the first file does not say yet."""
    monkeypatch.setattr("targets.broker.log.discards.STEP_FILES", 10)
    data, log = made(tmp_path, later)
    log.flush()
    log.advance_start(20)
    assert {TP: 20} == checkpoint.read_offsets(tmp_path / checkpoint.LOG_STARTS_FILE)
    for _ in range(steps):
        later[0]()
    if clean:
        data.close_cleanly({TP: 30})
    else:
        data.close()
    found = open_data_dir(tmp_path).data.logs[TP]
    assert (20, 30, [*range(20, 30)]) == (found.start_offset, found.end_offset, segment_offsets(found.directory))


def test_files_that_come_while_others_wait_are_part_of_the_same_work(tmp_path: Path, later: list[Work]) -> None:
    _, log = made(tmp_path, later)
    log.advance_start(10)
    log.advance_start(20)
    (work,) = later
    assert not work()
    assert [*range(20, 30)] == segment_offsets(log.directory)
    log.advance_start(25)
    assert 2 == len(later)
    assert not later[1]()
    assert [*range(25, 30)] == segment_offsets(log.directory)


def test_file_that_has_the_name_of_one_that_waited_stays(tmp_path: Path, later: list[Work]) -> None:
    """A follower whose leader's log ends below its own start begins anew there."""
    data, log = made(tmp_path, later)
    log.advance_start(20)
    log.truncate_to(3, LeoAfterCut.TARGET)
    singles(log, 2)
    assert not later[0]()
    assert ([3, 4], [(3, 3), (4, 4)]) == (segment_offsets(log.directory), offsets(all_of(log)))
    data.close()
    assert [3, 4] == segment_offsets(open_data_dir(tmp_path).data.logs[TP].directory)


def test_log_that_is_made_anew_keeps_its_files(tmp_path: Path, later: list[Work]) -> None:
    data, log = made(tmp_path, later)
    log.advance_start(20)
    log.delete()
    singles(data.create_log(TP), 3)
    assert not later[0]()
    assert [0, 1, 2] == segment_offsets(data.logs[TP].directory)


def test_cut_within_the_first_file_left_leaves_what_waits_below(tmp_path: Path, later: list[Work]) -> None:
    data, log = made(tmp_path, later)
    log.advance_start(20)
    log.truncate_to(20, LeoAfterCut.TARGET)
    data.close()
    found = open_data_dir(tmp_path).data.logs[TP]
    assert (20, 20, [20]) == (found.start_offset, found.end_offset, segment_offsets(found.directory))
