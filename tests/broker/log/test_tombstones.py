"""Tombstones in the files of a log: when a cleaning drops them, and what it writes into their batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import FileLog
from targets.broker.log.batch import parse_header
from targets.kafka_family.logs.message_set import records_of, walk
from tests.broker.log.batches import new_log
from tests.broker.log.keyed import append, clean_all, held

RETENTION_MS = 100
NOW_MS = 10**12


def clean_at(log: FileLog, ms: int) -> None:
    clean_all(log, delay=TombstoneDelay(RETENTION_MS, NOW_MS + ms, by_horizon=True))


def horizons(log: FileLog) -> list[int | None]:
    return [
        None if (found := parse_header(batch.payload).horizon_ms) is None else found - NOW_MS
        for batch in log.read(0, log.end_offset, 1 << 20)
    ]


def more(log: FileLog) -> None:
    """Append what has the log cleaned once more."""
    append(log, [("z", "z")], timestamp=NOW_MS)
    log.roll()


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_tombstone_goes_so_long_after_the_first_cleaning_however_often_it_was_cleaned(
    tmp_path: Path, codec: int
) -> None:
    """Source: KIP-534; Kafka, LogCleanerTest.testTombstoneDelay."""
    log = new_log(tmp_path / "d")
    append(log, [("a", "1")], [("a", None), ("b", "2")], timestamp=5, codec=codec)
    log.roll()
    clean_at(log, 0)
    assert {1: ("a", None), 2: ("b", "2")} == held(log)
    assert [100] == horizons(log)
    for ms in (50, 99):
        more(log)
        clean_at(log, ms)
        assert ("a", None) == held(log)[1]
        assert 100 == horizons(log)[0]
    more(log)
    clean_at(log, 100)
    assert {2: ("b", "2"), 5: ("z", "z")} == held(log)


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_horizon_changes_no_time_of_a_record(tmp_path: Path, codec: int) -> None:
    """Source: KIP-534: deltas count from the horizon, which stands in place of the base timestamp."""
    log = new_log(tmp_path / "d")
    append(log, [("a", None), ("b", "2")], timestamp=5, codec=codec)
    log.roll()

    def times() -> list[tuple[int, str]]:
        (batch,) = log.read(0, log.end_offset, 1 << 20)
        (header,) = walk(bytes(batch.payload)).headers
        return [(record.timestamp, record.digest) for record in records_of(header)]

    before = times()
    clean_at(log, 0)
    assert [100] == horizons(log)
    assert before == times()


def test_batch_without_a_tombstone_gets_no_horizon(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d")
    append(log, [("a", "1")], [("b", None)], [("b", "2")])
    log.roll()
    clean_at(log, 0)
    assert [None, None] == horizons(log)


def test_delay_begins_only_if_the_time_is_known(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d")
    append(log, [("a", None)])
    log.roll()
    clean_all(log, delay=TombstoneDelay(0, by_horizon=True))
    more(log)
    clean_all(log, delay=TombstoneDelay(0, by_horizon=True))
    assert [None, None] == horizons(log)
    assert ("a", None) == held(log)[0]


def test_copy_of_a_batch_has_its_horizon_and_its_tombstones_go_with_what_is_older(tmp_path: Path) -> None:
    """A follower cleans for the first time when the delay is over: a reader of its log may miss the tombstone."""
    log, copy = new_log(tmp_path / "d"), new_log(tmp_path / "copy")
    for each in (log, copy):
        append(each, [("a", "1")], timestamp=5)
    append(log, [("a", None)], [("b", "2")], timestamp=5)
    log.roll()
    clean_at(log, 0)
    copy.append_as_follower([batch for batch in log.read(0, 3, 1 << 20) if batch.base_offset])
    copy.roll()
    assert [None, 100, None] == horizons(copy)
    clean_at(copy, 100)
    assert {2: ("b", "2")} == held(copy)


def test_follower_that_was_away_for_too_long_keeps_what_the_tombstone_deleted(tmp_path: Path) -> None:
    """It copies by offset, and there is no tombstone any more: no later cleaning removes the older record."""
    log, copy = new_log(tmp_path / "d"), new_log(tmp_path / "copy")
    for each in (log, copy):
        append(each, [("a", "1")], timestamp=5)
    append(log, [("a", None)], [("b", "2")], timestamp=5)
    log.roll()
    clean_at(log, 0)
    more(log)
    clean_at(log, 100)
    copy.append_as_follower([batch for batch in log.read(1, 4, 1 << 20) if batch.base_offset])
    copy.roll()
    clean_at(copy, 1_000)
    assert {0: ("a", "1")} == dict(held(copy).items() - held(log).items())
