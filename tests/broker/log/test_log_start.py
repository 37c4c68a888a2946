"""A log's start moves up durably, and the files below it go."""

from __future__ import annotations

from pathlib import Path

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.log import DataDir, FileLog, open_data_dir
from targets.broker.log.names import segment_offsets
from tests.broker.log.batches import TP, all_of, offsets, singles

SMALL = 3 * 62  # three batches of one record


def new_data(path: Path, records: int = 10) -> tuple[DataDir, FileLog]:
    """Return a data directory with a log of so many records, three to a segment."""
    data = open_data_dir(path, segment_bytes=SMALL).data
    singles(data.create_log(TP), records)
    assert [0, 3, 6, 9][: (records + 2) // 3] == segment_offsets(data.logs[TP].directory)
    return data, data.logs[TP]


def again(data: DataDir) -> FileLog:
    """Return the log as the next process finds it after a kill."""
    data.close()
    return open_data_dir(data.path, segment_bytes=SMALL).logs[TP][0]


@pytest.mark.parametrize(
    ("start", "left"),
    [(1, [0, 3, 6, 9]), (3, [3, 6, 9]), (5, [3, 6, 9]), (9, [9]), (10, [9])],
)
def test_L6_segments_below_the_new_start_are_deleted_and_no_other(
    tmp_path: Path, start: int, left: list[int]
) -> None:
    """Source: Kafka, UnifiedLog.deleteLogStartOffsetBreachedSegments; the newest segment stays."""
    _, log = new_data(tmp_path)
    log.advance_start(start)
    assert (start, 10, left) == (log.start_offset, log.end_offset, segment_offsets(log.directory))
    assert [] == list(log.directory.glob("*.deleted"))
    assert [(at, at) for at in range(start, 10)] == offsets(log.read(start, 10, 1 << 20))


@pytest.mark.parametrize("start", [3, 5, 10])
def test_start_is_kept_across_a_kill(tmp_path: Path, start: int) -> None:
    """Issue: the log start offset is kept across restarts. Kafka keeps it only once its checkpoint was written."""
    data, log = new_data(tmp_path)
    log.advance_start(start)
    found = again(data)
    assert (start, 10) == (found.start_offset, found.end_offset)


def test_segments_that_a_power_loss_brings_back_are_deleted_once_more(tmp_path: Path) -> None:
    data, log = new_data(tmp_path)
    kept = {path: path.read_bytes() for path in log.directory.glob("*.log")}
    log.advance_start(7)
    for path, content in kept.items():
        path.write_bytes(content)
    found = again(data)
    assert (7, 10, [6, 9]) == (found.start_offset, found.end_offset, segment_offsets(found.directory))


def test_truncation_below_the_start_takes_the_start_with_it_also_on_disk(tmp_path: Path) -> None:
    """Else the next start would drop the records that were appended since, below the old start."""
    data, log = new_data(tmp_path)
    log.advance_start(8)
    log.truncate_to(7, LeoAfterCut.TARGET)
    singles(log, 2)
    found = again(data)
    assert (7, [(7, 7), (8, 8)]) == (found.start_offset, offsets(all_of(found)))


def test_start_moves_neither_back_nor_past_the_end(tmp_path: Path) -> None:
    _, log = new_data(tmp_path)
    log.advance_start(5)
    log.advance_start(4)
    assert 5 == log.start_offset
    with pytest.raises(AssertionError, match="start 11; expected at most 10, where the log ends"):
        log.advance_start(11)


def test_positions_of_what_remains_stay_as_they_were(tmp_path: Path) -> None:
    """A fetch that waits has looked up its position before."""
    _, log = new_data(tmp_path)
    before = [log.position_of(offset) for offset in range(6, 11)]
    log.advance_start(6)
    assert before == [log.position_of(offset) for offset in range(6, 11)]
    assert log.size_bytes == sum(path.stat().st_size for path in log.directory.glob("*.log"))


def test_log_made_again_under_a_deleted_ones_name_starts_at_zero(tmp_path: Path) -> None:
    data, log = new_data(tmp_path)
    log.advance_start(7)
    log.delete()
    singles(data.create_log(TP), 2)
    found = again(data)
    assert (0, 2) == (found.start_offset, found.end_offset)
