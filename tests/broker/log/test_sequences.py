"""What a log on files says of its producers is the same after a start as when it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from targets.broker.core.log_port import DamagedError, LeoAfterCut
from targets.broker.core.sequences import Sequences
from targets.broker.log.file_log import FileLog
from targets.broker.log.options import LogOptions
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, all_of, batch, new_log

BATCHES = 200


def written(folder: Path) -> tuple[Sequences, FileLog]:
    """Write batches of two producers, and of none, to a log of several files."""
    log = new_log(folder, segment_bytes=2_000)
    for at in range(BATCHES):
        numbers = {"producer_id": at % 3, "producer_epoch": 0, "base_sequence": at // 3} if at % 3 else {}
        log.append_as_leader([batch(**numbers)], 0)
    return Sequences.of(all_of(log)), log


@pytest.mark.parametrize("clean", [True, False])
def test_start_finds_what_was_written_over_all_files(tmp_path: Path, *, clean: bool) -> None:
    known, log = written(tmp_path / "data")
    log.close()
    _, found = open_log(TP, log.directory, Known(clean=clean), LogOptions())
    assert {1, 2} == found.sequences.known.keys()
    assert known == found.sequences


def test_start_knows_so_many_producers_as_it_may(tmp_path: Path) -> None:
    _, log = written(tmp_path / "data")
    log.close()
    _, found = open_log(TP, log.directory, Known(clean=True), LogOptions(producers_max=1))
    assert 1 == len(found.sequences.known)


def test_headers_say_what_whole_batches_do_without_their_records(tmp_path: Path) -> None:
    _, log = written(tmp_path / "data")
    log.truncate_to(150, LeoAfterCut.TARGET)
    for start in (0, 63, 149, 150):
        assert [
            (each.base_offset, each.next_offset, each.producer_id, each.producer_epoch, each.base_sequence)
            for each in log.read(start, 150, 1 << 20)
        ] == [
            (each.base_offset, each.next_offset, each.producer_id, each.producer_epoch, each.base_sequence)
            for each in log.headers(start)
        ]


def test_header_that_cannot_be_read_ends_them(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    for _ in range(BATCHES):
        log.append_as_leader([batch()], 0)
    path = next(log.directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    size = len(data) // BATCHES
    data[10 * size + 16] = 9  # the magic of the eleventh
    path.write_bytes(data)
    found: list[int] = []
    with pytest.raises(DamagedError):
        found.extend(each.base_offset for each in log.headers(0))
    assert list(range(10))[: len(found)] == found
