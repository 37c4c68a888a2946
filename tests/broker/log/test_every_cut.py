"""
A data directory of which one file ends early, at each of its bytes: it opens, keeps what is whole, and says so.

A crash leaves such files: a segment that was not flushed, or a temporary file; and a checkpoint, where a file was
renamed before it was flushed. Files of a cleaning are cut in test_compaction_crashes.
Source:  KIP-101, Unclean Shutdown; KAFKA-16541; Kafka, LogLoader and CheckpointFile.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from targets.broker.core.epochs import EpochCache, recovered_cache
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.log import FileLog, checkpoint
from targets.broker.log.batch import parse_header
from targets.broker.log.data_dir import OpenedData, open_data_dir
from tests.broker.log.batches import TP, all_of
from tests.broker.log.keyed import Pair, append, clean_all, held

RULES = PROTOCOLS["kip380"]
SEGMENT_BYTES = 260
OTHER = TopicPartition("other", 12)
TOPIC_ID = 2**40 + 7
HIGH_WATERMARK = 14
START = 2
OFFSETS = (
    checkpoint.HIGH_WATERMARKS_FILE,
    checkpoint.RECOVERY_POINTS_FILE,
    checkpoint.LOG_STARTS_FILE,
    checkpoint.CLEANED_FILE,
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two logs: one is compacted in part, begins inside a file, and has four epochs."""
    path = tmp_path_factory.mktemp("written") / "data"
    data = open_data_dir(path, segment_bytes=SEGMENT_BYTES).data
    log, cache = data.create_log(TP, TOPIC_ID), EpochCache(RULES)
    for epoch in (1, 2, 12, 30):
        cache.assign(epoch, log.end_offset)
        log.write_epochs(cache.entries, flush=True)
        append(log, *([(f"k{number % 3}", f"{epoch}.{number}")] for number in range(4)), epoch=epoch)
    clean_all(log, 9)
    log.advance_start(START)
    append(data.create_log(OTHER), [("k", "v")])
    data.write_recovery_points()
    data.write_high_watermarks({TP: HIGH_WATERMARK, OTHER: 1})
    data.close()
    return path


def cut(written: Path, folder: Path, name: str) -> Iterator[tuple[int, Path]]:
    """Copy the directory for each byte of a file, cut the file there, and return where and the copy."""
    whole = (written / name).read_bytes()
    for size in range(len(whole)):
        copy = shutil.copytree(written, folder / "cut")
        (copy / name).write_bytes(whole[:size])
        yield size, copy
        shutil.rmtree(copy)


def cache_of(opened: OpenedData) -> EpochCache:
    """Return the epochs that the broker begins with."""
    log, found = opened.logs[TP]
    bounds = log.start_offset, log.end_offset
    return recovered_cache(RULES, found.file_epochs, found.batch_epochs, *bounds, batch_ends=found.batch_ends)


def assert_sound(opened: OpenedData, lost: range = range(0)) -> None:
    """Every record has its epoch, none is of the lost offsets, and the log goes on and opens again."""
    log, _ = opened.logs[TP]
    assert {(OTHER, 1), (TP, log.end_offset)} == {(tp, each.end_offset) for tp, (each, _) in opened.logs.items()}
    cache = cache_of(opened)
    starts = [entry.start for entry in cache.entries]
    assert starts == sorted(set(starts))
    assert [entry.epoch for entry in cache.entries] == sorted({entry.epoch for entry in cache.entries})
    for batch in all_of(log):
        entered = max(entry for entry in cache.entries if entry.start <= batch.base_offset)
        assert parse_header(bytes(batch.payload)).leader_epoch == entered.epoch
    kept = held(log)
    assert not kept.keys() & set(lost)
    append(log, [("after", "wards")], epoch=40)
    more = held(log)
    opened.data.close()
    again = open_data_dir(opened.data.path, segment_bytes=SEGMENT_BYTES)
    assert more == held(again.logs[TP][0]) == kept | {max(more): ("after", "wards")}
    again.data.close()


def all_held(written: Path, folder: Path) -> dict[int, Pair]:
    """Return the records of the directory as it was written, from the log's start on."""
    return from_start(open_data_dir(shutil.copytree(written, folder / "whole"), segment_bytes=SEGMENT_BYTES))


def from_start(opened: OpenedData) -> dict[int, Pair]:
    """Return what a log holds from its start on: a batch that begins below is read whole."""
    log = opened.logs[TP][0]
    return {offset: pair for offset, pair in held(log).items() if offset >= log.start_offset}


@pytest.mark.slow
def test_segment_that_ends_at_any_byte_keeps_its_whole_batches(written: Path, tmp_path: Path) -> None:
    """What follows a cut batch is gone with it, in this file and in all that follow."""
    before = all_held(written, tmp_path)
    log: FileLog = open_data_dir(shutil.copytree(written, tmp_path / "sizes")).logs[TP][0]
    batches = all_of(log)
    names = sorted(path.name for path in (written / str(TP)).glob("*.log"))
    assert len(names) > 2
    for name in names:
        base = int(name.removesuffix(".log"))
        following = min((int(each[:-4]) for each in names if int(each[:-4]) > base), default=log.end_offset)
        inside = [batch for batch in batches if base <= batch.base_offset < following]
        ends = [0, *accumulate(batch.size for batch in inside)]
        for size, copy in cut(written, tmp_path, f"{TP}/{name}"):
            opened = open_data_dir(copy, segment_bytes=SEGMENT_BYTES)
            whole = sum(end <= size for end in ends) - 1
            lost = range(inside[whole].base_offset, log.end_offset)
            if size in ends:  # nothing shows that a file which ends between two batches was longer
                lost = range(lost.start, following)
                assert opened.logs[TP][1].cut_bytes == 0
            else:
                assert opened.logs[TP][1].reason != "clean"
            expected = {offset: pair for offset, pair in before.items() if offset not in lost}
            assert expected == from_start(opened), (name, size)
            if {size - 1, size, size + 1} & set(ends):
                assert_sound(opened, lost)
            opened.data.close()


def test_epoch_file_that_ends_at_any_byte_is_made_up_for_from_the_batches(written: Path, tmp_path: Path) -> None:
    """
    Cut in `30 12`, it would say that epoch 30 began at 1: nothing of it is believed.

    The batches tell of all epochs but the first, of which compaction left no record.
    """
    before = all_held(written, tmp_path)
    for size, copy in cut(written, tmp_path, f"{TP}/{checkpoint.EPOCHS_FILE}"):
        opened = open_data_dir(copy, segment_bytes=SEGMENT_BYTES)
        assert () == opened.logs[TP][1].file_epochs, size
        assert before == from_start(opened)
        assert [2, 12, 30] == [entry.epoch for entry in cache_of(opened).entries]
        assert_sound(opened)


@pytest.mark.parametrize("name", OFFSETS)
def test_checkpoint_that_ends_at_any_byte_is_not_believed(written: Path, tmp_path: Path, name: str) -> None:
    """Not 1 where 14 was written. As with Apache Kafka one that ends before its count says nothing, unnamed."""
    end = open_data_dir(shutil.copytree(written, tmp_path / "whole")).logs[TP][0].end_offset
    for size, copy in cut(written, tmp_path, name):
        opened = open_data_dir(copy, segment_bytes=SEGMENT_BYTES)
        log, found = opened.logs[TP]
        assert (f"{name}-unreadable" in found.reason) == (size > len("0\n"))
        assert found.high_watermark == (0 if name == checkpoint.HIGH_WATERMARKS_FILE else HIGH_WATERMARK)
        assert log.start_offset == (0 if name == checkpoint.LOG_STARTS_FILE else START)
        assert end == log.end_offset
        assert_sound(opened)


def test_topic_id_that_ends_at_any_byte_is_none_or_whole(written: Path, tmp_path: Path) -> None:
    """A log whose id cannot be read has none, and is given that of the next command."""
    name = f"{TP}/{checkpoint.TOPIC_ID_FILE}"
    length = len((written / name).read_bytes())
    for size, copy in cut(written, tmp_path, name):
        opened = open_data_dir(copy, segment_bytes=SEGMENT_BYTES)
        assert opened.logs[TP][0].topic_id == (TOPIC_ID if size == length - 1 else NO_TOPIC_ID)
        assert_sound(opened)


def test_temporary_file_that_ends_at_any_byte_changes_nothing(written: Path, tmp_path: Path) -> None:
    """Each file is replaced whole: what a crash leaves of its successor is removed."""
    before = all_held(written, tmp_path)
    files = [path.relative_to(written) for path in written.rglob("*") if path.is_file()]
    replaced = [path for path in files if path.suffix != ".log"]
    assert len(replaced) > 5
    for number, path in enumerate(replaced):
        whole = (written / path).read_bytes()
        for size in range(len(whole) + 1):
            copy = shutil.copytree(written, tmp_path / f"{number}-{size}")
            left = copy / f"{path}{checkpoint.TEMPORARY_SUFFIX}"
            left.write_bytes(whole[:size])
            opened = open_data_dir(copy, segment_bytes=SEGMENT_BYTES)
            assert before == from_start(opened)
            assert not left.exists()
            opened.data.close()
            shutil.rmtree(copy)
