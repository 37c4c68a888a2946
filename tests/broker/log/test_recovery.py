from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.broker.core.epochs import recovered_cache
from targets.broker.core.log_port import LeoAfterCut, Recovery
from targets.broker.core.rules import PROTOCOLS
from targets.broker.log import FileLog, LogOptions
from targets.broker.log.names import segment_name
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, all_of, batch, drawn, new_log, offsets, raw_batch, singles

UNCLEAN, CLEAN = Known(clean=False), Known(clean=True)
# Size of one batch of `singles` below offset 10.
SIZE = 62


def reopen(log: FileLog, known: Known = UNCLEAN) -> tuple[FileLog, Recovery]:
    log.close()
    return open_log(TP, log.directory, known, LogOptions())


def segment(log: FileLog, base: int = 0) -> Path:
    return log.directory / segment_name(base)


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    return new_log(tmp_path / "data")


def test_unclean_log_without_damage_is_kept_whole(log: FileLog) -> None:
    """Source: KIP-101, Unclean Shutdown."""
    singles(log, 3)
    opened, found = reopen(log)
    assert (3, [(0, 0), (1, 1), (2, 2)]) == (opened.end_offset, offsets(all_of(opened)))
    assert (False, 0, "clean") == (found.clean, found.cut_bytes, found.reason)


@pytest.mark.parametrize("k", [0, 1, 7, 19])
def test_L13_recovery_keeps_the_batches_before_the_corrupt_one(log: FileLog, k: int) -> None:
    """Source: Kafka LogLoaderTest testRecoveryWithCorruptMessage."""
    for _ in range(20):
        log.append_as_leader([batch(text=b"x")], 0)
    overwrite(segment(log), k * SIZE, os.urandom(16).ljust((20 - k) * SIZE, b"\xa5"))
    opened, found = reopen(log)
    assert ([(at, at) for at in range(k)], k) == (offsets(all_of(opened)), opened.end_offset)
    assert (20 - k) * SIZE == found.cut_bytes
    assert k * SIZE == segment(log).stat().st_size


def test_L14_recovery_point_stays_until_a_flush(log: FileLog) -> None:
    """Source: Kafka UnifiedLogTest testLogRecoversToCorrectOffset."""
    singles(log, 100)
    for point in (100, 10):
        log, _ = reopen(log, Known(clean=False, recovery_point=point))
        assert (100, point) == (log.end_offset, log.recovery_point)
    log.flush()
    assert 100 == log.recovery_point


def test_L11_recovery_gives_the_epochs_of_the_batches(log: FileLog) -> None:
    """Source: Kafka UnifiedLogTest testRecoveryRebuildsEpochCache."""
    log.append_as_follower([batch(base=104 + 2 * at, count=2, epoch=(0, 1, 1, 2)[at]) for at in range(4)])
    _, found = reopen(log)
    assert ((0, 104), (1, 106), (2, 110)) == found.batch_epochs
    assert () == found.file_epochs


def test_L10_recovery_gives_batch_epochs_beside_a_shorter_epoch_file(log: FileLog) -> None:
    """Source: Kafka UnifiedLogTest testLogRecoversForLeaderEpoch; the core merges the two (KAFKA-10432)."""
    log.append_as_follower([batch(base=0, epoch=1), batch(base=1, epoch=2), batch(base=3, epoch=3)])
    log.write_epochs([(1, 0), (2, 1)], flush=True)
    _, found = reopen(log)
    assert (((1, 0), (2, 1)), ((1, 0), (2, 1), (3, 3))) == (found.file_epochs, found.batch_epochs)


def test_batch_epochs_begin_at_the_recovery_point_when_the_epoch_file_is_sound(log: FileLog) -> None:
    for epoch in (0, 1, 1, 2):
        singles(log, 1, epoch=epoch)
    log.write_epochs([(0, 0), (1, 1), (2, 3)], flush=True)
    log, found = reopen(log, Known(clean=False, recovery_point=2))
    assert ((1, 2), (2, 3)) == found.batch_epochs
    log, found = reopen(log, CLEAN)
    assert ((), True, 4) == (found.batch_epochs, found.clean, log.recovery_point)


@pytest.mark.parametrize("known", [UNCLEAN, CLEAN, Known(clean=False, recovery_point=2)])
def test_corrupt_epoch_file_is_noted_and_rebuilt_from_all_batches(log: FileLog, known: Known) -> None:
    """Source: KAFKA-16541."""
    singles(log, 1, epoch=3)
    singles(log, 2, epoch=5)
    (log.directory / "leader-epoch-checkpoint").write_bytes(bytes(17))
    opened, found = reopen(log, known)
    assert (3, "clean+epoch-checkpoint-unreadable") == (opened.end_offset, found.reason)
    assert (((3, 0), (5, 1)), ()) == (found.batch_epochs, found.file_epochs)


# The seven ways in which the file can be wrong (docs/bit-rot.md): Kafka's reader (CheckpointFile) refuses the
# first five, its cache (LeaderEpochFileCache.assign) the last two. Of some there are several forms.
DAMAGED = {
    "version": b"1\n2\n3 0\n5 1\n",
    "version is zeros": bytes(12),
    "count is no number": b"0\nr\n3 0\n5 1\n",
    "more entries than counted": b"0\n1\n3 0\n5 1\n",
    "fewer entries than counted": b"0\n3\n3 0\n5 1\n",
    "malformed entry": b"0\n2\n3 0\n5 \n",
    "negative": b"0\n2\n3 0\n5 -1\n",
    "epochs do not rise": b"0\n2\n5 0\n3 1\n",
    "an epoch twice": b"0\n2\n3 0\n3 1\n",
    "offsets fall": b"0\n3\n3 1\n5 0\n7 3\n",
}


@pytest.mark.parametrize("known", [UNCLEAN, CLEAN, Known(clean=False, recovery_point=2)])
@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in DAMAGED.items()])
def test_epochs_are_made_of_the_batches_whichever_way_their_file_is_damaged(
    log: FileLog, known: Known, content: bytes
) -> None:
    """Source: Kafka, CheckpointFile.read and LeaderEpochFileCache.assign; KAFKA-16541 for the zeros."""
    singles(log, 1, epoch=3)
    singles(log, 2, epoch=5)
    (log.directory / "leader-epoch-checkpoint").write_bytes(content)
    opened, found = reopen(log, known)
    assert (3, "clean+epoch-checkpoint-unreadable") == (opened.end_offset, found.reason)
    rules = PROTOCOLS["kip380"]
    cache = recovered_cache(rules, found.file_epochs, found.batch_epochs, 0, 3, batch_ends=found.batch_ends)
    assert [(3, 0), (5, 1)] == [(entry.epoch, entry.start) for entry in cache.entries]


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n0\n"])
def test_epochs_are_made_of_the_batches_where_their_file_is_empty(log: FileLog, content: bytes) -> None:
    """An empty file is no damage: Kafka makes one where there is none, and leaves it empty."""
    singles(log, 1, epoch=3)
    (log.directory / "leader-epoch-checkpoint").write_bytes(content)
    _, found = reopen(log, CLEAN)
    assert ("clean", (), ((3, 0),)) == (found.reason, found.file_epochs, found.batch_epochs)


class TestTail:
    def test_torn_batch_is_cut(self, log: FileLog) -> None:
        singles(log, 3)
        os.truncate(segment(log), 3 * SIZE - 1)
        opened, found = reopen(log)
        assert (2, "torn", SIZE - 1) == (opened.end_offset, found.reason, found.cut_bytes)

    @pytest.mark.parametrize("zeros", [1, 60, 61, 5000])
    def test_zero_filled_tail_is_cut(self, log: FileLog, zeros: int) -> None:
        """A power loss may keep a file's length but lose its pages."""
        singles(log, 2)
        os.truncate(segment(log), 2 * SIZE + zeros)
        opened, found = reopen(log)
        assert (2, "zeros", zeros) == (opened.end_offset, found.reason, found.cut_bytes)
        assert 2 * SIZE == segment(log).stat().st_size

    def test_zero_filled_page_inside_a_batch_is_a_crc_error(self, log: FileLog) -> None:
        log.append_as_leader([batch(text=b"a"), batch(text=b"b" * 9000)], 0)
        overwrite(segment(log), 4096, bytes(4096))
        opened, found = reopen(log)
        assert (1, "crc") == (opened.end_offset, found.reason)

    def test_batch_that_does_not_rise_ends_the_log(self, log: FileLog) -> None:
        singles(log, 2)
        with segment(log).open("ab") as file:
            file.write(raw_batch(base=1))
        opened, found = reopen(log)
        assert (2, "disorder", SIZE) == (opened.end_offset, found.reason, found.cut_bytes)

    def test_offset_beyond_the_segments_range_ends_the_log(self, log: FileLog) -> None:
        """Source: Kafka, LogSegment: offsets are stored relative to the base offset; CRCs do not cover them."""
        singles(log, 2)
        overwrite(segment(log), SIZE, struct.pack(">q", 1 << 40))
        opened, found = reopen(log)
        assert (1, "disorder") == (opened.end_offset, found.reason)

    @drawn
    @given(cut=st.integers(min_value=0, max_value=4 * SIZE))
    def test_log_cut_at_any_byte_keeps_exactly_the_whole_batches(
        self, cut: int, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        log = new_log(tmp_path_factory.mktemp("cut") / "data")
        singles(log, 4)
        os.truncate(segment(log), cut)
        opened, found = reopen(log)
        assert (cut // SIZE, cut % SIZE) == (opened.end_offset, found.cut_bytes)
        singles(opened, 1)
        assert cut // SIZE + 1 == reopen(opened)[0].end_offset


class TestSegments:
    @pytest.fixture
    def log(self, tmp_path: Path) -> FileLog:
        log = new_log(tmp_path / "data", segment_bytes=130)
        singles(log, 7)
        return log

    def test_damage_removes_all_later_segments(self, log: FileLog) -> None:
        overwrite(segment(log, 2), SIZE + 61, b"?")
        opened, found = reopen(log)
        assert (3, "crc", SIZE + 3 * SIZE) == (opened.end_offset, found.reason, found.cut_bytes)
        assert [segment_name(0), segment_name(2)] == sorted(os.listdir(log.directory))

    def test_segment_with_nothing_sound_goes_whole(self, log: FileLog) -> None:
        overwrite(segment(log, 4), 61, b"?")
        opened, _ = reopen(log)
        assert 4 == opened.end_offset
        assert [segment_name(0), segment_name(2)] == sorted(os.listdir(log.directory))

    def test_crcs_are_checked_from_the_recovery_points_segment_on(self, log: FileLog) -> None:
        overwrite(segment(log, 2), 61, b"?")
        opened, found = reopen(log, Known(clean=False, recovery_point=5))
        assert (7, "clean") == (opened.end_offset, found.reason)
        opened, found = reopen(opened, Known(clean=False, recovery_point=3))
        assert (2, "crc") == (opened.end_offset, found.reason)

    def test_recovery_point_is_never_past_a_cut(self, log: FileLog) -> None:
        os.truncate(segment(log, 2), 30)
        opened, found = reopen(log, Known(clean=False, recovery_point=6))
        assert (2, 2, "torn") == (opened.end_offset, opened.recovery_point, found.reason)

    def test_segment_that_a_power_loss_brought_back_is_removed(self, log: FileLog) -> None:
        """A truncation removed segment 4, appends went past its base, and a power loss undid the removal."""
        stale = segment(log, 4).read_bytes()
        log.truncate_to(2, LeoAfterCut.TARGET)
        log.append_as_leader([batch(count=5, text=b"new")], 1)
        segment(log, 4).write_bytes(stale)
        opened, found = reopen(log)
        assert ([0, 0, 1], 7) == ([b.leader_epoch for b in all_of(opened)], opened.end_offset)
        assert ("disorder", len(stale)) == (found.reason, found.cut_bytes)

    def test_empty_segment_that_a_power_loss_brought_back_does_not_end_the_log_early(self, log: FileLog) -> None:
        log.truncate_to(2, LeoAfterCut.TARGET)
        log.append_as_leader([batch(count=5)], 1)
        segment(log, 4).touch()
        opened, found = reopen(log)
        assert (7, "disorder", 0) == (opened.end_offset, found.reason, found.cut_bytes)

    def test_empty_last_segment_ends_the_log_at_its_base(self, log: FileLog) -> None:
        log.truncate_to(4, LeoAfterCut.PHYSICAL)
        opened, found = reopen(log)
        assert (4, "clean") == (opened.end_offset, found.reason)


class TestPowerLoss:
    def test_old_tail_that_an_undone_truncation_brought_back_stays(self, log: FileLog) -> None:
        """Power loss undoes an unflushed truncation, byte for byte."""
        singles(log, 3)
        before = segment(log).read_bytes()
        log.truncate_to(1, LeoAfterCut.TARGET)
        segment(log).write_bytes(before)
        opened, found = reopen(log)
        assert (3, "clean", 0) == (opened.end_offset, found.reason, found.cut_bytes)

    def test_file_left_short_by_a_later_fsync_ends_sooner(self, log: FileLog) -> None:
        singles(log, 3)
        log.truncate_to(1, LeoAfterCut.TARGET)
        length = segment(log).stat().st_size
        log.append_as_leader([batch(count=4)], 1)
        os.truncate(segment(log), length)
        opened, found = reopen(log)
        assert (1, "clean") == (opened.end_offset, found.reason)

    def test_hole_in_memory_is_gone_after_a_restart(self, log: FileLog) -> None:
        """Source: KAFKA-6361: a restart before the next append recomputes the end from the last batch."""
        log.append_as_leader([batch(count=11), batch(count=10)], 0)
        assert 13 == log.truncate_to(13, LeoAfterCut.TARGET)
        opened, _ = reopen(log)
        assert 11 == opened.end_offset

    def test_directory_without_a_segment_becomes_an_empty_log(self, log: FileLog) -> None:
        segment(log).unlink()
        opened, found = reopen(log)
        assert (0, 0, "clean") == (opened.start_offset, opened.end_offset, found.reason)
        singles(opened, 1)

    def test_leftovers_of_unfinished_writes_are_removed(self, log: FileLog) -> None:
        for name in ("leader-epoch-checkpoint.tmp", f"{segment_name(9)}.deleted"):
            (log.directory / name).write_bytes(b"half")
        reopen(log)
        assert [segment_name(0)] == os.listdir(log.directory)


def test_clean_log_is_not_scanned_for_crcs_but_a_torn_one_is_not_believed(log: FileLog) -> None:
    singles(log, 3)
    overwrite(segment(log), SIZE + 61, b"?")
    log, found = reopen(log, CLEAN)
    assert (3, True, "clean") == (log.end_offset, found.clean, found.reason)
    os.truncate(segment(log), 3 * SIZE - 1)
    log, found = reopen(log, Known(clean=True, recovery_point=3))
    assert (1, False, "crc", 0) == (log.end_offset, found.clean, found.reason, log.recovery_point)


def test_log_that_ends_below_its_start_checkpoint_is_emptied(log: FileLog) -> None:
    """Source: Kafka, LogLoader: all records and epochs are dropped, and the log starts at its start checkpoint."""
    singles(log, 3)
    log.write_epochs([(0, 0)], flush=True)
    opened, found = reopen(log, Known(clean=False, log_start=9, high_watermark=2))
    assert (9, 9, ()) == (opened.start_offset, opened.end_offset, all_of(opened))
    assert ("below-log-start", (), (), 2) == (
        found.reason,
        found.file_epochs,
        found.batch_epochs,
        found.high_watermark,
    )


def test_start_checkpoint_inside_the_log_moves_its_start(log: FileLog) -> None:
    singles(log, 5)
    opened, _ = reopen(log, Known(clean=False, log_start=2))
    assert (2, 5, 2) == (opened.start_offset, opened.end_offset, opened.moved_start)
    opened.truncate_to(1, LeoAfterCut.TARGET)
    assert (1, 1) == (opened.start_offset, opened.end_offset)
