"""A change that ends half way puts the log in doubt; what is refused before does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from targets.broker.core.log_port import AppendOrderError, LeoAfterCut
from targets.broker.core.messages import TopicPartition
from targets.broker.log import FileLog, LogInDoubtError, checkpoint, open_data_dir
from targets.broker.log.beneath import Folder
from targets.broker.log.segment import Segment
from tests.broker.log.batches import all_of, batch, new_log, offsets, singles


def broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("a bug")


CHANGES = {
    "append as leader": (Segment, "append", lambda log: singles(log, 1)),
    "append as follower": (Segment, "append", lambda log: log.append_as_follower([batch(base=9)])),
    "new segment": (FileLog, "_add_segment", lambda log: log.append_as_follower([batch(base=2**31)])),
    "truncate": (Segment, "cut_from", lambda log: log.truncate_to(1, LeoAfterCut.TARGET)),
    "truncate fully": (Folder, "rename", lambda log: log.truncate_fully(7)),
    "flush": (Segment, "trust", lambda log: log.flush()),
    "epochs": (checkpoint, "write_epochs", lambda log: log.write_epochs([(0, 0)], flush=True)),
    "delete": (checkpoint, "sync_directory", lambda log: log.delete()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_bug_in_the_middle_of_a_change_puts_the_log_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log = new_log(tmp_path / "data")
    singles(log, 2)
    where, what, act = CHANGES[name]
    monkeypatch.setattr(where, what, broken)
    with pytest.raises(LogInDoubtError, match=r"topic-0: an? .* ended half way: ZeroDivisionError\(.a bug.\)"):
        act(log)


@pytest.mark.parametrize("name", CHANGES)
def test_disk_error_in_the_middle_of_a_change_comes_out_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    log = new_log(tmp_path / "data")
    singles(log, 2)
    where, what, act = CHANGES[name]
    monkeypatch.setattr(where, what, full)
    with pytest.raises(OSError, match="No space left") as caught:
        act(log)
    assert not isinstance(caught.value, LogInDoubtError)


def test_doubt_ends_the_broker_as_a_disk_error_does() -> None:
    assert issubclass(LogInDoubtError, OSError)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda log: log.append_as_follower([batch(base=0)]), AppendOrderError),
        (lambda log: log.append_as_leader([batch()], 2**31), Exception),
        (lambda log: log.append_as_leader([replace(batch(), size=2**40)], 0), Exception),
    ],
    ids=["order", "epoch", "size"],
)
def test_append_that_is_refused_before_a_write_leaves_no_doubt(
    tmp_path: Path, act: Callable[[FileLog], object], error: type[Exception]
) -> None:
    log = new_log(tmp_path / "data")
    singles(log, 2)
    with pytest.raises(error) as caught:
        act(log)
    assert not isinstance(caught.value, OSError)
    singles(log, 1)
    assert [(0, 0), (1, 1), (2, 2)] == offsets(all_of(log))


@pytest.mark.parametrize("tp", [TopicPartition("../../evil", 0), TopicPartition("t" * 249, 10**6)])
def test_name_that_cannot_be_is_refused_before_anything_is_made(tmp_path: Path, tp: TopicPartition) -> None:
    data = open_data_dir(tmp_path / "data").data
    with pytest.raises(ValueError, match="expected"):
        data.create_log(tp)
    assert [] == os.listdir(tmp_path / "data")


def test_log_without_a_descriptor_for_its_file_is_a_disk_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scarce(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    data = open_data_dir(tmp_path / "data").data
    monkeypatch.setattr(os, "open", scarce)
    with pytest.raises(OSError, match="Too many open files"):
        data.create_log(TopicPartition("t", 0))


def test_topic_of_the_longest_name_is_deleted(tmp_path: Path) -> None:
    """Source: Kafka, UnifiedLog.logDeleteDirName."""
    data = open_data_dir(tmp_path / "data").data
    log = data.create_log(TopicPartition("t" * 249, 12345))
    log.delete()
    assert [] == os.listdir(tmp_path / "data")
