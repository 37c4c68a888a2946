"""A segment's index keeps few headers in memory, and gives those that are in the file alone as if it kept all."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from targets.broker.core.log_port import DamagedError, LeoAfterCut
from targets.broker.log import FileLog, LogOptions, index
from targets.broker.log.index import BLOCK_BATCHES, Entry, Index
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, all_of, batch, new_log, offsets, singles
from tests.kafka_release import DATA
from tests.kept import exhaustive, keep

SIZE = batch(text=b"0").size


def entries_in_memory() -> int:
    gc.collect()
    return sum(isinstance(each, Entry) for each in gc.get_objects())


@pytest.fixture
def preads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all reads of files, so far."""
    sizes: list[int] = []
    real = os.pread

    def counted(descriptor: int, size: int, position: int) -> bytes:
        sizes.append(size)
        return real(descriptor, size, position)

    monkeypatch.setattr(os, "pread", counted)
    return sizes


@pytest.mark.slow
@exhaustive
def test_log_keeps_few_of_many_headers_in_memory(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    before = entries_in_memory()
    for _ in range(200):
        log.append_as_leader([batch() for _ in range(100)], 0)
    # The first and the last of each block, and those of less than two blocks.
    assert entries_in_memory() - before <= 2 * 20_000 // BLOCK_BATCHES + 2 * BLOCK_BATCHES
    log.close()
    again, _ = open_log(TP, log.directory, Known(clean=False), LogOptions())
    assert entries_in_memory() - before <= 4 * 20_000 // BLOCK_BATCHES + 4 * BLOCK_BATCHES
    assert offsets(all_of(log)) == offsets(all_of(again)) == [(at, at) for at in range(20_000)]
    again.close()


def test_end_of_the_log_is_read_without_a_look_at_headers_in_the_file(tmp_path: Path, preads: list[int]) -> None:
    log = new_log(tmp_path / "data")
    singles(log, 10 * BLOCK_BATCHES)
    assert [(639, 639)] == offsets(log.read(639, 640, 1000))
    assert [log.read(639, 640, 1000)[0].size] * 2 == preads
    log.close()


def test_headers_of_small_batches_are_read_with_one_read_and_stay(tmp_path: Path, preads: list[int]) -> None:
    log = new_log(tmp_path / "data")
    log.append_as_leader([batch(text=b"0") for _ in range(10 * BLOCK_BATCHES)], 0)
    block = BLOCK_BATCHES * SIZE
    assert (SIZE * 100, SIZE * 101) == (log.position_of(100), log.position_of(101))
    assert [block] == preads
    assert [(100, 100)] == offsets(log.read(100, 640, SIZE))
    assert [block, SIZE] == preads
    assert 130 == len(log.read(120, 250, 1 << 20))
    assert [block, block, block, 130 * SIZE] == preads[:1] + preads[2:]
    log.close()


def test_headers_of_large_batches_are_read_without_their_records(tmp_path: Path, preads: list[int]) -> None:
    log = new_log(tmp_path / "data")
    log.append_as_leader([batch(text=b"x" * 10_000) for _ in range(3 * BLOCK_BATCHES)], 0)
    assert 10_061 * 50 == log.position_of(50)
    assert [61] * (BLOCK_BATCHES - 1) == preads
    log.close()


# --- the same answers as with all in memory -------------------------------------------------------------------
def change(log: FileLog, chance: Random) -> None:
    """Append, with different sizes, times, holes and epochs, or cut, into a batch too."""
    if chance.random() < 0.8:
        base = log.end_offset + chance.choice((0, 0, 0, 5))
        for _ in range(chance.randint(1, 9)):
            count, time = chance.randint(1, 3), chance.randint(-1, 900)
            text = b"x" * chance.choice((1, 30, 40_000))
            made = batch(base=base, count=count, text=text, timestamp=time, epoch=base // 50)
            log.append_as_follower([made])
            base += count
    else:
        to = chance.randint(max(log.start_offset, log.end_offset - chance.choice((5, 60))), log.end_offset)
        log.truncate_to(to, chance.choice(list(LeoAfterCut)))


def said(log: FileLog, chance: Random) -> tuple[object, ...]:
    """Ask a log for everything that its index answers."""
    some = [chance.randint(0, log.end_offset + 3) for _ in range(6)]
    return (
        [offsets(log.read(offset, log.end_offset, room)) for offset in some for room in (1, 500, 1 << 20)],
        [bytes(each.payload) for each in log.read(some[0], log.end_offset, 200)],
        [log.position_of(offset) for offset in some],
        [log.first_offset_at(time) for time in (-1, *(chance.randint(0, 900) for _ in range(4)), 5000)],
        log.epoch_runs(some[0]),
        log.end_offset,
        log.size_bytes,
    )


@pytest.fixture
def in_blocks_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let indexes that are filled from now on have blocks of so many batches."""
    return lambda count: monkeypatch.setattr(index, "BLOCK_BATCHES", count)


@pytest.mark.parametrize("segment_bytes", [1 << 30, 150_000])
@pytest.mark.parametrize("block", [1, 2, 5])
@pytest.mark.parametrize("seeds", keep([range(1), range(1, 4)], range(1)))
def test_answers_do_not_depend_on_what_is_in_memory(
    tmp_path: Path, in_blocks_of: Callable[[int], None], block: int, segment_bytes: int, seeds: range
) -> None:
    for seed in seeds:
        answers = []
        for folder, size in (("all", 10**9), ("few", block)):
            in_blocks_of(size)
            chance = Random(seed)
            log = new_log(tmp_path / f"{folder}{seed}", segment_bytes=segment_bytes)
            answers.append([(change(log, chance), said(log, chance)) for _ in range(50)])
            log.close()
            again, _ = open_log(TP, log.directory, Known(clean=False), LogOptions())
            answers[-1].append(said(again, chance))
            again.close()
        assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ["plain-0", "gzip-0", "rolled-0"])
def test_entries_of_old_message_sets_are_read_again_from_the_file_too(
    tmp_path: Path, in_blocks_of: Callable[[int], None], name: str
) -> None:
    answers = []
    for size in (10**9, 2):
        in_blocks_of(size)
        directory = shutil.copytree(DATA / "kafka-0.10.2.2" / "b1" / name, tmp_path / str(size) / str(TP))
        log, _ = open_log(TP, directory, Known(clean=False), LogOptions())
        log.append_as_leader([batch(count=3) for _ in range(7)], 1)
        answers.append(said(log, Random(name)))
        log.close()
    assert answers[0] == answers[1]


# --- errors ---------------------------------------------------------------------------------------------------
@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Callable[[int, bytes], FileLog]]:
    """A log of small batches, whose file somebody else changes at a byte."""
    log = new_log(tmp_path / "data")
    singles(log, 4 * BLOCK_BATCHES)

    def change_at(position: int, data: bytes) -> FileLog:
        (path,) = log.directory.glob("*.log")
        with path.open("r+b") as file:
            file.seek(position)
            file.write(data)
        return log

    yield change_at
    log.close()


def test_headers_that_are_no_longer_in_the_file_are_damage_behind_the_last_one_that_is(
    changed: Callable[[int, bytes], FileLog],
) -> None:
    with pytest.raises(DamagedError, match=r"0{20}\.log at byte \d+: zeros in place of its header") as raised:
        changed(0, bytes(BLOCK_BATCHES * SIZE)).position_of(10)
    damaged = raised.value.damaged
    assert (1, 2, SIZE) == (damaged.offset, damaged.end, damaged.position)


def test_batches_before_a_header_that_changed_are_read_and_those_behind_it_are_not(
    changed: Callable[[int, bytes], FileLog],
) -> None:
    log = changed(7 * SIZE, bytes(SIZE))
    assert [(at, at) for at in range(2, 7)] == offsets(log.read(2, 100, 1 << 30))
    with pytest.raises(DamagedError) as raised:
        log.read(7, 100, 1 << 30)
    assert 7 == raised.value.damaged.offset


def test_log_is_cut_at_a_header_that_changed_and_no_later_in_its_block(
    changed: Callable[[int, bytes], FileLog],
) -> None:
    log = changed(7 * SIZE, bytes(SIZE))
    before = log.directory.joinpath(f"{0:020d}.log").read_bytes()
    with pytest.raises(DamagedError):
        log.truncate_to(9, LeoAfterCut.TARGET)
    assert (4 * BLOCK_BATCHES, before) == (log.end_offset, log.directory.joinpath(f"{0:020d}.log").read_bytes())
    assert 7 == log.truncate_to(7, LeoAfterCut.TARGET)
    singles(log, 1)
    assert [(at, at) for at in range(8)] == offsets(all_of(log))


def test_another_header_at_the_end_of_a_block_is_damage(changed: Callable[[int, bytes], FileLog]) -> None:
    log = changed(0, b"")
    at = log.position_of(BLOCK_BATCHES - 1)
    log.position_of(3 * BLOCK_BATCHES)
    log.position_of(BLOCK_BATCHES)  # another block is read, so that the first must be read again
    changed(at, (7).to_bytes(8))
    assert 10 * SIZE == log.position_of(10)
    with pytest.raises(DamagedError, match=r"at byte \d+: base offset 7 in place of its header"):
        log.position_of(BLOCK_BATCHES - 1)


def test_empty_index_has_nothing() -> None:
    empty = Index("segment", lambda _position, _size: pytest.fail("a read of an empty file"))
    assert (None, None, []) == (empty.last, empty.at(0), list(empty.since(0)))
    empty.cut_from(0)
    assert empty.last is None
