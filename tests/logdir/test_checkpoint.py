"""Checkpoint files are read as Kafka reads them, and refused where Kafka refuses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from harness.beneath import Folder
from harness.logdir.checkpoint import CheckpointError, read_epochs, read_offsets, read_topic_id
from tests.kafka_release import DATA

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
    # The zeros are a file whose length survived a power loss and whose bytes did not: one line, so no entries.
    for text in ("", "0\n", "\0" * 9):
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
        (b"0\n\xff\n", "expected a checkpoint's text"),
    ],
)
def test_read_epochs_refuses_the_file_when_kafka_would(tmp_path: Path, text: bytes, says: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(text)
    with pytest.raises(CheckpointError, match=says):
        read(read_epochs, tmp_path)


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


@pytest.mark.parametrize("content", [b"", b"version: 0\n", b"version: 0\ntopic_id: \n", b"\xff\xfe"])
def test_read_topic_id_refuses_a_file_without_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "partition.metadata"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="partition"):
        read(read_topic_id, tmp_path)
