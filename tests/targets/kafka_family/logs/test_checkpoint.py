"""Checkpoint files are read as Kafka reads them, and refused where Kafka refuses them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from harness.beneath import Folder
from harness.cli.main import main
from harness.logs import source
from harness.logs.checkpoint import CheckpointError
from harness.logs.source import FileSource
from harness.model import EXIT_CODES
from targets.kafka_family.logs import checkpoint
from targets.kafka_family.logs.checkpoint import read_epochs, read_offsets, read_topic_id
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.build import batch, partition
from tests.targets.kafka_family.logs.scans import scan_partition

T = TypeVar("T")


def read(reader: Callable[..., T], directory: Path, *arguments: str) -> T:
    with Folder.at(directory) as folder:
        return reader(folder, *arguments)


def test_read_epochs_gives_the_entries_in_file_order(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n2\n0 0\n3 17\n")
    assert ((0, 0), (3, 17)) == read(read_epochs, tmp_path)


def test_read_epochs_gives_none_without_a_file_and_nothing_from_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    assert read(read_epochs, tmp_path) is None
    for text in ("", "0\n", "0\n0\n"):
        path.write_text(text)
        assert () == read(read_epochs, tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"1\n0\n", "version is '1'; expected '0'"),
        (b"0\n2\n0 0\n", "1 entries; its line 2 says 2"),
        (b"0\n1\n0 0\n1 5\n", "2 entries; its line 2 says 1"),
        (b"0\n1\n0 0 0\n", "entry 0: '0 0 0'; expected 2 fields"),
        (b"0\n1\n0 x\n", "'x'; expected a whole number"),
        (b"0\nmany\n0 0\n", "'many'; expected a whole number"),
        (
            b"0\n1\n0 9223372036854775808\n",
            "'9223372036854775808'; expected a number from 0 to 9223372036854775807",
        ),
        (b"0\n1\n2147483648 0\n", "'2147483648'; expected a number from 0 to 2147483647"),
        (b"0\n1\n0 " + b"9" * 100_000 + b"\n", "'9{300}…'; expected a whole number"),
        (b"0\n1\n0 -4\n", "'-4'; expected a number from 0 to"),
        (b"0\n1\n-1 0\n", "'-1'; expected a number from 0 to"),
        (b"0\n-1\n", "'-1'; expected a number from 0 to"),
        (b"0\n1\n0 +4\n", r"'\+4'; expected a whole number"),
        (b"0\n1\n0 1_0\n", "'1_0'; expected a whole number"),
        ("0\n1\n0 ٣\n".encode(), "'٣'; expected a whole number"),
        (bytes(64), "line 1: version is '.*'; expected '0'"),
        (bytes(64) + b"\n0\n", "line 1: version is '.*'; expected '0'"),
        (b"0\n" + bytes(62), "at its end; expected an end of the line"),
        (b"0\n0\n" + bytes(60), "at its end; expected an end of the line"),
        (b"0\n0\n" + bytes(59) + b"\n", "entry 0: .* expected 2 fields"),
        (b"0\n1\n" + bytes(64) + b"\n", "entry 0: .* expected 2 fields"),
        (b"0\n1\n0 0\nx\n", "entry 1: 'x'; expected 2 fields"),
        (b"0\n1\n0 0\n\n", "entry 1: ''; expected 2 fields"),
        (b"0\n1\n0 1", "'0 1' at its end; expected an end of the line"),
        (b"0\n1", "'1' at its end; expected an end of the line"),
        (b"\n", "version is ''; expected '0'"),
        (b"00\n0\n", "version is '00'; expected '0'"),
        (b"0\n\xff\n", "expected a checkpoint's text"),
    ],
)
def test_read_epochs_refuses_the_file_when_kafka_would(tmp_path: Path, text: bytes, says: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(text)
    with pytest.raises(CheckpointError, match=says):
        read(read_epochs, tmp_path)


# With a topic where the other file has none; each is a partition's own line, or a stranger's.
OFFSETS = (
    (bytes(64), "version is '.*'; expected '0'"),
    (b"1\n1\nt 0 1\n", "version is '1'; expected '0'"),
    (b"0\n2\nt 0 1\n", "1 entries; its line 2 says 2"),
    (b"0\n1\nt 0 -1\n", "'-1'; expected a number from 0 to"),
    (b"0\n1\nt -1 0\n", "'-1'; expected a number from 0 to 2147483647"),
    (b"0\n1\nt 0 9223372036854775808\n", "expected a number from 0 to"),
    (b"0\n1\nt 9223372036854775808 0\n", "expected a number from 0 to"),
    (b"0\n1\nt 0 " + b"9" * 100_000 + b"\n", "expected a whole number"),
    (b"0\n1\nt 0 1\n" + bytes(9), "at its end; expected an end of the line"),
    (b"0\n1\nt 0 1\njunk\n", "entry 1: 'junk'; expected 3 fields"),
)


@pytest.mark.parametrize("name", [checkpoint.HIGH_WATERMARKS, checkpoint.LOG_STARTS, checkpoint.CLEANED])
@pytest.mark.parametrize(("text", "says"), OFFSETS)
def test_checkpoint_of_offsets_that_kafka_would_not_write_makes_its_replica_unreadable(
    tmp_path: Path, name: str, text: bytes, says: str
) -> None:
    directory = partition(tmp_path, batch(0, "a"), epochs=[(0, 0)])
    (tmp_path / name).write_bytes(text)
    with pytest.raises(CheckpointError, match=f"{name}.*{says}"):
        read(read_offsets, tmp_path, name)
    (problem,) = scan_partition(directory).problems
    assert problem.startswith(name)


@pytest.mark.parametrize(("text", "code"), [(bytes(64), "unknown"), (b"0\n1\n0 -4\n", "unknown")])
def test_epoch_checkpoint_that_cannot_be_read_is_no_contradiction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes, code: str
) -> None:
    directory = partition(tmp_path, batch(0, "a", epoch=1))
    (directory / checkpoint.LEADER_EPOCHS).write_bytes(text)
    assert EXIT_CODES[code] == main(["lineage", str(directory)])
    assert "not read: leader-epoch-checkpoint" in capsys.readouterr().out


def test_checkpoint_of_a_million_entries_is_refused_unread(tmp_path: Path) -> None:
    lines = "".join(f"{epoch} {epoch}\n" for epoch in range(1_000_000))
    (tmp_path / "leader-epoch-checkpoint").write_text(f"0\n1000000\n{lines}")
    with pytest.raises(CheckpointError, match=r"more than 100002 lines, the limit of this reader"):
        read(read_epochs, tmp_path)
    with (tmp_path / "leader-epoch-checkpoint").open("r+b") as file:
        file.truncate(100 * 10**9)
    with pytest.raises(CheckpointError, match=r"more than 33554432 bytes, the limit of this reader"):
        read(read_epochs, tmp_path)


def test_read_error_of_a_checkpoint_is_a_problem_of_its_replica_and_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = partition(tmp_path, batch(0, "a"), epochs=[(0, 0)])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    asked: list[int] = []

    class Broken(FileSource):
        def __init__(self, handle: int) -> None:
            super().__init__(handle)
            self.broken = "checkpoint" in os.path.basename(_path_of(handle))
            asked.append(handle)

        def at(self, position: int, count: int) -> bytes:
            if self.broken:
                raise OSError(errno.EIO, "Input/output error")
            return super().at(position, count)

    monkeypatch.setattr(source, "FileSource", Broken)
    log = scan_partition(directory)
    names = ("replication-offset-checkpoint", "leader-epoch-checkpoint")
    assert tuple(f"{name}: Input/output error" for name in names) == log.problems
    assert (1, None, None) == (log.log_end_offset, log.epochs, log.high_watermark)
    assert not [handle for handle in asked if "checkpoint" in os.path.basename(_path_of(handle))]


def _path_of(handle: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except FileNotFoundError:
        return ""


def test_read_offset_gives_the_partition_s_own_and_none_when_it_has_none(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    path.write_text("0\n3\nt 0 5\nt 1 6\nu 0 7\n")
    assert [5, 6, 7, None] == [
        read(read_offsets, tmp_path, path.name).get(p) for p in (("t", 0), ("t", 1), ("u", 0), ("u", 1))
    ]
    assert {} == read(read_offsets, tmp_path, "none")


def test_read_topic_id_gives_what_apache_kafka_wrote_and_none_without_a_file(tmp_path: Path) -> None:
    found = [read(read_topic_id, DATA / "kafka-3.9.1" / broker / "plain-0") for broker in ("b1", "b2")]
    assert found[0] == found[1]
    assert 22 == len(found[0] or "")
    assert read(read_topic_id, tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"version: 0\ntopic_id: \n",
        b"\xff\xfe",
        b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n",
        b"topic_id: AAAAAAAAAAAAAAAAAAAAAQ\n",
        bytes(64),
    ],
)
def test_read_topic_id_refuses_a_file_without_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "partition.metadata"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="partition"):
        read(read_topic_id, tmp_path)
