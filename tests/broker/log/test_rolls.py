"""A log's files: where they begin and end, how large they are, and when the next one begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from targets.broker.core.log_port import File
from targets.broker.log import FileLog, LogOptions, open_data_dir
from targets.broker.log.names import segment_offsets
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, batch, new_log

SIZE = 62  # of a batch of one record


def append(log: FileLog, *times: int) -> None:
    for time in times:
        log.append_as_leader([batch(timestamp=time)], 0)


def reopened(log: FileLog, **options: int) -> FileLog:
    """Return the log as the next process opens it."""
    log.close()
    return open_log(TP, log.directory, Known(clean=False), LogOptions(**options))[0]


def test_files_tell_their_offsets_size_and_greatest_time(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d", segment_bytes=2 * SIZE)
    append(log, 100, 300, 200, 50, 400)
    files = (File(0, 2, 2 * SIZE, 300), File(2, 4, 2 * SIZE, 300), File(4, 5, SIZE, 400))
    assert files == log.files()
    assert files == reopened(log, segment_bytes=2 * SIZE).files()


def test_empty_log_has_one_empty_file(tmp_path: Path) -> None:
    (only,) = new_log(tmp_path / "d").files()
    assert (0, 0, 0) == only[:3]
    assert only.latest < 0


def test_roll_begins_a_file_at_the_end_once(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d")
    append(log, 100, 200)
    log.roll()
    log.roll()
    assert [0, 2] == segment_offsets(log.directory)
    append(log, 300)
    assert (File(0, 2, 2 * SIZE, 200), File(2, 3, SIZE, 300)) == log.files()


def test_whole_log_can_be_deleted_after_a_roll(tmp_path: Path) -> None:
    """Source: Kafka, UnifiedLog.deleteSegments: "we must always have at least one segment"."""
    log = new_log(tmp_path / "d")
    append(log, 100, 200)
    log.roll()
    log.advance_start(2)
    assert [2] == segment_offsets(log.directory)
    append(log, 300)
    assert (2, 3) == (log.start_offset, log.end_offset)


@pytest.mark.parametrize(
    ("times", "bases"),
    [
        ((100, 150, 200), [0]),
        ((100, 201), [0, 1]),
        ((100, 200, 201, 250, 302), [0, 2, 4]),
        ((100, 50, 201), [0, 2]),
        ((-1, 10_000), [0]),
    ],
    ids=["within", "past", "counted-from-each-first", "backwards", "no-time"],
)
def test_file_ends_before_a_batch_that_is_too_long_after_its_first(
    tmp_path: Path, times: tuple[int, ...], bases: list[int]
) -> None:
    """Source: Kafka, LogSegment.timeWaitedForRoll: the time of the first batch counts, where it has one."""
    log = new_log(tmp_path / "d", segment_ms=100)
    append(log, *times)
    assert bases == segment_offsets(log.directory)


def test_batches_of_one_append_are_divided_by_time_too(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d", segment_ms=100)
    log.append_as_leader([batch(timestamp=time) for time in (100, 200, 301, 302)], 0)
    assert [0, 2] == segment_offsets(log.directory)


def test_time_of_a_files_first_batch_is_known_after_a_restart_and_forgotten_with_it(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d", segment_ms=100)
    append(log, 100)
    again = reopened(log, segment_ms=100)
    append(again, 201)
    assert [0, 1] == segment_offsets(log.directory)
    again.truncate_fully(0)
    append(again, 500)
    assert [0] == segment_offsets(log.directory)


def test_data_directory_gives_its_logs_the_limit_of_time(tmp_path: Path) -> None:
    log = open_data_dir(tmp_path / "data", segment_ms=100).data.create_log(TP)
    append(log, 100, 201)
    assert [0, 1] == segment_offsets(log.directory)


def test_log_that_is_configured_anew_begins_its_next_files_otherwise_and_keeps_those_it_has(
    tmp_path: Path,
) -> None:
    """Source: Kafka, TopicConfigHandler.updateLogConfig: a log's own settings change while it is written."""
    log = new_log(tmp_path / "d", segment_bytes=2 * SIZE)
    append(log, 0, 0, 0)
    assert [0, 2] == segment_offsets(log.directory)
    log.configure(3 * SIZE, 10)
    append(log, 0, 0)
    assert [0, 2] == segment_offsets(log.directory)
    append(log, 0, 10)
    assert [0, 2, 5] == segment_offsets(log.directory)
    append(log, 11)
    assert [0, 2, 5, 7] == segment_offsets(log.directory)
