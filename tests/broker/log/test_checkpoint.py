from __future__ import annotations

import os
from pathlib import Path

import pytest

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.checkpoint import (
    CheckpointError,
    read_epochs,
    read_offsets,
    write_epochs,
    write_offsets,
)


def test_C1_epoch_file_gives_exactly_the_last_write(tmp_path: Path) -> None:
    """
    One file for each log, with (epoch, start offset) pairs.

    Source:  KIP-101, step 2; Kafka LeaderEpochCheckpointFileTest shouldPersistAndOverwriteAndReloadFile.
    """
    path = tmp_path / "leader-epoch-checkpoint"
    length = write_epochs(path, [(0, 1), (1, 2), (2, 3)], flush=True)
    assert b"0\n3\n0 1\n1 2\n2 3\n" == path.read_bytes()
    assert len(path.read_bytes()) == length
    assert ((0, 1), (1, 2), (2, 3)) == read_epochs(path)
    write_epochs(path, [(3, 4), (4, 5)], flush=False)
    assert ((3, 4), (4, 5)) == read_epochs(path)
    assert ["leader-epoch-checkpoint"] == os.listdir(tmp_path)


def test_C2_epoch_file_keeps_its_values_when_opened_again(tmp_path: Path) -> None:
    """Source: Kafka LeaderEpochCheckpointFileTest shouldRetainValuesEvenIfCheckpointIsRecreated."""
    write_epochs(tmp_path / "e", [(0, 1), (1, 2), (2, 3)], flush=True)
    assert ((0, 1), (1, 2), (2, 3)) == read_epochs(Path(str(tmp_path)) / "e")


def test_C3_offset_file_is_empty_when_the_file_is(tmp_path: Path) -> None:
    """Source: Kafka OffsetCheckpointFileTest shouldReturnEmptyMapForEmptyFile."""
    path = tmp_path / "o"
    assert {} == read_offsets(path)
    path.touch()
    assert {} == read_offsets(path)
    write_offsets(path, {})
    assert b"0\n0\n" == path.read_bytes()
    assert {} == read_offsets(path)


def test_C4_file_of_another_version_is_an_error(tmp_path: Path) -> None:
    """Source: Kafka OffsetCheckpointFileTest shouldThrowIfVersionIsNotRecognised."""
    path = tmp_path / "o"
    path.write_text("1\n0\n")
    with pytest.raises(CheckpointError, match=r"o: version '1'; expected '0'"):
        read_offsets(path)


def test_C5_offset_file_tells_partitions_apart_and_does_not_invent_any(tmp_path: Path) -> None:
    """Source: Kafka OffsetCheckpointFileTest, lazy checkpoints."""
    path = tmp_path / "o"
    p0, p1 = TopicPartition("a-b", 0), TopicPartition("a-b", 1)
    write_offsets(path, {p1: 2000, p0: 1000})
    assert b"0\n2\na-b 0 1000\na-b 1 2000\n" == path.read_bytes()
    assert {p0: 1000, p1: 2000} == read_offsets(path)


@pytest.mark.parametrize(
    "content",
    [
        b"0\n2\n0 1\n",
        b"0\n1\n0 1\n1 2\n",
        b"0\n1\n0 1 2\n",
        b"0\n1\n0\n",
        b"0\n1\n0 x\n",
        b"0\nx\n0 1\n",
        b"0\n-1\n",
        b"0\n1\n0 --1\n",
        bytes(40),
        b"0\n1\n\xff\xfe 1\n",
        "0\n1\n0 ١\n".encode(),
    ],
)
def test_damaged_epoch_file_is_a_checkpoint_error_and_nothing_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "e"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="expected"):
        read_epochs(path)


@pytest.mark.parametrize("content", [b"", b"0", b"0\n"])
def test_file_that_ends_before_its_count_is_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "e"
    path.write_bytes(content)
    assert () == read_epochs(path)


def test_flushed_write_syncs_content_before_the_rename_and_the_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: KAFKA-16541."""
    path = tmp_path / "e"
    seen: list[tuple[str, bool]] = []
    real = os.fsync

    def spy(fd: int) -> None:
        seen.append((Path(os.readlink(f"/proc/self/fd/{fd}")).name, path.exists()))
        real(fd)

    monkeypatch.setattr(os, "fsync", spy)
    write_epochs(path, [(0, 0)], flush=True)
    assert [("e.tmp", False), (tmp_path.name, True)] == seen
    write_epochs(path, [(1, 0)], flush=False)
    assert 2 == len(seen)


def test_write_that_fails_half_way_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e"
    write_epochs(path, [(0, 0)], flush=True)

    def no_disk(_fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(checkpoint.os, "fsync", no_disk)
    with pytest.raises(OSError, match="Input/output"):
        write_epochs(path, [(1, 0)], flush=True)
    assert ((0, 0),) == read_epochs(path)
