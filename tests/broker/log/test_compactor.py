"""The cleaner leaves of each key the newest record, at its offset; what it interrupts, recovery ends."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from targets.broker.core.compaction import GROUP_FILES_MAX
from targets.broker.core.log_port import Cleaned, LeoAfterCut
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import FileLog, LogOptions
from targets.broker.log.batch import batch_of, build, parse_header
from targets.broker.log.names import segment_offsets
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, all_of, new_log, offsets
from tests.broker.log.keyed import AT_ONCE, append, clean_all, held, keyed, numbered
from tests.targets.kafka_family.logs.scans import scan_partition

NONE = Cleaned()


def rolled(log: FileLog, *files: list[list[tuple[str | None, str | None]]]) -> FileLog:
    """Append the batches of each file, and begin one more."""
    for batches in files:
        append(log, *batches)
        log.roll()
    return log


def reopened(log: FileLog) -> FileLog:
    log.close()
    return open_log(TP, log.directory, Known(clean=False), LogOptions())[0]


def test_of_each_key_the_newest_record_stays_at_its_offset(tmp_path: Path) -> None:
    """Source: Kafka, LogCleanerTest.testCleanSegments."""
    log = rolled(new_log(tmp_path / "d"), [[("a", "1")], [("b", "2")], [("a", "3")]], [[("b", "4"), ("c", "5")]])
    clean_all(log)
    assert {2: ("a", "3"), 3: ("b", "4"), 4: ("c", "5")} == held(log)
    assert (0, 5) == (log.start_offset, log.end_offset)
    assert held(log) == held(reopened(log))


def test_read_in_a_gap_begins_with_the_next_batch(tmp_path: Path) -> None:
    log = rolled(new_log(tmp_path / "d"), [[("a", "1")], [("a", "2")], [("a", "3")]])
    clean_all(log)
    assert [(2, 2)] == offsets(log.read(0, 3, 1 << 20)) == offsets(log.read(1, 3, 1 << 20))


@pytest.mark.parametrize("codec", range(5))
def test_batch_keeps_its_offsets_epoch_and_codec(codec: int, tmp_path: Path) -> None:
    """Source: Kafka, MemoryRecordsTest.testFilterToPreservesLogAppendTime and its like: bounds are preserved."""
    log = new_log(tmp_path / "d")
    append(log, [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")], codec=codec, epoch=7)
    append(log, [("c", "5")], epoch=8)
    log.roll()
    clean_all(log)
    assert {1: ("b", "2"), 2: ("a", "3"), 4: ("c", "5")} == held(log)
    first, second = all_of(log)
    assert (0, 3, 7) == (first.base_offset, first.last_offset, first.leader_epoch)
    assert (2, codec) == (parse_header(first.payload).count, parse_header(first.payload).attributes)
    assert (4, 4, 8) == (second.base_offset, second.last_offset, second.leader_epoch)
    assert not scan_partition(log.directory).problems
    assert ((7, 0), (8, 4)) == log.epoch_runs(0)[0]


def test_record_without_a_key_and_batch_of_a_transaction_stay(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d")
    append(log, [(None, "1"), ("a", "2"), (None, "3")])
    log.append_as_leader([keyed(("a", "4"), attributes=0x10)], 0)
    append(log, [("a", "5")])
    log.roll()
    clean_all(log)
    assert {0: (None, "1"), 2: (None, "3"), 3: ("a", "4"), 4: ("a", "5")} == held(log)


def test_neither_the_newest_file_nor_one_past_the_offset_is_cleaned(tmp_path: Path) -> None:
    """Source: Kafka, LogCleanerManagerTest.testCleanableOffsetsForNone; KAFKA-13194."""
    log = rolled(new_log(tmp_path / "d"), [[("a", "1")], [("a", "2")]], [[("a", "3")]])
    append(log, [("a", "4")])
    clean_all(log, upto=2)
    assert {1: ("a", "2"), 2: ("a", "3"), 3: ("a", "4")} == held(log)
    clean_all(log, upto=4)
    assert {2: ("a", "3"), 3: ("a", "4")} == held(log)


def test_clean_log_is_left_alone_until_a_file_is_closed(tmp_path: Path) -> None:
    log = rolled(new_log(tmp_path / "d"), [[("a", "1")], [("a", "2")]])
    assert 2 == log.clean(2, AT_ONCE, 1 << 20).upto
    append(log, [("a", "3")])
    assert NONE == log.clean(3, AT_ONCE, 1 << 20)
    log.roll()
    assert 3 == log.clean(3, AT_ONCE, 1 << 20).upto


def test_neighbours_become_one_file_as_far_as_they_fit(tmp_path: Path) -> None:
    """Source: Kafka, LogCleanerTest.testSegmentGrouping."""
    files = [[[(f"k{number}", "v" * 10)]] for number in range(4)]
    size = rolled(new_log(tmp_path / "one"), files[0]).size_bytes
    log = rolled(new_log(tmp_path / "d", segment_bytes=3 * size), *files)
    clean_all(log)
    assert [0, 3, 4] == segment_offsets(log.directory)
    assert 4 == len(held(log)) == len(held(reopened(log)))


def test_tombstone_goes_once_the_log_was_cleaned_and_its_file_is_old(tmp_path: Path) -> None:
    """Source: Kafka, LogCleanerTest.testCleanTombstone; delete.retention.ms."""
    log = new_log(tmp_path / "d", segment_bytes=1)
    append(log, [("a", "1")], timestamp=1000)
    append(log, [("a", None)], timestamp=1000)
    append(log, [("b", "2")], timestamp=1000)
    clean_all(log, delay=TombstoneDelay(100))
    assert {1: ("a", None), 2: ("b", "2")} == held(log)
    append(log, [("b", "3")], timestamp=1100)
    append(log, [("b", "4")], timestamp=1101)
    clean_all(log, delay=TombstoneDelay(100))
    assert {1: ("a", None), 3: ("b", "3"), 4: ("b", "4")} == held(log)
    append(log, [("b", "5")], timestamp=1102)
    clean_all(log, delay=TombstoneDelay(100))
    assert {4: ("b", "4"), 5: ("b", "5")} == held(log)


def test_files_that_hold_nothing_any_more_become_one_that_a_neighbour_takes_in(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d", segment_bytes=80)
    append(log, [("a", "1")], [("a", "2")], [("a", "3")], [("b", "4")])
    clean_all(log)
    assert {2: ("a", "3"), 3: ("b", "4")} == held(log)
    assert [0, 1, 2, 3] == segment_offsets(log.directory)
    append(log, [("b", "5")])
    clean_all(log)
    assert [0, 3, 4] == segment_offsets(log.directory)
    assert {2: ("a", "3"), 3: ("b", "4"), 4: ("b", "5")} == held(log) == held(reopened(log))


def test_last_batch_stays_if_only_empty_so_that_followers_reach_the_end(tmp_path: Path) -> None:
    """A truncation has left a batch without a record as the last one. Source: KAFKA-17076."""
    log = new_log(tmp_path / "d")
    header = parse_header(keyed(("a", "1")).payload)
    empty = build(replace(header, count=0, base_offset=1), b"")
    append(log, [("b", "1")])
    log.append_as_follower([batch_of(parse_header(empty), empty)])
    append(log, [("a", "2")])
    log.truncate_to(2, LeoAfterCut.TARGET)
    log.roll()
    clean_all(log)
    assert [(0, 0), (1, 1)] == offsets(log.read(0, 2, 1 << 20))


def test_producers_last_batch_stays_if_only_empty(tmp_path: Path) -> None:
    """Source: Kafka, LogCleanerTest.testRetainLastSequence."""
    log = new_log(tmp_path / "d")
    for number, producer in enumerate((5, 6, 5, 6)):
        log.append_as_leader([numbered(keyed(("a", str(number))), producer, number)], 0)
    append(log, [("a", "4")])
    log.roll()
    clean_all(log)
    headers = [parse_header(batch.payload) for batch in all_of(log)]
    assert [(2, 5, 2, 0), (3, 6, 3, 0), (4, -1, -1, 1)] == [
        (header.base_offset, header.producer_id, header.base_sequence, header.count) for header in headers
    ]


def test_producer_that_is_silent_is_still_known_after_more_cleanings_and_a_start(tmp_path: Path) -> None:
    """Else what it sends again would be appended again. Source: KIP-98; Kafka, lastRecordsOfActiveProducers."""
    log = new_log(tmp_path / "d")
    log.append_as_leader([numbered(keyed(("a", "0")), 5)], 0)
    for text in "123":
        append(log, [("a", text)])
        log.roll()
        clean_all(log)
    assert [(0, 0), (3, 3)] == offsets(log.read(0, 4, 1 << 20))
    log.close()
    _, recovery = open_log(TP, log.directory, Known(clean=False), LogOptions())
    assert 1 == recovery.sequences.known[5].next_sequence


def test_cleaning_in_steps_ends_as_one_in_one_step(tmp_path: Path) -> None:
    batches = [[(f"k{number % 3}", str(number))] for number in range(20)]
    one, many = (rolled(new_log(tmp_path / name), batches[:12], batches[12:]) for name in ("one", "many"))
    assert 1 == clean_all(one)
    assert 2 < clean_all(many, step=1)
    assert held(one) == held(many)
    assert [3, 3] == [len(held(one)), len(held(reopened(many)))]


@pytest.mark.parametrize("change", ["truncate", "start", "anew"])
def test_what_removes_records_ends_a_cleaning(change: str, tmp_path: Path) -> None:
    """Source: Kafka, LogCleaner.abortCleaning, which a truncation calls."""
    log = rolled(new_log(tmp_path / "d"), [[("a", "1")], [("b", "2")], [("a", "3")]])
    assert log.clean(3, AT_ONCE, 1).more
    if change == "truncate":
        log.truncate_to(2, LeoAfterCut.TARGET)
    elif change == "start":
        log.advance_start(1)
    else:
        log.truncate_fully(3)
    assert not list(log.directory.glob("*.cleaned"))
    append(log, [("a", "4")])
    log.roll()
    clean_all(log)
    expected = {
        "truncate": {1: ("b", "2"), 2: ("a", "4")},
        "start": {1: ("b", "2"), 3: ("a", "4")},
        "anew": {3: ("a", "4")},
    }
    assert expected[change] == held(log)


def test_truncation_below_a_clean_part_leaves_the_end_where_the_last_batch_ends(tmp_path: Path) -> None:
    """
    What was between was removed for the sake of records that are gone: a follower copies it again.

    Source: KIP-101, step 4.6 on a compacted log: the target may lie in a gap.
    """
    log = rolled(new_log(tmp_path / "d"), [[("b", "1")], [("a", "2")], [("a", "3")], [("a", "4")]], [[("c", "5")]])
    clean_all(log)
    assert [0, 3, 4] == list(held(log))
    assert 1 == log.truncate_to(2, LeoAfterCut.TARGET)
    assert {0: ("b", "1")} == held(log)
    append(log, [("b", "6")])
    log.roll()
    clean_all(log)
    assert {1: ("b", "6")} == held(log)
    assert (0, 2) == (log.start_offset, reopened(log).end_offset)


def test_log_with_a_damaged_batch_is_not_cleaned_until_it_is_mended(tmp_path: Path) -> None:
    log = rolled(new_log(tmp_path / "d"), [[("a", "1")], [("a", "2")]], [[("a", "3")]])
    (path,) = log.directory.glob(f"{0:020d}.log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert [-1, -1] == [log.clean(3, AT_ONCE, 1 << 20).upto for _ in range(2)]
    assert bytes(data) == path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    log.mend(log.read(1, 2, 1 << 20)[0])
    clean_all(log)
    assert {2: ("a", "3")} == held(log)


@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize("message_format", [1, 2])
def test_messages_of_the_old_format_are_compacted_and_keep_it(
    codec: int, message_format: int, tmp_path: Path
) -> None:
    """Source: Kafka, MemoryRecords.filterTo: what stays keeps its format, its offset and its time."""
    log = new_log(tmp_path / "d")
    for pairs in ([("a", "1"), ("b", "2"), ("a", "3")], [("c", "4"), ("b", "5")], [("c", "6"), (None, "7")]):
        log.append_as_leader([keyed(*pairs, codec=codec)], 1, message_format)
    log.append_as_leader([keyed(("a", "8"), ("d", None), codec=codec)], 2, 3 - message_format)
    log.roll()
    left = {4: ("b", "5"), 5: ("c", "6"), 6: (None, "7"), 7: ("a", "8"), 8: ("d", None)}
    clean_all(log)
    assert left == held(log)
    again = reopened(log)
    assert (left, 9) == (held(again), again.end_offset)
    seen = scan_partition(log.directory)
    assert [] == list(seen.problems)
    formats = [(each.last < 7, each.magic) for each in seen.batches]
    assert {(True, message_format), (False, 3 - message_format)} == {*formats}


def test_last_message_that_is_cleaned_stays_though_it_is_an_old_tombstone(tmp_path: Path) -> None:
    """An entry cannot be empty, and the log must go on from its offset."""
    log = new_log(tmp_path / "d")
    for value in ("1", None):
        log.append_as_leader([keyed(("a", value), timestamp=1)], 0, 1)
    log.roll()
    for _ in range(2):
        clean_all(log)
    log.append_as_leader([keyed(("b", "2"), timestamp=10**9)], 0, 1)
    log.roll()
    clean_all(log)
    assert {1, 2} >= held(log).keys() and 2 in held(log)
    assert 3 == reopened(log).end_offset


def test_step_of_a_cleaning_replaces_few_of_3000_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that replaced all of them would hold up the loop for seconds."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    count = 3_000
    log = new_log(tmp_path / "d", segment_bytes=80)
    append(log, *([(f"k{number % 2}", str(number))] for number in range(count)))
    log.configure(1 << 20, 0)
    log.roll()
    removed = 0
    real = os.unlink

    def unlink(*args: Any, **named: Any) -> None:
        nonlocal removed
        removed += 1
        real(*args, **named)

    monkeypatch.setattr(os, "unlink", unlink)
    steps, more = 0, True
    while more:
        removed = 0
        more, steps = log.clean(count, TombstoneDelay(0), 64 * 1024).more, steps + 1
        assert removed <= GROUP_FILES_MAX
    assert steps > count // GROUP_FILES_MAX
    assert {"k0": str(count - 2), "k1": str(count - 1)} == dict(held(log).values())
    assert len(list(log.directory.glob("*.log"))) <= count // GROUP_FILES_MAX + 1
