"""The positions of two offsets are as far apart as the batches that a read of them gives, in every log."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from targets.broker.core.log_port import LeoAfterCut, LogPort
from targets.broker.core.messages import Batch
from targets.broker.log import FileLog, LogOptions
from targets.broker.log.open_files import OpenFiles
from targets.broker.log.recovery import Known, open_log
from targets.simulator.broker.storage.log import SimLog
from tests.broker.core.memory import MemoryLog
from tests.broker.log.batches import TP, all_of, batch, new_log, offsets
from tests.kafka_release import DATA

ALL = 1 << 30
SEEDS = range(25)
STEPS = 40
SEGMENT_BYTES = 400

Make = Callable[[Path], LogPort]


def file_log(folder: Path) -> LogPort:
    return new_log(folder, segment_bytes=SEGMENT_BYTES, files=OpenFiles(2))


def simulated_log(_folder: Path) -> LogPort:
    return SimLog(TP, SEGMENT_BYTES)


def memory_log(_folder: Path) -> LogPort:
    return MemoryLog(TP)


def change(log: LogPort, chance: Random) -> None:
    """Append as leader or as follower, with a hole, or cut, into a batch too, or empty the log."""
    drawn, epoch = chance.random(), chance.randint(0, 5)
    texts = [b"x" * chance.randint(0, 40) for _ in range(chance.randint(1, 4))]
    if drawn < 0.5:
        log.append_as_leader([batch(count=chance.randint(1, 4), text=text) for text in texts], epoch)
    elif drawn < 0.7:
        base = log.end_offset + chance.choice((0, 0, 3))
        log.append_as_follower([batch(base=base + 2 * at, count=2, text=text) for at, text in enumerate(texts)])
    elif drawn < 0.97:
        to = chance.randint(max(log.start_offset, log.end_offset - 12), log.end_offset)
        log.truncate_to(to, chance.choice((LeoAfterCut.TARGET, LeoAfterCut.TARGET, LeoAfterCut.PHYSICAL)))
    else:
        log.truncate_fully(chance.randint(0, log.end_offset + 5))


def hold_against_reads(log: LogPort, chance: Random) -> None:
    """Compare positions with reads at some places, and reads of at most some bytes with reads of all."""
    for _ in range(6):
        offset, end = (chance.randint(0, log.end_offset + 2) for _ in range(2))
        read = log.read(offset, end, ALL)
        whole = [found for found in read if found.next_offset <= end]
        assert sum(found.size for found in whole) == max(0, log.position_of(end) - log.position_of(offset)), (
            offset,
            end,
        )
        room = chance.randint(0, 300)
        assert offsets(within(read, room)) == offsets(log.read(offset, end, room, at_least_one=False))
        assert offsets(within(read, room) or read[:1]) == offsets(log.read(offset, end, room))


def within(read: tuple[Batch, ...], room: int) -> tuple[Batch, ...]:
    """Return the first batches that have at most so many bytes together."""
    count = next((n for n in range(len(read)) if sum(b.size for b in read[: n + 1]) > room), len(read))
    return read[:count]


@pytest.mark.parametrize("make", [file_log, simulated_log, memory_log])
def test_positions_are_as_far_apart_as_what_is_read_is_large_whatever_was_done(tmp_path: Path, make: Make) -> None:
    for seed in SEEDS:
        chance = Random(seed)
        log = make(tmp_path / str(seed))
        for _ in range(STEPS):
            change(log, chance)
            hold_against_reads(log, chance)
        if isinstance(log, FileLog):
            log.close()
            again, _ = open_log(TP, log.directory, Known(clean=False), LogOptions())
            hold_against_reads(again, chance)
            again.close()


@pytest.mark.parametrize("name", ["plain-0", "gzip-0", "rolled-0"])
def test_positions_count_entries_of_old_message_sets(tmp_path: Path, name: str) -> None:
    directory = shutil.copytree(DATA / "kafka-0.10.2.2" / "b1" / name, tmp_path / str(TP))
    log, _ = open_log(TP, directory, Known(clean=False), LogOptions())
    chance = Random(name)
    hold_against_reads(log, chance)
    log.append_as_leader([batch(count=3)], 1)
    hold_against_reads(log, chance)
    assert sum(found.size for found in all_of(log)) == log.position_of(log.end_offset) == log.size_bytes
    log.close()


def test_position_near_the_end_is_known_without_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log(tmp_path / "data", segment_bytes=62 * 300)
    log.append_as_leader([batch() for _ in range(1000)], 0)
    monkeypatch.setattr(os, "pread", None)
    assert [62 * at for at in (940, 999, 1000)] == [log.position_of(at) for at in (940, 999, 2000)]
    log.close()


def test_first_batch_is_left_out_when_it_is_too_large_and_none_must_come(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    log.append_as_leader([batch(text=b"x" * 500), batch(text=b"y")], 0)
    assert () == log.read(0, 2, 560, at_least_one=False)
    assert [(0, 0)] == offsets(log.read(0, 2, 561, at_least_one=False))
    assert [(1, 1)] == offsets(log.read(1, 2, 62, at_least_one=False))
    log.close()
