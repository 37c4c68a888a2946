"""A broker's one log, read queue by queue: which queues there are, what each has, and where it ends."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.target.logs import KeepsTwice, Logs, QuickEnds, ReplicaFolders, Rots, Segments
from targets.rocketmq.logs.reader import LOGS
from tests.targets.rocketmq.records import (
    blank,
    commit_log,
    end_of,
    epochs,
    log_of,
    newest,
    path_of,
    record,
    replicas,
    scan,
    topics,
    values,
)

THREE = log_of(b"m0", b"m1", b"m2")
SIZE = len(THREE) // 3
# Those that a broker of 5.5.0 makes by itself, and one of 5.3.3.
OWN = (
    *("SCHEDULE_TOPIC_XXXX", "fencepost", "rmq_sys_REVIVE_LOG_fencepost", "rmq_sys_SYNC_BROKER_MEMBER_brokers"),
    *("SELF_TEST_TOPIC", "fencepost_REPLY_TOPIC", "brokers", "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"),
    *("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "BenchmarkTest", "OFFSET_MOVED_EVENT"),
    *("TBW102", "TRANS_CHECK_MAX_TIME_TOPIC", "CHECKPOINT_TOPIC", "%RETRY%fencepost", "%DLQ%fencepost"),
)


# --- queues ----------------------------------------------------------------------------------------------------
def test_queues_are_those_of_the_file_of_topics_and_those_that_have_records(tmp_path: Path) -> None:
    topics(tmp_path, {"log": 2, "orders": 1})
    data = log_of(b"m0", queue=1) + record(b"x", SIZE, topic="other", queue=4)
    commit_log(tmp_path, (0, data))
    assert [("log", 0), ("log", 1), ("orders", 0), ("other", 4)] == sorted(replicas(tmp_path))
    assert len(replicas(tmp_path)) == len({*replicas(tmp_path)})


def test_topics_that_a_broker_makes_for_itself_are_left_out(tmp_path: Path) -> None:
    topics(tmp_path, {**dict.fromkeys(OWN, 8), "log": 1, "brokers2": 1, "fencepost_x": 1})
    data = b""
    for topic in OWN:
        data += record(b"x", len(data), topic=topic)
    commit_log(tmp_path, (0, data))
    assert [("brokers2", 0), ("fencepost_x", 0), ("log", 0)] == sorted(replicas(tmp_path))


def test_folder_that_is_no_broker_s_has_no_queues_and_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    assert ([], []) == (replicas(tmp_path), newest(tmp_path))
    log = scan(tmp_path)
    assert (0, (), ()) == (log.log_end_offset, log.batches, log.problems)


@pytest.mark.parametrize(
    "text",
    [
        *(
            b"",
            b"{",
            b"no JSON",
            b"null",
            b"7",
            b"[]",
            b'"x"',
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"topicConfigTable"',
        ),
        *(b'{"topicConfigTable": 7}', b'{"topicConfigTable": [1]}', b'{"topicConfigTable": {"log": 7}}'),
        *(b'{"topicConfigTable": {"log": null}}', b'{"topicConfigTable": {"log": {"readQueueNums": "x"}}}'),
        *(b'{"topicConfigTable": {"log": {"readQueueNums": -4}}}', b'{"topicConfigTable": null}'),
        b'{"topicConfigTable": {"log": {"readQueueNums": NaN}}}',
    ],
)
def test_file_of_topics_that_is_none_leaves_the_queues_with_records(tmp_path: Path, text: bytes) -> None:
    topics(tmp_path, {}).write_bytes(text)
    commit_log(tmp_path, (0, THREE))
    assert [("log", 0)] == replicas(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b'{"topicConfigTable": {"log": {}}}',
        b'{"topicConfigTable": {"log": {"readQueueNums": Infinity}}}',
        b'{"topicConfigTable": {"log": {"readQueueNums": 1e999}}}',
    ],
)
def test_file_of_topics_without_what_it_has_leaves_the_queues_with_records(tmp_path: Path, text: bytes) -> None:
    topics(tmp_path, {}).write_bytes(text)
    commit_log(tmp_path, (0, THREE))
    assert [("log", 0)] == replicas(tmp_path)


def test_topic_cannot_claim_queues_without_end(tmp_path: Path) -> None:
    topics(tmp_path, {"log": 10**12})
    assert 1 <= len(replicas(tmp_path)) <= 1000


# --- records ---------------------------------------------------------------------------------------------------
def test_queue_has_its_own_records_each_with_the_epoch_of_its_byte(tmp_path: Path) -> None:
    data = log_of(b"a0", b"a1") + log_of(b"b0", at=2 * SIZE, queue=1)
    data += log_of(b"a2", at=3 * SIZE, offset=2) + log_of(b"c0", at=4 * SIZE, topic="etc")
    commit_log(tmp_path, (0, data + bytes(5000)))
    epochs(tmp_path, (1, 0), (2, SIZE), (4, 3 * SIZE))
    log = scan(tmp_path)
    assert [(0, 1, "a0"), (1, 2, "a1"), (2, 4, "a2")] == [
        (each.base, each.epoch, value) for each, value in zip(log.batches, values(log), strict=True)
    ]
    assert (3, 0, (), ()) == (log.log_end_offset, log.log_start_offset, log.problems, log.unread)
    assert (["b0"], ["c0"]) == (values(scan(tmp_path, queue=1)), values(scan(tmp_path, "etc")))
    assert [3, 1, 1, 0] == [
        end_of(tmp_path, topic, queue) for topic, queue in (("log", 0), ("log", 1), ("etc", 0), ("log", 2))
    ]


def test_records_without_a_file_of_epochs_have_none(tmp_path: Path) -> None:
    commit_log(tmp_path, (0, THREE))
    assert [-1, -1, -1] == [each.epoch for each in scan(tmp_path).batches]
    epochs(tmp_path, (5, SIZE))
    assert [-1, 5, 5] == [each.epoch for each in scan(tmp_path).batches]


def rolled(data: Path, *counts: int, spare: int = 60) -> Path:
    """Write a log of so many records in each file, each of which but the last one ends with a blank."""
    files: list[tuple[int, bytes]] = []
    at = offset = 0
    for count in counts:
        written = log_of(*(b"m%d" % number for number in range(offset, offset + count)), at=at, offset=offset)
        written += blank(spare)
        files.append((at, written))
        at, offset = at + len(written), offset + count
    last, written = files[-1]
    files[-1] = last, written[:-spare] + bytes(spare)
    return commit_log(data, *files)


@pytest.mark.parametrize("counts", [(3, 3), (1, 1, 1, 1), (4, 0, 2), (5, 0)])
@pytest.mark.parametrize("spare", [8, 60])
def test_log_goes_on_in_its_next_file_after_the_blank(tmp_path: Path, counts: tuple[int, ...], spare: int) -> None:
    rolled(tmp_path, *counts, spare=spare)
    expected = [f"m{number}" for number in range(sum(counts))]
    log = scan(tmp_path)
    assert (expected, len(expected), ()) == (values(log), log.log_end_offset, log.problems)
    assert len(expected) == end_of(tmp_path)
    assert [("log", 0)] == replicas(tmp_path)


def test_file_that_is_full_to_its_last_byte_is_followed_by_the_next_one(tmp_path: Path) -> None:
    commit_log(tmp_path, (0, THREE), (len(THREE), log_of(b"m3", at=len(THREE), offset=3)))
    assert ["m0", "m1", "m2", "m3"] == values(scan(tmp_path))


def test_file_that_does_not_end_with_a_blank_is_the_last_one(tmp_path: Path) -> None:
    """What a truncation left in later files is behind zeros."""
    at = len(THREE) + 100
    commit_log(tmp_path, (0, THREE + bytes(100)), (at, log_of(b"old", at=at, offset=3)))
    assert (["m0", "m1", "m2"], 3) == (values(scan(tmp_path)), end_of(tmp_path))


def test_log_whose_first_files_were_deleted_begins_later(tmp_path: Path) -> None:
    commit_log(tmp_path, (2**40, log_of(b"m7", b"m8", at=2**40, offset=7)))
    log = scan(tmp_path)
    assert ([7, 8], 9, ()) == ([each.base for each in log.batches], log.log_end_offset, log.problems)


def test_names_that_are_no_file_of_the_log_are_passed_over(tmp_path: Path) -> None:
    commit_log(tmp_path, (0, THREE))
    for name in ("0", f"{0:019d}", f"{0:021d}", f"{len(THREE):020d}.bak", ".x", "9" * 19 + "a"):
        (tmp_path / "commitlog" / name).write_bytes(log_of(b"no", at=len(THREE), offset=3))
    assert ["m0", "m1", "m2"] == values(scan(tmp_path))


# --- what is no file -------------------------------------------------------------------------------------------
def spoil(path: Path, kind: str) -> None:
    """Put something else in the place of a file."""
    path.rename(path.with_suffix(".kept"))
    if kind == "link":
        path.symlink_to(path.with_suffix(".kept"))
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_file_of_the_log_that_is_none_is_not_opened_and_cannot_be_read(tmp_path: Path, kind: str) -> None:
    commit_log(tmp_path, (0, THREE), (len(THREE), log_of(b"m3", at=len(THREE), offset=3)))
    spoil(path_of(tmp_path, len(THREE)), kind)
    log = scan(tmp_path)
    assert (["m0", "m1", "m2"], ((3, None),), None) == (values(log), log.unread, end_of(tmp_path))
    assert "expected a regular file" in log.problems[0]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_queue_whose_records_cannot_be_read_is_there_nevertheless(tmp_path: Path, kind: str) -> None:
    topics(tmp_path, {"log": 2})
    commit_log(tmp_path, (0, THREE))
    spoil(path_of(tmp_path), kind)
    assert [("log", 0), ("log", 1)] == replicas(tmp_path)


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_file_of_topics_that_is_none_is_not_opened(tmp_path: Path, kind: str) -> None:
    spoil(topics(tmp_path, {"log": 2}), kind)
    assert [] == replicas(tmp_path)


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_folder_of_the_log_that_is_none_is_not_looked_into(tmp_path: Path, kind: str) -> None:
    topics(tmp_path, {"log": 1})
    commit_log(tmp_path, (0, THREE))
    spoil(tmp_path / "commitlog", kind)
    assert ([], [], [("log", 0)]) == (values(scan(tmp_path)), newest(tmp_path), replicas(tmp_path))


def test_record_of_a_queue_that_none_has_is_no_queue(tmp_path: Path) -> None:
    """The checksum is that of the body alone."""
    commit_log(tmp_path, (0, THREE + record(b"x", len(THREE), queue=-1)))
    assert all(queue >= 0 for _, queue in replicas(tmp_path))


# --- files -----------------------------------------------------------------------------------------------------
def test_newest_file_is_the_last_one_with_a_record(tmp_path: Path) -> None:
    commit_log(tmp_path, (0, THREE), (1000, bytes(500)))
    assert [f"commitlog/{0:020d}"] == newest(tmp_path)
    path_of(tmp_path, 1000).write_bytes(log_of(b"m3", at=1000, offset=3))
    assert [f"commitlog/{1000:020d}"] == newest(tmp_path)
    path_of(tmp_path, 2000).touch()
    assert [f"commitlog/{1000:020d}"] == newest(tmp_path)


def test_log_without_a_record_has_no_newest_file(tmp_path: Path) -> None:
    assert [] == newest(commit_log(tmp_path, (0, bytes(500)), (500, b"")))


def test_reader_can_find_ends_and_files_and_nothing_else() -> None:
    reader: Any = LOGS
    assert [True, True] == [isinstance(reader, each) for each in (QuickEnds, Segments)]
    assert [False] * 3 == [isinstance(reader, each) for each in (Rots, KeepsTwice, ReplicaFolders)]
    logs: Logs = LOGS
    assert logs.expected.startswith("a folder `commitlog`")


def test_files_are_read_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    rolled(tmp_path, *([1] * 12))
    offsets = [each.base for each in scan(tmp_path).batches]
    assert all(before + 1 == after for before, after in pairwise(offsets))
