"""Offsets are looked up by time without a look at every batch."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.log import FileLog, LogOptions
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, batch, new_log


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    return new_log(tmp_path / "data")


def test_first_offset_at_finds_the_first_batch_that_is_late_enough(log: FileLog) -> None:
    for timestamp in (100, 300, 200):
        log.append_as_leader([batch(count=2, timestamp=timestamp)], 0)
    found = [log.first_offset_at(at).offset for at in (0, 101, 102, 201, 301, 302)]
    assert [0, 0, 2, 2, 2, -1] == found


def test_first_offset_at_finds_what_a_look_at_every_batch_finds(tmp_path: Path) -> None:
    chance = Random(5)
    log = new_log(tmp_path / "d", segment_bytes=190)
    stored: list[tuple[int, int]] = []
    for _ in range(300):
        if chance.random() < 0.2:
            cut = chance.randint(max(0, log.end_offset - 6), log.end_offset)
            log.truncate_to(cut, chance.choice(list(LeoAfterCut)))
            stored = [each for each in stored if each[0] < cut]
        else:
            time = chance.randint(-1, 500)
            stored.append((log.append_as_leader([batch(timestamp=time)], 0)[0], time))
        for asked in (-5, -1, chance.randint(0, 500), 501):
            expected = next((base for base, time in stored if time >= asked), -1)
            assert expected == log.first_offset_at(asked).offset
    reopened, _ = open_log(TP, log.directory, Known(clean=False), LogOptions())
    assert [log.first_offset_at(at) for at in range(500)] == [reopened.first_offset_at(at) for at in range(500)]


def test_first_offset_at_of_an_empty_log_is_none_whatever_the_time(log: FileLog) -> None:
    assert [-1, -1, -1] == [log.first_offset_at(at).offset for at in (-(2**63), -1, 0)]


def test_first_offset_at_finds_a_batch_behind_an_empty_segment(log: FileLog) -> None:
    log.append_as_follower([batch(base=2**31, timestamp=-1)])
    assert [0, 2**31] == sorted(int(path.stem) for path in log.directory.glob("*.log"))
    assert [2**31, -1] == [log.first_offset_at(at).offset for at in (-3, 0)]


def test_first_offset_at_looks_at_few_of_many_batches(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d", segment_bytes=62 * 64)
    log.append_as_leader([batch(timestamp=at) for at in range(4096)], 0)
    looks = 0

    class Time(int):
        """A time that counts its comparisons."""

        def __gt__(self, other: int) -> bool:
            nonlocal looks
            looks += 1
            return int(self) > other

    assert 3000 == log.first_offset_at(Time(3000)).offset
    assert 0 < looks <= 16
