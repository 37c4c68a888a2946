from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from targets.broker.core.log_port import AppendOrderError, LeoAfterCut, LogPort
from targets.broker.log import FileLog, LogInDoubtError
from targets.broker.log.stored import split_stored
from tests.broker.log.batches import TP, all_of, batch, new_log, offsets, raw_batch, singles

TARGET, PHYSICAL = LeoAfterCut.TARGET, LeoAfterCut.PHYSICAL


def files_of(log: FileLog) -> list[tuple[str, int]]:
    return sorted((path.name, path.stat().st_size) for path in log.directory.glob("*.log"))


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    return new_log(tmp_path / "data")


def test_log_is_a_log_port(log: FileLog) -> None:
    port: LogPort = log
    assert (TP, 0, 0) == (port.tp, port.start_offset, port.end_offset)


def test_L8_leader_stamps_its_epoch_and_offsets_on_every_batch(log: FileLog) -> None:
    """Source: Kafka UnifiedLogTest shouldApplyEpochToMessageOnAppendIfLeader."""
    singles(log, 50, epoch=72)
    found = all_of(log)
    assert [72] * 50 == [b.leader_epoch for b in found]
    assert [(at, at) for at in range(50)] == offsets(found)
    stored, _, _ = split_stored((log.directory / "00000000000000000000.log").read_bytes())
    assert [(b.base_offset, b.leader_epoch) for b in found] == [(b.base_offset, b.leader_epoch) for b in stored]


def test_leader_append_gives_first_offset_and_new_end_over_several_batches(log: FileLog) -> None:
    assert (0, 5) == log.append_as_leader([batch(count=2), batch(count=3)], 0)
    assert (5, 5) == log.append_as_leader([], 0)
    assert (5, 6) == log.append_as_leader([batch()], -1)
    assert [(0, 1, 0), (2, 4, 0), (5, 5, -1)] == [
        (b.base_offset, b.last_offset, b.leader_epoch) for b in all_of(log)
    ]


def test_follower_appends_byte_for_byte_and_accepts_a_gap(log: FileLog) -> None:
    raw = [raw_batch(base=3, count=2, epoch=4, text=b"x"), raw_batch(base=9, epoch=5)]
    batches, _, _ = split_stored(b"".join(raw))
    assert (3, 10) == log.append_as_follower(batches)
    assert raw == [bytes(b.payload) for b in all_of(log)]
    assert b"".join(raw) == (log.directory / "00000000000000000000.log").read_bytes()
    assert (10, 10) == log.append_as_follower([])


@pytest.mark.parametrize("bases", [(1,), (2, 3), (4, 4)])
def test_follower_refuses_a_batch_before_the_end_and_writes_nothing(log: FileLog, bases: tuple[int, ...]) -> None:
    """Source: Kafka UnifiedLog.append: offsets increase; the first may be past the log's end, never before it."""
    singles(log, 2)
    before = files_of(log)
    with pytest.raises(AppendOrderError, match="expected its first offset at or past"):
        log.append_as_follower([batch(base=base, count=2) for base in bases])
    assert (before, 2) == (files_of(log), log.end_offset)


def test_follower_copy_is_read_from_the_leader_as_written(log: FileLog, tmp_path: Path) -> None:
    log.append_as_leader([batch(count=3, text=b"a"), batch(count=2, text=b"b")], 1)
    follower = new_log(tmp_path / "other")
    follower.append_as_follower(log.read(0, 5, 1 << 20))
    assert [bytes(b.payload) for b in all_of(log)] == [bytes(b.payload) for b in all_of(follower)]


class TestRead:
    def test_read_begins_with_the_batch_that_holds_the_offset(self, log: FileLog) -> None:
        log.append_as_leader([batch(count=3), batch(count=3), batch(count=3)], 0)
        assert [(3, 5), (6, 8)] == offsets(log.read(4, 9, 1 << 20))

    def test_read_ends_before_a_batch_that_begins_at_the_end_offset(self, log: FileLog) -> None:
        log.append_as_leader([batch(count=3), batch(count=3)], 0)
        assert [(0, 2)] == offsets(log.read(0, 3, 1 << 20))
        assert [(0, 2), (3, 5)] == offsets(log.read(0, 4, 1 << 20))
        assert () == log.read(3, 3, 1 << 20)

    def test_read_gives_one_batch_however_large(self, log: FileLog) -> None:
        log.append_as_leader([batch(text=b"x" * 500), batch(text=b"y")], 0)
        assert [(0, 0)] == offsets(log.read(0, 2, 1))
        size = log.read(0, 1, 1)[0].size
        assert [(0, 0)] == offsets(log.read(0, 2, size))
        assert 2 == len(log.read(0, 2, size + 62))

    def test_read_at_and_past_the_end_is_empty(self, log: FileLog) -> None:
        assert () == log.read(0, 10, 1 << 20)
        singles(log, 2)
        assert () == log.read(2, 10, 1 << 20)
        assert () == log.read(7, 10, 1 << 20)

    def test_read_in_a_hole_gives_the_next_batch(self, log: FileLog) -> None:
        singles(log, 1)
        log.append_as_follower([batch(base=5)])
        assert [(5, 5)] == offsets(log.read(2, 6, 1 << 20))

    def test_read_goes_on_over_segments(self, tmp_path: Path) -> None:
        log = new_log(tmp_path / "d", segment_bytes=130)
        singles(log, 5)
        assert [(at, at) for at in range(1, 5)] == offsets(log.read(1, 5, 1 << 20))
        assert [(1, 1), (2, 2)] == offsets(log.read(1, 5, 130))
        assert [(2, 2), (3, 3)] == offsets(log.read(2, 4, 1 << 20))


def test_segments_roll_by_size_and_are_named_by_their_first_offset(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d", segment_bytes=130)
    singles(log, 5)
    assert [f"{base:020d}.log" for base in (0, 2, 4)] == [name for name, _ in files_of(log)]
    log.append_as_follower([batch(base=10, text=b"z" * 300), batch(base=11)])
    assert [f"{base:020d}.log" for base in (0, 2, 4, 10, 11)] == [name for name, _ in files_of(log)]


def test_segment_rolls_when_offsets_are_too_far_apart(log: FileLog) -> None:
    singles(log, 1)
    log.append_as_follower([batch(base=2**31)])
    assert [0, 2**31] == [int(name[:20]) for name, _ in files_of(log)]


class TestTruncate:
    @pytest.mark.parametrize("leo", list(LeoAfterCut))
    def test_L3_truncate_to(self, log: FileLog, leo: LeoAfterCut) -> None:
        """Source: Kafka UnifiedLogTest testTruncateTo."""
        singles(log, 10)
        size = log.size_bytes
        assert (10, 10, size) == (log.truncate_to(10, leo), log.truncate_to(11, leo), log.size_bytes)
        assert (5, 5) == (log.truncate_to(5, leo), log.end_offset)
        assert size // 2 == log.size_bytes == files_of(log)[0][1]
        assert 0 == log.truncate_to(0, leo)
        assert 0 == log.size_bytes
        singles(log, 10)
        log.truncate_fully(1)
        assert (1, 1, 0) == (log.start_offset, log.end_offset, log.size_bytes)
        singles(log, 10)
        assert 0 == log.truncate_to(0, leo)
        assert (0, 0, 0) == (log.start_offset, log.end_offset, log.size_bytes)
        singles(log, 1)
        assert [(0, 0)] == offsets(all_of(log))

    def test_L12_truncation_at_a_gap_keeps_what_lies_before_it(self, log: FileLog) -> None:
        """Source: Kafka UnifiedLogTest shouldTruncateEvenIfOffsetPointsToAGapInTheLog."""
        log.append_as_follower([batch(base=40), batch(base=43)])
        assert 41 == log.truncate_to(41, TARGET)
        assert [(40, 40)] == offsets(log.read(0, 1 << 30, 1 << 20))

    @pytest.mark.parametrize(("leo", "end", "after"), [(TARGET, 13, [(13, 13)]), (PHYSICAL, 11, [(11, 11)])])
    def test_cut_inside_a_batch_removes_it_whole(
        self, log: FileLog, leo: LeoAfterCut, end: int, after: list[tuple[int, int]]
    ) -> None:
        """Source: KAFKA-6361; Kafka's LocalLog.truncateTo leaves a hole at 11..12 and ends at 13."""
        log.append_as_leader([batch(count=11), batch(count=10)], 0)
        assert end == log.truncate_to(13, leo)
        assert [(0, 10)] == offsets(log.read(0, 100, 1 << 20))
        assert log.size_bytes == files_of(log)[0][1]
        log.append_as_leader([batch()], 1)
        assert [(0, 10), *after] == offsets(all_of(log))

    def test_cut_in_an_earlier_segment_removes_the_later_ones(self, tmp_path: Path) -> None:
        log = new_log(tmp_path / "d", segment_bytes=130)
        singles(log, 7)
        assert 3 == log.truncate_to(3, TARGET)
        assert [(f"{0:020d}.log", 124), (f"{2:020d}.log", 62)] == files_of(log)
        singles(log, 2, epoch=9)
        assert [0, 0, 0, 9, 9] == [b.leader_epoch for b in all_of(log)]

    def test_cut_at_a_segments_base_leaves_it_empty(self, tmp_path: Path) -> None:
        log = new_log(tmp_path / "d", segment_bytes=130)
        singles(log, 5)
        assert 2 == log.truncate_to(2, PHYSICAL)
        assert [(f"{0:020d}.log", 124), (f"{2:020d}.log", 0)] == files_of(log)

    def test_cut_below_the_first_segment_empties_the_log(self, log: FileLog) -> None:
        log.truncate_fully(20)
        singles(log, 3)
        assert 7 == log.truncate_to(7, PHYSICAL)
        assert (7, 7, [(f"{7:020d}.log", 0)]) == (log.start_offset, log.end_offset, files_of(log))


class TestDurability:
    def test_append_and_truncation_reach_the_page_cache_only(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_sync(_fd: int) -> None:
            raise AssertionError("fsync")

        monkeypatch.setattr(os, "fsync", no_sync)
        log = new_log(tmp_path / "d")
        singles(log, 5)
        log.truncate_to(1, TARGET)
        log.truncate_fully(7)
        log.write_epochs([(0, 0)], flush=False)
        with pytest.raises(LogInDoubtError, match="fsync"):
            log.flush()

    def test_a_file_is_durable_before_the_next_one_begins(self, tmp_path: Path) -> None:
        """A power loss must not keep the name of a file, and not the records before it."""
        told: list[tuple[str, int]] = []
        log = new_log(tmp_path / "d", segment_bytes=130, on_durable=lambda *seen: told.append(seen))
        singles(log, 2)
        assert [] == told
        singles(log, 1)
        assert [(f"{TP}/{0:020d}.log", 124)] == told
        assert 0 == log.recovery_point

    def test_flush_reports_every_file_that_became_durable(self, tmp_path: Path) -> None:
        told: list[tuple[str, int]] = []
        log = new_log(tmp_path / "d", segment_bytes=130, on_durable=lambda *seen: told.append(seen))
        singles(log, 3)
        assert 0 == log.recovery_point
        log.flush(3)
        first, second = f"{TP}/{0:020d}.log", f"{TP}/{2:020d}.log"
        assert [(first, 124), (second, 62)] == told
        assert 3 == log.recovery_point
        singles(log, 1)
        log.flush(4)
        assert [(second, 124)] == told[2:]
        log.flush(4)
        assert 3 == len(told)

    def test_flush_up_to_an_offset_leaves_later_segments(self, tmp_path: Path) -> None:
        told: list[tuple[str, int]] = []
        log = new_log(tmp_path / "d", segment_bytes=130, on_durable=lambda *seen: told.append(seen))
        singles(log, 5)
        log.flush(3)
        assert ([124, 124], 4) == ([length for _, length in told], log.recovery_point)

    def test_cut_of_durable_bytes_is_reported_as_a_smaller_length(self, tmp_path: Path) -> None:
        told: list[tuple[str, int]] = []
        log = new_log(tmp_path / "d", on_durable=lambda *seen: told.append(seen))
        singles(log, 3)
        log.flush()
        log.truncate_to(1, TARGET)
        assert [186, 62] == [length for _, length in told]
        assert 1 == log.recovery_point

    def test_epochs_written_without_flush_become_durable_before_the_records(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Source: KIP-101, the footnote to step 3."""
        order: list[str] = []
        real = os.fsync

        def spy(fd: int) -> None:
            order.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
            real(fd)

        log = new_log(tmp_path / "d")
        log.write_epochs([(0, 0)], flush=False)
        singles(log, 1)
        monkeypatch.setattr(os, "fsync", spy)
        log.flush()
        assert ["leader-epoch-checkpoint", str(TP), "d", f"{0:020d}.log"] == order

    def test_flushed_epochs_are_reported(self, tmp_path: Path) -> None:
        told: list[tuple[str, int]] = []
        log = new_log(tmp_path / "d", on_durable=lambda *seen: told.append(seen))
        log.write_epochs([(0, 0), (1, 5)], flush=True)
        assert [(f"{TP}/leader-epoch-checkpoint", len("0\n2\n0 0\n1 5\n"))] == told

    def test_delete_makes_the_new_name_durable_before_files_go(
        self, log: FileLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Source: Kafka, LogManager.asyncDelete; a half-finished deletion must not return as a shorter log."""
        seen: list[tuple[str, list[str], int]] = []

        def spy(fd: int) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{fd}"))
            seen.append((path.name, [name[:8] for name in os.listdir(path)], len(list(path.rglob("*.log")))))

        singles(log, 1)
        monkeypatch.setattr(os, "fsync", spy)
        log.delete()
        assert [("data", ["topic-0."], 1)] == seen

    def test_delete_leaves_nothing_and_gives_the_name_free(self, log: FileLog, tmp_path: Path) -> None:
        """Source: Kafka Replication Design V3, C, stopReplica."""
        singles(log, 3)
        log.delete()
        assert [] == os.listdir(tmp_path / "data")
        assert log.deleted
        assert 0 == new_log(tmp_path / "data").end_offset

    @pytest.mark.parametrize(
        "act",
        [
            lambda log: singles(log, 1),
            lambda log: log.flush(),
            lambda log: log.truncate_to(0, TARGET),
            lambda log: log.read(0, 9, 99),
            lambda log: log.write_epochs([], flush=True),
        ],
        ids=["append", "flush", "truncate", "read", "epochs"],
    )
    def test_disk_error_is_never_swallowed(
        self, log: FileLog, monkeypatch: pytest.MonkeyPatch, act: Callable[[FileLog], object]
    ) -> None:
        """Source: Kafka Replication Design V3, discussion 4: a disk error stops the broker."""

        def broken(*_: object) -> None:
            raise OSError(5, "Input/output error")

        singles(log, 2)
        for call in ("pread", "pwritev", "fsync", "ftruncate"):
            monkeypatch.setattr(os, call, broken)
        with pytest.raises(OSError, match="Input/output"):
            act(log)

    def test_short_read_is_a_disk_error(self, log: FileLog) -> None:
        singles(log, 2)
        os.truncate(log.directory / f"{0:020d}.log", 70)
        with pytest.raises(OSError, match="70 bytes at 0; expected 124"):
            log.read(0, 2, 1 << 20)

    @pytest.mark.parametrize("written", [0, 7, 70])
    def test_write_goes_on_after_a_short_one(
        self, log: FileLog, monkeypatch: pytest.MonkeyPatch, written: int
    ) -> None:
        first, others = os.pwritev, os.pwrite
        monkeypatch.setattr(os, "pwritev", lambda fd, pieces, at: first(fd, [b"".join(pieces)[:written]], at))
        monkeypatch.setattr(os, "pwrite", lambda fd, data, at: others(fd, data[:7], at))
        log.append_as_leader([batch(text=b"0"), batch(text=b"1")], 0)
        singles(log, 1)
        assert [b"0", b"1", b"2"] == [bytes(b.payload[61:]) for b in all_of(log)]

    def test_many_batches_go_to_the_disk_in_one_write(self, log: FileLog, monkeypatch: pytest.MonkeyPatch) -> None:
        real, writes = os.pwritev, []
        monkeypatch.setattr(os, "pwritev", lambda fd, pieces, at: writes.append(at) or real(fd, pieces, at))
        log.append_as_leader([batch(count=2)] * 5, 0)
        assert [0] == writes
        log.append_as_follower([batch(base=10 + number) for number in range(3000)])
        assert os.sysconf("SC_IOV_MAX") < 3000
        assert 1 + -(-3000 // os.sysconf("SC_IOV_MAX")) == len(writes)
        assert 3010 == log.end_offset == len(all_of(log)) + 5
