"""Kafka's log reader as a part of its targets: which replicas a node has, where they end, and what may rot."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.beneath import Folder
from harness.bit_rot import Where
from harness.logs.stream import read_whole
from harness.target.logs import NodeFiles, QuickEnds, ReplicaFolders, Rots, Segments
from targets.broker_target.target import TARGET as BROKER
from targets.kafka.target import TARGET as KAFKA
from targets.kafka_family.logs import checkpoint
from targets.kafka_family.logs.reader import KafkaLogs
from tests.targets.kafka_family.logs.build import batch, partition

LOGS = KafkaLogs()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with `t-0`, of two records."""
    partition(tmp_path, batch(0, "a", "b"), epochs=[(0, 0)])
    return tmp_path


@pytest.fixture
def node(data: Path) -> Iterator[NodeFiles]:
    with Folder.at(data) as folder:
        yield NodeFiles(folder=folder)


def test_targets_of_kafka_s_family_have_one_reader_with_every_ability() -> None:
    assert BROKER.logs is KAFKA.logs
    for ability in (QuickEnds, ReplicaFolders, Rots, Segments):
        assert isinstance(KAFKA.logs, ability)


def test_replicas_are_those_of_the_folders(data: Path, node: NodeFiles) -> None:
    (data / "t-0-delete").mkdir()
    (data / "u-11").mkdir()
    (data / "u-11" / checkpoint.LEADER_EPOCHS).write_text("0\n0\n")
    assert [("t", 0), ("u", 11)] == list(LOGS.partitions(node))


def test_log_is_read_by_topic_and_partition(node: NodeFiles) -> None:
    log = read_whole(lambda: LOGS.reading(node, "t", 0))
    assert ("t", 0, 2, ()) == (log.topic, log.partition, log.log_end_offset, log.problems)


def test_folder_of_a_replica_is_told_from_that_of_a_node(data: Path, node: NodeFiles) -> None:
    with node.folder.folder("t-0") as folder:
        assert ("t", 0) == LOGS.replica_of(folder)
    assert LOGS.replica_of(node.folder) is None


def test_end_is_that_of_the_newest_segment_or_is_not_known(data: Path, node: NodeFiles) -> None:
    assert (2, None) == (LOGS.end(node, "t", 0), LOGS.end(node, "u", 0))
    (data / "u-0").symlink_to(data / "t-0")
    assert LOGS.end(node, "u", 0) is None


def test_newest_segment_has_its_indexes_and_is_none_behind_a_link(data: Path, node: NodeFiles) -> None:
    for name in (f"{2:020}.log", f"{2:020}.index", f"{2:020}.timeindex"):
        (data / "t-0" / name).touch()
    found = LOGS.newest_segment(node, "t", 0)
    assert [f"t-0/{2:020}.{kind}" for kind in ("index", "log", "timeindex")] == found
    (data / "u-0").symlink_to(data / "t-0")
    assert ([], []) == (LOGS.newest_segment(node, "u", 0), LOGS.newest_segment(node, "v", 0))


def test_checkpoint_of_high_watermarks_rots_where_a_replica_has_no_epochs(data: Path, node: NodeFiles) -> None:
    (data / checkpoint.HIGH_WATERMARKS).write_text("0\n1\nt 0 2\n")
    own = LOGS.to_flip(node, "t", 0, Where.CHECKPOINT)
    (data / "t-0" / checkpoint.LEADER_EPOCHS).unlink()
    shared = LOGS.to_flip(node, "t", 0, Where.CHECKPOINT)
    assert own is not None
    assert shared is not None
    assert (f"t-0/{checkpoint.LEADER_EPOCHS}", checkpoint.HIGH_WATERMARKS) == (own.path, shared.path)
    assert LOGS.to_flip(node, "u", 0, Where.CHECKPOINT) is None


def test_checkpoint_is_read_once_for_all_partitions_while_the_folder_is_used(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / checkpoint.HIGH_WATERMARKS).write_text("0\n1\nt 0 2\n")
    reads: list[str] = []
    read = checkpoint.read_offsets

    def counted(folder: Folder, name: str) -> object:
        reads.append(name)
        return read(folder, name)

    monkeypatch.setattr(checkpoint, "read_offsets", counted)
    logs = KafkaLogs()
    for times in (1, 2):
        with Folder.at(data) as folder:
            files = NodeFiles(folder=folder)
            for number in range(3):
                with closing(logs.reading(files, "t", number)) as reading:
                    assert (2 if number == 0 else None) == reading.log().high_watermark
        del files, folder, reading
        gc.collect()
        assert times == reads.count(checkpoint.HIGH_WATERMARKS)
        assert 0 == len(logs._read)
