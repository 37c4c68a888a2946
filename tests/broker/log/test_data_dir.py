from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.log import checkpoint, open_data_dir
from tests.broker.log.batches import TP, singles

OTHER = TopicPartition("other.topic-1", 12)


def test_new_data_dir_is_made_empty_and_unclean(tmp_path: Path) -> None:
    opened = open_data_dir(tmp_path / "a" / "b")
    assert ({}, {}, False, ()) == (opened.logs, opened.high_watermarks, opened.clean, opened.notes)


def test_clean_shutdown_is_believed_once(tmp_path: Path) -> None:
    """Source: KAFKA-10471: the marker is deleted as soon as it is read."""
    data = open_data_dir(tmp_path).data
    for tp in (TP, OTHER):
        singles(data.create_log(tp), 3)
    data.close_cleanly({TP: 2, OTHER: 3})
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    opened = open_data_dir(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert (True, {TP: 2, OTHER: 3}) == (opened.clean, opened.high_watermarks)
    assert [TP, OTHER] == sorted(opened.logs, reverse=True)
    log, found = opened.logs[OTHER]
    assert (3, True, 3, 3) == (log.end_offset, found.clean, found.high_watermark, log.recovery_point)
    opened.data.close()
    assert not open_data_dir(tmp_path).clean


def test_removal_of_the_marker_is_durable_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a power loss restored the marker, the broker would accept a damaged log without recovery."""
    open_data_dir(tmp_path).data.close_cleanly({})
    seen: list[tuple[str, bool]] = []

    def spy(fd: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        seen.append((path.name, (tmp_path / checkpoint.CLEAN_MARKER).exists()))

    monkeypatch.setattr(os, "fsync", spy)
    open_data_dir(tmp_path)
    assert [(tmp_path.name, False)] == seen


def test_clean_shutdown_makes_everything_durable_before_the_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int]] = []
    data = open_data_dir(tmp_path, on_durable=lambda *seen: told.append(seen)).data
    singles(data.create_log(TP), 1)
    data.logs[TP].write_epochs([(0, 0)], flush=False)
    real = os.fsync
    at_sync: list[bool] = []

    def spy(fd: int) -> None:
        at_sync.append((tmp_path / checkpoint.CLEAN_MARKER).exists())
        real(fd)

    monkeypatch.setattr(os, "fsync", spy)
    returned = data.close_cleanly({TP: 1})
    assert [False] * (len(at_sync) - 1) + [True] == at_sync
    assert [
        f"{TP}/leader-epoch-checkpoint",
        f"{TP}/{0:020d}.log",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        ".kafka_cleanshutdown",
    ] == [path for path, _ in told]
    assert told[2:] == returned
    for path, length in told:
        assert length == (tmp_path / path).stat().st_size


def test_L17_high_watermark_file_holds_what_was_written_last(tmp_path: Path) -> None:
    """Source: Kafka LogRecoveryTest testHWCheckpoint*."""
    data = open_data_dir(tmp_path).data
    data.create_log(TP)
    for high_watermark in (2, 4):
        written = data.write_high_watermarks({TP: high_watermark})
        assert [("replication-offset-checkpoint", len("0\n1\ntopic 0 2\n"))] == written
        data.close()
        opened = open_data_dir(tmp_path)
        data = opened.data
        assert high_watermark == opened.high_watermarks[TP] == opened.logs[TP][1].high_watermark


@pytest.mark.parametrize("content", [bytes(30), b"7\n0\n", b"0\n2\ntopic 0 1\n", b"\xff\xff\n\n"])
def test_corrupt_checkpoints_are_noted_and_do_not_stop_the_broker(tmp_path: Path, content: bytes) -> None:
    """Source: KAFKA-16541."""
    data = open_data_dir(tmp_path).data
    singles(data.create_log(TP), 3)
    data.close()
    names = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
    for name in names:
        (tmp_path / name).write_bytes(content)
    opened = open_data_dir(tmp_path)
    log, found = opened.logs[TP]
    assert (3, 0, 0) == (log.end_offset, found.high_watermark, log.recovery_point)
    assert "+".join(("clean", *(f"{name}-unreadable" for name in names))) == found.reason
    assert list(names) == [note.split(":")[1].split()[0] for note in opened.notes]


def test_truncation_below_the_recovery_point_on_disk_lowers_it_first(tmp_path: Path) -> None:
    """Recovery would not scan records that are later appended below a stale recovery point."""
    data = open_data_dir(tmp_path, segment_bytes=130).data
    log = data.create_log(TP)
    singles(log, 5)
    log.flush()
    data.write_recovery_points()
    log.truncate_to(1, LeoAfterCut.TARGET)
    assert {TP: 1} == checkpoint.read_offsets(tmp_path / checkpoint.RECOVERY_POINTS_FILE)
    singles(log, 4)
    segment = log.directory / f"{1:020d}.log"
    with (segment if segment.exists() else log.directory / f"{0:020d}.log").open("r+b") as file:
        file.seek(62 + 61)
        file.write(b"?")
    data.close()
    assert 1 == open_data_dir(tmp_path).logs[TP][0].end_offset


def test_truncation_above_the_recovery_point_on_disk_writes_nothing(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path).data
    log = data.create_log(TP)
    singles(log, 5)
    log.truncate_to(1, LeoAfterCut.TARGET)
    assert not (tmp_path / checkpoint.RECOVERY_POINTS_FILE).exists()


def test_recovery_that_cuts_below_the_recovery_point_lowers_it_on_disk(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path).data
    log = data.create_log(TP)
    singles(log, 5)
    log.flush()
    data.write_recovery_points()
    data.close()
    os.truncate(log.directory / f"{0:020d}.log", 70)
    assert 1 == open_data_dir(tmp_path).logs[TP][0].end_offset
    assert {TP: 1} == checkpoint.read_offsets(tmp_path / checkpoint.RECOVERY_POINTS_FILE)


def test_deleted_partition_is_forgotten_and_may_come_back(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path).data
    log = data.create_log(TP)
    singles(log, 5)
    log.flush()
    data.write_recovery_points()
    log.delete()
    assert {} == checkpoint.read_offsets(tmp_path / checkpoint.RECOVERY_POINTS_FILE)
    assert 0 == data.create_log(TP).end_offset
    data.close_cleanly({TP: 0})
    assert [TP] == list(open_data_dir(tmp_path).logs)


def test_half_finished_delete_is_finished_at_the_next_start(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path).data
    log = data.create_log(TP)
    data.close()
    log.directory.rename(tmp_path / f"{TP}.{'0' * 32}-delete")
    (tmp_path / "replication-offset-checkpoint.tmp").touch()
    assert {} == open_data_dir(tmp_path).logs
    assert [] == os.listdir(tmp_path)


def test_foreign_names_in_the_data_dir_are_left_alone(tmp_path: Path) -> None:
    for name in ("lost+found", "topic-00", "topic-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "file-x").touch()
    assert {} == open_data_dir(tmp_path).logs
    assert ["file-x", "lost+found", "topic-00", "topic-x"] == sorted(os.listdir(tmp_path))


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../x", "a b", "ä", "x" * 250, "a\n"])
def test_topic_name_that_kafka_does_not_allow_makes_no_directory(tmp_path: Path, topic: str) -> None:
    data = open_data_dir(tmp_path / "data").data
    with pytest.raises(ValueError, match="expected 1 to 249"):
        data.create_log(TopicPartition(topic, 0))
    assert [] == os.listdir(tmp_path / "data")


@pytest.mark.parametrize("opened_between", [False, True], ids=["at once", "after a restart"])
def test_log_that_is_created_again_has_nothing_of_its_predecessor_in_the_checkpoints(
    tmp_path: Path, opened_between: bool
) -> None:
    """
    The offsets of a deleted log do not hold for the next log of its name.

    With the old high watermark a follower keeps what its leader never had; at the old start a shorter log is
    dropped whole.
    """
    data = open_data_dir(tmp_path).data
    for tp in (TP, OTHER):
        singles(data.create_log(tp), 5)
        data.logs[tp].flush()
    data.close_cleanly({TP: 5, OTHER: 4})
    checkpoint.write_offsets(tmp_path / checkpoint.LOG_STARTS_FILE, {TP: 3, OTHER: 1})
    (tmp_path / checkpoint.CLEAN_MARKER).unlink()
    data = open_data_dir(tmp_path).data
    data.logs[TP].delete()
    if opened_between:
        data.close()
        data = open_data_dir(tmp_path).data
    singles(data.create_log(TP), 2)
    data.close()
    opened = open_data_dir(tmp_path)
    log, found = opened.logs[TP]
    assert (0, 2, 0) == (log.start_offset, log.end_offset, found.high_watermark)
    other, found = opened.logs[OTHER]
    assert (1, 5, 4) == (other.start_offset, other.end_offset, found.high_watermark)


# --- the topic's id ----------------------------------------------------------------------------------------------
def test_topic_id_is_written_as_kafka_writes_it_and_durable_before_the_log_is_used(tmp_path: Path) -> None:
    """Source: Kafka, PartitionMetadataFile; KIP-516."""
    told: list[str] = []
    data = open_data_dir(tmp_path, on_durable=lambda path, _length: told.append(path)).data
    log = data.create_log(TP, 2**40 + 7)
    text = (log.directory / "partition.metadata").read_text()
    assert "version: 0\ntopic_id: AAAAAAAAAAAAAAEAAAAABw\n" == text
    assert [f"{TP}/partition.metadata"] == told
    assert 2**40 + 7 == int.from_bytes(base64.urlsafe_b64decode(text.split()[-1] + "=="))
    singles(log, 1)
    data.close()
    assert 2**40 + 7 == open_data_dir(tmp_path).logs[TP][0].topic_id


def test_log_without_a_topic_id_has_no_file_of_it_until_it_is_given_one(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path).data
    log = data.create_log(TP)
    assert (0, False) == (log.topic_id, (log.directory / "partition.metadata").exists())
    log.adopt(9)
    data.close()
    assert 9 == open_data_dir(tmp_path).logs[TP][0].topic_id


@pytest.mark.parametrize("before", [(), (9,)], ids=["at once", "after another change that waits"])
def test_file_of_a_topic_id_goes_durably_once_none_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: tuple[int, ...]
) -> None:
    """Source: Kafka's Log from 2.8 on, under an older inter-broker protocol version."""
    told: list[str] = []
    data = open_data_dir(tmp_path, on_durable=lambda path, _length: told.append(path)).data
    log = data.create_log(TP, 7)
    flushed: list[Path] = []
    monkeypatch.setattr(checkpoint, "sync_directory", flushed.append)
    with data.together():
        for topic_id in (*before, NO_TOPIC_ID):
            log.adopt(topic_id)
    assert (0, False, True) == (
        log.topic_id, (log.directory / "partition.metadata").exists(), log.directory in flushed
    )  # fmt: skip
    assert [f"{TP}/partition.metadata"] == told
    log.adopt(NO_TOPIC_ID)  # nothing is there any more
    data.close()
    opened, found = open_data_dir(tmp_path).logs[TP]
    assert (0, "clean") == (opened.topic_id, found.reason)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 1\ntopic_id: AAAAAAAAAAAAAAEAAAAABw\n",
        b"version: 0\n",
        b"version: 0\ntopic_id: A\n",
        b"\xff",
    ],
)
def test_unreadable_topic_id_is_noted_and_counts_as_none(tmp_path: Path, content: bytes) -> None:
    data = open_data_dir(tmp_path).data
    log = data.create_log(TP, 9)
    singles(log, 2)
    data.close()
    (log.directory / "partition.metadata").write_bytes(content)
    opened, found = open_data_dir(tmp_path).logs[TP]
    assert (0, 2, "clean+partition-metadata-unreadable") == (opened.topic_id, opened.end_offset, found.reason)


def test_id_that_apache_kafka_drew_is_none_of_ours(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path).data
    log = data.create_log(TP, 9)
    data.close()
    (log.directory / "partition.metadata").write_text("version: 0\ntopic_id: 1b2Zs9ZoS2ebFG9VnUkBIw")
    opened, found = open_data_dir(tmp_path).logs[TP]
    assert (0, "clean") == (opened.topic_id, found.reason)
