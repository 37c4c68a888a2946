"""The scan reads a directory that Apache Kafka wrote whole, and reports damage as problems without raising."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from harness.logs.replica import snapshot_events
from harness.model import UsageError
from targets.kafka_family.logs.data import parse
from tests.events.as_recorded import as_recorded
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.build import batch, partition
from tests.targets.kafka_family.logs.scans import find_partitions, scan_partition

RELEASES = ("1.1.1", "3.9.1")
CODECS = ("gzip", "snappy", "lz4", "zstd")
EVERY = [path for release in RELEASES for path in find_partitions(DATA / f"kafka-{release}" / "b1")]
TWO = (batch(0, "m1", "m2"), batch(2, "m3", epoch=1))


def shape(directory: Path) -> list[tuple[int, int, int]]:
    """Return (base, last, epoch) of every batch that a scan finds."""
    return [(b.base, b.last, b.epoch) for b in scan_partition(directory).batches]


@pytest.mark.parametrize("directory", EVERY, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
def test_scan_reads_every_record_when_apache_kafka_wrote_the_directory(directory: Path) -> None:
    """Each round of tests/make_kafka_logs.py writes two batches of three records under one leader."""
    log = scan_partition(directory)
    topic = directory.name.removesuffix("-0")
    markers = 4 if topic == "transactions" else 0
    values = [value for b in log.batches if not b.control for _, _, value in b.records]
    rest = "and the same again and again and again"
    expected = [
        f"{topic}, epoch of leader {leader}, batch {number}, record {index}, {rest}"
        for leader in (1, 2)
        for number in (0, 1)
        for index in range(3)
    ]
    end = 12 + markers
    assert expected == values
    assert ((), (), 0, end, end) == (
        log.problems,
        log.unread,
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
    )
    assert list(range(end)) == [offset for b in log.batches for offset, _, _ in b.records]
    assert {topic.removeprefix("broker-")} & set(CODECS) or {"none"} == {b.codec for b in log.batches}
    assert markers == sum(b.control for b in log.batches)
    assert log.epochs is not None
    assert ((0, 0), (2, end // 2)) == log.epochs[:2]


def test_scan_gives_the_pinned_digest_when_the_same_record_is_read_from_two_releases() -> None:
    found = [
        scan_partition(DATA / f"kafka-{r}" / "b2" / "broker-snappy-0").batches[0].records[0] for r in RELEASES
    ]
    assert ["24baada6fc00e7dd"] * 2 == [digest for _, digest, _ in found]


def test_scan_reads_segments_in_order_and_names_them_when_a_log_was_rolled() -> None:
    log = scan_partition(DATA / "kafka-3.9.1" / "b1" / "rolled-0")
    assert [f"{first:020d}.log" for first in (0, 3, 6, 9)] == [b.segment for b in log.batches]
    assert {0} == {b.position for b in log.batches}


def test_scan_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    data = tmp_path / "b1"
    shutil.copytree(DATA / "kafka-3.9.1" / "b1", data)
    files = sorted(path for path in data.rglob("*"))
    before = [(path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in files]
    for directory in find_partitions(data):
        scan_partition(directory)
    assert files == sorted(path for path in data.rglob("*"))
    assert before == [(path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in files]


@pytest.mark.parametrize(
    ("tail", "says"),
    [(batch(3, "m4")[:-1], "torn"), (bytes(512), "512 bytes, all zero"), (batch(300, "m4")[:8], "torn, 8 bytes")],
    ids=["torn", "zeros", "stub"],
)
def test_scan_ends_at_the_last_sound_batch_when_the_tail_is_torn(tmp_path: Path, tail: bytes, says: str) -> None:
    log = scan_partition(partition(tmp_path, *TWO, tail))
    assert (3, 2, ((3, None),)) == (log.log_end_offset, len(log.batches), log.unread)
    (problem,) = log.problems
    assert says in problem
    assert problem.startswith(f"{0:020d}.log, position {len(TWO[0] + TWO[1])}: ")


def test_scan_goes_on_with_the_next_segment_when_one_is_damaged(tmp_path: Path) -> None:
    directory = partition(tmp_path, TWO[0], batch(2, "m3")[:-1])
    (directory / f"{3:020d}.log").write_bytes(batch(3, "m4", epoch=1))
    log = scan_partition(directory)
    assert [0, 3] == [b.base for b in log.batches]
    assert (4, ((2, 3),)) == (log.log_end_offset, log.unread)


def test_scan_reports_a_batch_when_it_goes_back_behind_another_segment(tmp_path: Path) -> None:
    directory = partition(tmp_path, batch(0, "a", "b", "c"))
    (directory / f"{3:020d}.log").write_bytes(batch(2, "x") + batch(3, "d"))
    log = scan_partition(directory)
    assert ["", "base offset is 2; expected 3 or later, the end of the batch before it", ""] == [
        b.problem for b in log.batches
    ]
    assert ((), 4) == (log.problems, log.log_end_offset)


def test_scan_reports_a_segment_s_first_batch_when_the_segment_before_reaches_past_it(tmp_path: Path) -> None:
    directory = partition(tmp_path, batch(0, "a", "b", "c", "d", "e"))
    (directory / f"{3:020d}.log").write_bytes(batch(3, "x"))
    log = scan_partition(directory)
    assert "base offset is 3; expected 5 or later" in log.batches[1].problem
    assert 5 == log.log_end_offset


def test_scan_keeps_the_batch_and_names_it_when_its_records_do_not_open(tmp_path: Path) -> None:
    log = scan_partition(
        partition(tmp_path, TWO[0], batch(2, "x", codec="gzip", payload=b"no gzip"), batch(3, "d"))
    )
    assert [2, 0, 1] == [len(b.records) for b in log.batches]
    assert ((2, 3),) == log.unread
    assert "gzip: 7 bytes do not decompress" in log.problems[0]
    assert log.problems[0].endswith(log.batches[1].unopened)


def test_scan_ignores_what_is_no_segment_when_it_lies_beside_one(tmp_path: Path) -> None:
    directory = partition(tmp_path, *TWO)
    for name in ("0.log", f"{9:020d}.log.deleted", f"{9:020d}.index", f"{9:020d}.snapshot"):
        (directory / name).write_bytes(batch(9, "no"))
    assert [(0, 1, 0), (2, 2, 1)] == shape(directory)


def test_scan_ends_where_the_last_segment_begins_when_that_is_empty(tmp_path: Path) -> None:
    directory = partition(tmp_path, *TWO)
    (directory / f"{9:020d}.log").write_bytes(b"")
    assert (9, ()) == (scan_partition(directory).log_end_offset, scan_partition(directory).problems)


def test_scan_tells_what_is_unreadable_when_files_are_no_files(tmp_path: Path) -> None:
    directory = partition(tmp_path, *TWO)
    (directory / f"{3:020d}.log").mkdir()
    (directory / "leader-epoch-checkpoint").mkdir()
    (tmp_path / "replication-offset-checkpoint").write_text("0\n9\nt 0 3\n")
    log = scan_partition(directory)
    assert (3, None, None, ((3, None),)) == (log.log_end_offset, log.epochs, log.high_watermark, log.unread)
    assert [True] * 3 == [
        any(text in problem for problem in log.problems)
        for text in (f"{3:020d}.log", "leader-epoch-checkpoint", "1 entries; its line 2 says 9")
    ]


def test_scan_tells_that_there_is_no_segment_when_the_directory_is_empty_or_gone(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    assert ("t-0: no segment; expected at least one .log file",) == scan_partition(tmp_path / "t-0").problems
    assert "No such file" in scan_partition(tmp_path / "u-0").problems[0]


def test_scan_takes_start_watermark_and_cleaner_offset_from_the_data_directory(tmp_path: Path) -> None:
    directory = partition(tmp_path, *TWO, epochs=[(0, 0), (1, 2)])
    for name, offset in (("replication-offset", 3), ("log-start-offset", 1), ("cleaner-offset", 2)):
        (tmp_path / f"{name}-checkpoint").write_text(f"0\n2\nu 0 77\nt 0 {offset}\n")
    log = scan_partition(directory)
    assert (3, 1, 2, ((0, 0), (1, 2))) == (log.high_watermark, log.log_start_offset, log.cleaned_to, log.epochs)


@pytest.mark.parametrize("magic", [0, 1])
def test_scan_says_so_when_a_message_of_an_old_format_is_damaged(tmp_path: Path, magic: int) -> None:
    old = bytearray(batch(0, "a"))
    struct.pack_into(">b", old, 16, magic)
    log = scan_partition(partition(tmp_path, bytes(old)))
    assert ((), 0) == (log.batches, log.log_end_offset)
    assert "position 0: message's CRC-32 is" in log.problems[0]


def test_scan_raises_nothing_when_a_kafka_segment_is_cut_at_every_byte(tmp_path: Path) -> None:
    data = (DATA / "kafka-3.9.1" / "b1" / "gzip-0" / f"{0:020d}.log").read_bytes()
    ends = {0, *(b.position for b in scan_partition(DATA / "kafka-3.9.1" / "b1" / "gzip-0").batches)}
    for cut in range(len(data)):
        log = scan_partition(partition(tmp_path, data[:cut]))
        assert (cut in ends) == (log.problems == ()), cut
        assert log.log_end_offset == 3 * len(log.batches), cut


def test_find_partitions_gives_the_directory_itself_when_it_is_one(tmp_path: Path) -> None:
    directory = partition(tmp_path, *TWO)
    assert [directory] == find_partitions(directory)
    assert [directory] == find_partitions(tmp_path)


def test_find_partitions_leaves_out_what_is_no_partition_when_it_lists_a_data_directory(tmp_path: Path) -> None:
    directory = partition(tmp_path, *TWO)
    for name in ("t-1.0123-delete", "t-2.0123-future", "t-3.0123-stray", "plain", "backup-7"):
        (tmp_path / name).mkdir()
    (tmp_path / "t-9").write_text("a file")
    assert [directory] == find_partitions(tmp_path)
    # Beside Kafka's own files, an empty directory is a replica that lost everything in a power loss.
    (tmp_path / "meta.properties").touch()
    assert [tmp_path / "backup-7", directory] == find_partitions(tmp_path)


def test_find_partitions_gives_none_for_another_directory(tmp_path: Path) -> None:
    assert [] == find_partitions(tmp_path)


def test_topic_and_partition_are_parted_at_the_last_dash() -> None:
    assert ("a-b.c_d-1", 23) == parse("a-b.c_d-1-23", Path("a-b.c_d-1-23"))
    for name in ("orders", "orders-007", "-1"):
        with pytest.raises(UsageError, match=f"data/{name}: the directory's name is not TOPIC-PARTITION"):
            parse(name, Path("data", name))


def test_snapshot_events_are_one_snapshot_and_then_every_batch_as_json(tmp_path: Path) -> None:
    log = scan_partition(partition(tmp_path, TWO[0], batch(1, "x", epoch=3), epochs=[(0, 0)]))
    (f, snapshot), *batches = map(as_recorded, snapshot_events(log))
    assert ("snapshot", ["batch", "batch"]) == (f, [each for each, _ in batches])
    assert {
        "topic": "t",
        "partition": 0,
        "log_start_offset": 0,
        "log_end_offset": 2,
        "high_watermark": None,
        "epochs": [[0, 0]],
        "problems": [],
        "batches": 2,
    } == json.loads(json.dumps(snapshot))
    first, second = (value for _, value in batches)
    assert {
        "topic": "t",
        "partition": 0,
        "base": 0,
        "last": 1,
        "epoch": 0,
        "magic": 2,
        "crc": log.batches[0].crc,
        "codec": "none",
        "position": 0,
        "segment": f"{0:020d}.log",
        "records": [[offset, digest, value] for offset, digest, value in log.batches[0].records],
    } == json.loads(json.dumps(first))
    assert "base offset is 1" in second["problem"]


def test_snapshot_events_mark_a_control_batch_when_the_log_has_transactions() -> None:
    ops = map(as_recorded, snapshot_events(scan_partition(DATA / "kafka-1.1.1" / "b1" / "transactions-0")))
    assert [3, 7, 11, 15] == [value["base"] for _, value in ops if value.get("control")]
