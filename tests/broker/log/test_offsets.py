"""
The checkpoints of offsets, while logs are deleted and made anew: no log is ever taken for another of its name.

Source:  Kafka, LogManager; Kafka Replication Design V3, C, stopReplica.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from targets.broker.core.messages import TopicPartition
from targets.broker.log import FileLog, checkpoint, open_data_dir, together
from targets.broker.log.data_dir import DataDir
from tests.broker.log.batches import singles

GONE, AGAIN, KEPT = (TopicPartition("t", number) for number in range(3))
RECORDS, START = 6, 4
# Of two batches: recovery believes whole files below the recovery point.
SEGMENT_BYTES = 130
POINTS = checkpoint.RECOVERY_POINTS_FILE


def opened(path: Path) -> DataDir:
    return open_data_dir(path, segment_bytes=SEGMENT_BYTES).data


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    """A data directory that a process begins with: all three logs stand in all checkpoints."""
    made = opened(tmp_path / "data")
    for tp in (GONE, AGAIN, KEPT):
        log = made.create_log(tp)
        singles(log, RECORDS)
        log.flush()
        log.advance_start(START)
    made.write_recovery_points()
    made.close()
    checkpoint.write_offsets(made.path / checkpoint.CLEANED_FILE, dict.fromkeys((GONE, AGAIN, KEPT), RECORDS))
    return opened(made.path)


def damage_of_unflushed(log: FileLog) -> None:
    """Append what no flush follows, of which a power loss leaves the first batch damaged."""
    singles(log, RECORDS)
    first = min(log.directory.glob("*.log"))
    with first.open("r+b") as file:
        file.seek(61)
        file.write(b"?")


def assert_none_is_taken_for_another(path: Path) -> None:
    """Open what a crash left; a log that is empty or missing goes on as a new one, also in the next process."""
    data = opened(path)
    ends = {tp: (log.start_offset, log.end_offset) for tp, log in data.logs.items()}
    assert (START, RECORDS) == ends.pop(KEPT)
    assert {(0, 0), (START, RECORDS)} >= set(ends.values())
    for tp in (GONE, AGAIN):
        if ends.get(tp) != (START, RECORDS):
            log = data.logs.get(tp) or data.create_log(tp)
            assert (0, 0) == (log.start_offset, log.end_offset)
            damage_of_unflushed(log)
    data.close()
    after = opened(path)
    for tp in (GONE, AGAIN):
        log = after.logs[tp]
        whole = ends.get(tp) == (START, RECORDS)
        assert ((START, RECORDS) if whole else (0, 0)) == (log.start_offset, log.end_offset), tp
    after.close()


def test_no_crash_while_logs_are_deleted_and_made_anew_gives_one_the_offsets_of_another(
    data: DataDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory as it is before each change of a name, a file or what is durable, and at the end."""
    copies: list[Path] = []
    copying = False

    def copy() -> None:
        nonlocal copying
        copies.append(tmp_path / f"copy-{len(copies)}")
        copying = True
        shutil.copytree(data.path, copies[-1])
        copying = False

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if not copying:  # which does the same
                copy()
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(together, "THREADS_MAX", 1)  # one after another: no copy while another file is written
        for name in ("open", "fsync", "replace", "rename", "mkdir"):
            patched.setattr(os, name, before(getattr(os, name)))
        with data.together():
            data.logs[GONE].delete()
            data.logs[AGAIN].delete()
            data.create_log(AGAIN, topic_id=7)
    copy()
    data.close()
    assert len(copies) > 20
    for each in copies:
        assert_none_is_taken_for_another(each)


def test_log_that_a_crash_left_in_a_checkpoint_alone_leaves_it_when_another_is_made(tmp_path: Path) -> None:
    """A name that was free at the start: what is below the old recovery point is scanned all the same."""
    opened(tmp_path).close()
    checkpoint.write_offsets(tmp_path / POINTS, {GONE: RECORDS, KEPT: 0})
    data = opened(tmp_path)
    assert {} == data.logs
    damage_of_unflushed(data.create_log(GONE))
    assert {KEPT: 0} == checkpoint.read_offsets(tmp_path / POINTS)
    data.close()
    assert 0 == opened(tmp_path).logs[GONE].end_offset


def test_where_an_old_log_started_is_gone_before_the_directory_of_the_next_is_there(
    data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty log would start and end there."""
    there: list[bool] = []
    real = os.mkdir

    def mkdir(*arguments: Any, **options: Any) -> None:
        there.append(AGAIN in checkpoint.read_offsets(data.path / checkpoint.LOG_STARTS_FILE))
        real(*arguments, **options)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with data.together():
        data.logs[AGAIN].delete()
        data.create_log(AGAIN)
    assert [False] == there


def test_what_was_written_meanwhile_is_not_written_again(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    data.logs[GONE].delete()
    written: list[str] = []
    real = checkpoint.write_offsets

    def write(path: Path, *arguments: Any, **options: Any) -> int:
        written.append(path.name)
        return real(path, *arguments, **options)

    monkeypatch.setattr(checkpoint, "write_offsets", write)
    with data.together():
        data.logs[AGAIN].delete()
        data.logs[KEPT].advance_start(START + 1)
    assert sorted((checkpoint.LOG_STARTS_FILE, POINTS, checkpoint.CLEANED_FILE)) == sorted(written)
    assert {KEPT: START + 1} == checkpoint.read_offsets(data.path / checkpoint.LOG_STARTS_FILE)
