"""How far a log is compacted is kept over starts, in Kafka's file, and is never more than what is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.logs.lineage import DifferenceKind, differences, holes
from harness.logs.soundness import notes
from targets.broker.core.log_port import Cleaned, LeoAfterCut
from targets.broker.core.messages import TopicPartition
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import FileLog
from targets.broker.log.data_dir import DataDir, open_data_dir
from tests.broker.log.keyed import AT_ONCE, append, clean_all, held, keyed, numbered
from tests.targets.kafka_family.logs.scans import scan_partition

TP = TopicPartition("topic", 0)
FILE = "cleaner-offset-checkpoint"
NOTHING = Cleaned()


def logs(path: Path, segment_bytes: int = 1) -> tuple[DataDir, FileLog]:
    """Open a data directory, by default with a file for each batch, and its only log, which is made if new."""
    data = open_data_dir(path, segment_bytes=segment_bytes).data
    return data, data.logs.get(TP) or data.create_log(TP)


def killed(data: DataDir) -> tuple[DataDir, FileLog]:
    """Return what the next process opens after a crash."""
    data.close()
    return logs(data.path)


def said(data: DataDir) -> str:
    """Return the file."""
    return (data.path / FILE).read_text()


def test_end_of_a_cleaning_is_written_down_and_the_next_process_goes_on_from_there(tmp_path: Path) -> None:
    """Source: Kafka, LogCleanerManager.doneCleaning."""
    told: list[tuple[str, int]] = []
    data = open_data_dir(tmp_path, segment_bytes=1, on_durable=lambda *file: told.append(file)).data
    log = data.create_log(TP)
    append(log, [("a", "1")], [("a", "2")], [("b", "3")])
    clean_all(log)
    assert "0\n1\ntopic 0 2\n" == said(data)
    assert (FILE, len(said(data))) == told[-1]
    data, log = killed(data)
    assert NOTHING == log.clean(3, AT_ONCE, 1 << 20)
    append(log, [("a", "4")])
    clean_all(log)
    assert {1: ("a", "2"), 2: ("b", "3"), 3: ("a", "4")} == held(log)
    append(log, [("c", "5")])
    clean_all(log)
    assert {2: ("b", "3"), 3: ("a", "4"), 4: ("c", "5")} == held(log)
    assert "0\n1\ntopic 0 4\n" == said(data)


def test_tombstone_of_what_was_clean_before_a_start_goes(tmp_path: Path) -> None:
    """Source: Kafka, LogCleanerTest.testCleanTombstone; delete.retention.ms."""
    data, log = logs(tmp_path)
    append(log, [("a", "1")], [("a", None)], [("b", "2")], timestamp=1000)
    clean_all(log, delay=TombstoneDelay(100))
    data, log = killed(data)
    append(log, [("b", "3")], [("b", "4")], timestamp=1200)
    clean_all(log, delay=TombstoneDelay(100))
    data, log = killed(data)
    append(log, [("b", "5")], timestamp=1202)
    clean_all(log, delay=TombstoneDelay(100))
    assert {4: ("b", "4"), 5: ("b", "5")} == held(log)


def test_last_batch_of_a_producer_stays_if_it_was_emptied_before_a_start(tmp_path: Path) -> None:
    """Else what it sends again would be appended again. Source: KIP-98; Kafka, lastRecordsOfActiveProducers."""
    data, log = logs(tmp_path)
    log.append_as_leader([numbered(keyed(("a", "0")), 5)], 0)
    append(log, [("a", "1")], [("a", "2")])
    clean_all(log)
    for text in "345":
        data, log = killed(data)
        append(log, [("a", text)])
        clean_all(log)
    data.close()
    opened = open_data_dir(tmp_path, segment_bytes=1)
    assert 1 == opened.logs[TP][1].sequences.known[5].next_sequence


def test_what_is_appended_after_a_cut_is_not_clean_after_a_crash(tmp_path: Path) -> None:
    """The cut ends in a gap, so that the log ends before it. Source: Kafka, maybeTruncateCheckpoint."""
    data, log = logs(tmp_path, 1 << 20)
    append(log, [("b", "1")], [("a", "2")], [("a", "3")], [("a", "4")])
    log.roll()
    clean_all(log)
    assert "0\n1\ntopic 0 4\n" == said(data)
    assert 1 == log.truncate_to(3, LeoAfterCut.TARGET)
    assert "0\n1\ntopic 0 1\n" == said(data)
    append(log, [("b", "6")], [("b", "7")], [("d", "8")])
    log.roll()
    data, log = killed(data)
    clean_all(log)
    assert {2: ("b", "7"), 3: ("d", "8")} == held(log)


def test_what_is_appended_where_recovery_cut_is_not_clean(tmp_path: Path) -> None:
    data, log = logs(tmp_path)
    append(log, [("a", "1")], [("b", "2")], [("c", "3")], [("d", "4")])
    clean_all(log)
    data.close()
    path = log.directory / f"{1:020d}.log"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    data, log = logs(tmp_path)
    assert 1 == log.end_offset
    assert "0\n1\ntopic 0 1\n" == said(data)
    append(log, [("a", "5")], [("a", "6")], [("e", "7")])
    data, log = killed(data)
    clean_all(log)
    assert {2: ("a", "6"), 3: ("e", "7")} == held(log)


def test_log_that_is_deleted_or_begins_anew_is_not_clean(tmp_path: Path) -> None:
    data, log = logs(tmp_path)
    append(log, [("a", "1")], [("a", "2")], [("b", "3")])
    clean_all(log)
    log.truncate_fully(7)
    assert "0\n0\n" == said(data)
    append(log, [("a", "4")], [("b", "5")])
    clean_all(log)
    assert "0\n1\ntopic 0 8\n" == said(data)
    log.delete()
    assert "0\n0\n" == said(data)


@pytest.mark.parametrize(
    "content", [b"", b"0\n1\ntopic 0 -5\n", b"0\n1\nother 0 9\n", b"\xff", b"0\n2\ntopic 0 2\n"]
)
def test_log_of_which_nobody_says_how_far_it_is_clean_is_cleaned_again(content: bytes, tmp_path: Path) -> None:
    data, log = logs(tmp_path)
    append(log, [("a", "1")], [("a", "2")], [("b", "3")])
    clean_all(log)
    (tmp_path / FILE).write_bytes(content)
    data.close()
    opened = open_data_dir(tmp_path, segment_bytes=1)
    damaged = content in (b"\xff", b"0\n2\ntopic 0 2\n")
    assert [FILE] * damaged == [note.partition("-unreadable")[0] for note in opened.notes]
    assert ("+" in opened.logs[TP][1].reason) == damaged
    log = opened.data.logs[TP]
    assert 2 == log.clean(3, AT_ONCE, 1 << 20).upto
    assert "0\n1\ntopic 0 2\n" in (tmp_path / FILE).read_text() or b"other" in content


def test_gaps_of_a_log_of_this_broker_are_no_holes(tmp_path: Path) -> None:
    """`fencepost lineage` reads the file, which a compacted replica alone has; without it there are holes."""
    seen = {}
    for name in ("cleaned", "whole"):
        data, log = logs(tmp_path / name)
        append(log, [("a", "1")], [("a", "2")], epoch=3)
        append(log, [("b", "3")], [("a", "4")], [("c", "5")], epoch=4)
        log.write_epochs([(3, 0), (4, 2)], flush=True)
        if name == "cleaned":
            clean_all(log)
        data.close()
        seen[name] = scan_partition(log.directory)
    cleaned, whole = seen["cleaned"], seen["whole"]
    assert [0, 4] == [whole.cleaned_to, cleaned.cleaned_to]
    assert [5, 3] == [sum(len(each.records) for each in log.batches) for log in (whole, cleaned)]
    assert () == holes(cleaned) == notes(cleaned) == differences(seen)
    (tmp_path / "cleaned" / FILE).unlink()
    again = scan_partition(tmp_path / "cleaned" / str(TP))
    assert ((0, 2),) == holes(again)
    assert [DifferenceKind.HOLE] == [each.kind for each in differences(seen | {"cleaned": again})]
