"""Fluss's log reader as a part of its target: which replicas a node has, where they end, and what may rot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import limits
from harness.beneath import Folder
from harness.bit_rot import Where
from harness.hosts.trees import exchange
from harness.target.logs import Logs, NodeFiles, QuickEnds, ReplicaFolders, Rots, Segments
from targets.fluss.logs.data import HIGH_WATERMARKS
from targets.fluss.logs.reader import LOGS
from tests.targets.fluss.logs.build import batch, bucket
from tests.targets.fluss.logs.scans import GOLDEN, replicas, scan, values

SIX = [batch(at, f"m{at}") for at in range(6)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a bucket of two segments, of three batches each."""
    bucket(tmp_path, (0, SIX[:3]), (3, SIX[3:]))
    (tmp_path / HIGH_WATERMARKS).write_text("0\n2\n0 0 5\n7 0 0 9\n")
    return tmp_path


@pytest.fixture
def node(data: Path) -> Iterator[NodeFiles]:
    with Folder.at(data) as folder:
        yield NodeFiles(folder=folder)


def test_reader_has_every_ability_but_folders_that_are_named_alone() -> None:
    for ability in (QuickEnds, Rots, Segments):
        assert isinstance(LOGS, ability)
    assert not isinstance(LOGS, ReplicaFolders)
    assert LOGS.expected.startswith("folders DATABASE/TABLE-ID/log-BUCKET")
    logs: Logs = LOGS
    assert logs


def test_high_watermark_is_that_of_the_table_and_the_bucket(data: Path) -> None:
    assert (5, 6) == (scan(data).high_watermark, scan(data).log_end_offset)
    (data / HIGH_WATERMARKS).write_text("0\n1\n0 1 5\n")
    assert scan(data).high_watermark is None


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\n0 0 5\n", "0\n1\n0 5\n", "0\n1\n0 0 0 0 5\n", "0\n1\n0 0 -5\n"])
def test_checkpoint_without_its_format_is_a_problem_and_the_log_is_read(data: Path, text: str) -> None:
    (data / HIGH_WATERMARKS).write_text(text)
    log = scan(data)
    assert (None, 6) == (log.high_watermark, log.log_end_offset)
    assert log.problems[0].startswith(HIGH_WATERMARKS)


def test_table_that_was_made_again_has_the_plain_name_and_the_older_one_its_id(tmp_path: Path) -> None:
    tables = {"fencepost/t-9": "old", "fencepost/t-10": "new", "d/t-3": "other", "t/9-4": "fourth"}
    for name, value in tables.items():
        bucket(tmp_path, (0, [batch(0, value)]), name=f"{name}/log-0")
    assert [("d.t", 0), ("fencepost.t.9", 0), ("t", 0), ("t.9", 0)] == replicas(tmp_path)
    topics = ("d.t", "fencepost.t.9", "t", "t.9")
    assert [["other"], ["old"], ["new"], ["fourth"]] == [values(scan(tmp_path, topic)) for topic in topics]
    shutil.rmtree(tmp_path / "t")
    assert [("d.t", 0), ("t", 0), ("t.9", 0)] == replicas(tmp_path)


def test_names_that_are_no_bucket_s_are_no_replicas(tmp_path: Path) -> None:
    for name in ("kv-0", "log-00", "log-", "log-x", "log-0.deleted", "a-p0/log-0"):
        bucket(tmp_path, (0, SIX), name=f"fencepost/t-0/{name}")
    for name in ("fencepost/t/log-0", "fencepost/t-01/log-0", "a.b/t-0/log-0", "log-0"):
        bucket(tmp_path, (0, SIX), name=name)
    (tmp_path / "fencepost" / "u-1").mkdir()
    (tmp_path / "fencepost" / "u-1" / "log-0").touch()
    assert [] == replicas(tmp_path)


def test_too_many_tables_are_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket(data, (0, SIX), name="fencepost/u-1/log-0")
    monkeypatch.setattr(limits, "FOLDER_NAMES_MAX", 1)
    with pytest.raises(OSError, match="more than 1 tables or buckets"):
        replicas(data)
    assert "more than 1 tables" in scan(data).problems[0]


def test_links_and_fifos_in_place_of_a_bucket_are_replicas_that_cannot_be_read(data: Path) -> None:
    table = data / "fencepost" / "t-0"
    (table / "log-1").symlink_to(table / "log-0")
    os.mkfifo(table / "log-2")
    (table / "log-3").mkdir()
    assert [("t", number) for number in range(4)] == replicas(data)
    for number, text in ((1, "a link; expected a folder"), (2, "a FIFO; expected a folder"), (3, "no segment")):
        log = scan(data, "t", number)
        assert text in log.problems[0]
    assert ((0, None),) == scan(data, "t", 1).unread


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_links_and_fifos_in_place_of_files_are_not_opened(data: Path, kind: str) -> None:
    for path in (data / HIGH_WATERMARKS, data / "fencepost" / "t-0" / "log-0" / f"{3:020d}.log"):
        path.rename(path.with_suffix(".kept"))
        if kind == "link":
            path.symlink_to(path.with_suffix(".kept"))
        else:
            os.mkfifo(path)
    log = scan(data)
    assert (["m0", "m1", "m2"], ((3, None),), None) == (values(log), log.unread, log.high_watermark)
    assert 2 == len(log.problems)
    assert all("expected a regular file" in each for each in log.problems)


def test_databases_and_tables_that_are_links_are_not_looked_into(data: Path) -> None:
    (data / "d").symlink_to(data / "fencepost")
    (data / "fencepost" / "u-1").symlink_to(data / "fencepost" / "t-0")
    assert [("t", 0)] == replicas(data)


def test_topic_without_a_folder_is_a_log_that_cannot_be_read(data: Path) -> None:
    for topic, number in (("u", 0), ("t", 1), ("../t", 0), ("", 0)):
        log = scan(data, topic, number)
        assert (1, ((0, None),)) == (len(log.problems), log.unread)


def test_end_is_that_of_a_whole_reading(data: Path, node: NodeFiles) -> None:
    assert (6, None, None) == (LOGS.end(node, "t", 0), LOGS.end(node, "t", 1), LOGS.end(node, "u", 0))
    newest = data / "fencepost" / "t-0" / "log-0" / f"{3:020d}.log"
    for cut, end in ((SIX[3], 4), (b"", 3), (SIX[3] + SIX[4][:40], 4), (SIX[3] + bytes(99), 4)):
        newest.write_bytes(cut)
        assert (end, end) == (LOGS.end(node, "t", 0), scan(data).log_end_offset)
    newest.write_bytes(SIX[3][:-1] + b"x")
    assert LOGS.end(node, "t", 0) is None


@pytest.mark.parametrize(("topic", "bucket_number"), replicas(GOLDEN / "0"))
def test_end_of_a_real_log_is_that_of_a_whole_reading(topic: str, bucket_number: int) -> None:
    with Folder.at(GOLDEN / "0") as folder:
        end = LOGS.end(NodeFiles(folder=folder), topic, bucket_number)
    assert scan(GOLDEN / "0", topic, bucket_number).log_end_offset == end


@pytest.mark.parametrize(("where", "offset"), [(Where.CLOSED, 1), (Where.ACTIVE, 4)])
def test_flipped_byte_of_a_batch_is_found_by_its_checksum(
    data: Path, node: NodeFiles, where: Where, offset: int
) -> None:
    flip = LOGS.to_flip(node, "t", 0, where)
    assert flip is not None
    assert (offset, offset, "fencepost/t-0/log-0") == (flip.base, flip.last, flip.partition)
    before, after = bytes((flip.before,)), bytes((flip.after,))
    assert b"%d" % offset == before  # the last character of its value
    assert before == exchange(node.folder, flip.path, flip.position, before, after)
    log = scan(data)
    assert (((offset, offset + 1),), 6) == (log.unread, log.log_end_offset)
    assert "batch's CRC-32C is" in log.problems[0]


@pytest.mark.parametrize(("topic", "bucket_number"), replicas(GOLDEN / "0"))
def test_flipped_byte_of_a_real_log_is_found(tmp_path: Path, topic: str, bucket_number: int) -> None:
    shutil.copytree(GOLDEN / "0", tmp_path / "0")
    with Folder.at(tmp_path / "0") as folder:
        flip = LOGS.to_flip(NodeFiles(folder=folder), topic, bucket_number, Where.ACTIVE)
        assert flip is not None
        exchange(folder, flip.path, flip.position, bytes((flip.before,)), bytes((flip.after,)))
    assert "batch's CRC-32C is" in scan(tmp_path / "0", topic, bucket_number).problems[0]


def test_flipped_digit_of_the_checkpoint_is_found(data: Path, node: NodeFiles) -> None:
    flip = LOGS.to_flip(node, "t", 0, Where.CHECKPOINT)
    assert flip is not None
    assert (HIGH_WATERMARKS, None, ord("2")) == (flip.path, flip.base, flip.before)
    exchange(node.folder, flip.path, flip.position, bytes((flip.before,)), bytes((flip.after,)))
    assert scan(data).problems[0].startswith(HIGH_WATERMARKS)
    assert LOGS.to_flip(node, "t", 0, Where.CHECKPOINT) is None


def test_nothing_is_flipped_of_what_there_is_not(data: Path, node: NodeFiles) -> None:
    (data / "fencepost" / "t-0" / "log-1").symlink_to(data / "fencepost" / "t-0" / "log-0")
    bucket(data, (0, SIX), name="fencepost/t-0/log-2")
    (data / "fencepost" / "t-0" / "log-3").mkdir()
    for topic, number in (("u", 0), ("t", 1), ("t", 2), ("t", 3)):
        assert LOGS.to_flip(node, topic, number, Where.CLOSED) is None


def test_newest_segment_has_its_indexes_and_what_was_kept_of_writers_since(data: Path, node: NodeFiles) -> None:
    names = [f"{at:020d}{kind}" for at in (0, 3) for kind in (".index", ".timeindex", ".writer_snapshot")]
    names += [f"{6:020d}.writer_snapshot", f"{3:020d}.log.deleted", "9.log"]
    for name in names:
        (data / "fencepost" / "t-0" / "log-0" / name).touch()
    wanted = [f"{3:020d}{kind}" for kind in (".index", ".log", ".timeindex", ".writer_snapshot")]
    wanted += [f"{6:020d}.writer_snapshot"]
    assert [f"fencepost/t-0/log-0/{name}" for name in wanted] == LOGS.newest_segment(node, "t", 0)
    assert [] == LOGS.newest_segment(node, "t", 1)


def test_files_of_a_log_that_were_given_up_are_no_part_of_it(data: Path) -> None:
    log = data / "fencepost" / "t-0" / "log-0"
    (log / f"{3:020d}.log").rename(log / f"{3:020d}.log.deleted")
    assert 3 == scan(data).log_end_offset


def test_folder_that_is_no_data_directory_has_no_replicas(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(SIX[0])
    assert [] == replicas(tmp_path)
