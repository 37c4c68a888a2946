"""
What waits together becomes durable before anybody hears of it, and all of it.

Source:  KIP-101, footnote to step 3: "Flushing requires an I/O and could delay the process of becoming leaders."
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.data_dir import DataDir, open_data_dir
from tests.broker.log.batches import singles

IDS = 7


def data_dir(path: Path, durable: list[tuple[str, int]]) -> DataDir:
    path.mkdir(exist_ok=True)
    return DataDir(path, segment_bytes=1_000, on_durable=lambda name, length: durable.append((name, length)))


def tp_of(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def epochs_of(path: Path, number: int) -> tuple[tuple[int, int], ...]:
    return checkpoint.read_epochs(path / f"t-{number}" / checkpoint.EPOCHS_FILE)


def test_files_wait_until_the_end_and_are_reported_in_order(tmp_path: Path) -> None:
    durable: list[tuple[str, int]] = []
    data = data_dir(tmp_path / "d", durable)
    with data.together():
        for number in range(40):
            data.create_log(tp_of(number), IDS).write_epochs([(number, 0)], flush=True)
        assert () == epochs_of(data.path, 0) and not durable
    assert [((number, 0),) for number in range(40)] == [epochs_of(data.path, number) for number in range(40)]
    assert {IDS} == {checkpoint.read_topic_id(data.path / f"t-{n}" / checkpoint.TOPIC_ID_FILE) for n in range(40)}
    names = [f"t-{n}/{name}" for n in range(40) for name in (checkpoint.TOPIC_ID_FILE, checkpoint.EPOCHS_FILE)]
    assert names == [name for name, _ in durable]


def test_each_file_and_its_name_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each directory is flushed after the file was renamed, and the data directory after the log was made."""
    seen: list[str] = []
    lock, fsync = threading.Lock(), os.fsync

    def watched(fd: int) -> None:
        with lock:
            seen.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    data = data_dir(tmp_path / "d", [])
    monkeypatch.setattr(os, "fsync", watched)
    with data.together():
        for number in range(3):
            data.create_log(tp_of(number)).write_epochs([(0, 0)], flush=True)
    for number in range(3):
        directory = str(data.path / f"t-{number}")
        mine = [path for path in seen if path.startswith(directory)]
        assert [f"{directory}/{checkpoint.EPOCHS_FILE}.tmp", directory] == mine
    assert str(data.path) in seen


def test_each_of_several_writes_is_made_and_the_last_stands(tmp_path: Path) -> None:
    durable: list[tuple[str, int]] = []
    data = data_dir(tmp_path / "d", durable)
    with data.together():
        log = data.create_log(tp_of(0))
        log.write_epochs([(0, 0)], flush=True)
        log.write_epochs([(0, 0), (1, 4)], flush=True)
    assert ((0, 0), (1, 4)) == epochs_of(data.path, 0)
    assert [len("0\n1\n0 0\n"), len("0\n2\n0 0\n1 4\n")] == [length for _, length in durable]
    with data.together():
        log.write_epochs([(3, 4)], flush=True)
        log.write_epochs([], flush=False)
    assert () == epochs_of(data.path, 0)


def test_flush_of_a_log_makes_its_epochs_durable_first(tmp_path: Path) -> None:
    durable: list[tuple[str, int]] = []
    data = data_dir(tmp_path / "d", durable)
    with data.together():
        log = data.create_log(tp_of(0))
        log.write_epochs([(0, 0)], flush=True)
        log.flush()
        assert ((0, 0),) == epochs_of(data.path, 0)
    assert [f"t-0/{checkpoint.EPOCHS_FILE}"] == [name for name, _ in durable if "epoch" in name]


def test_log_that_is_deleted_meanwhile_waits_no_more(tmp_path: Path) -> None:
    durable: list[tuple[str, int]] = []
    data = data_dir(tmp_path / "d", durable)
    with data.together():
        kept, gone = data.create_log(tp_of(0)), data.create_log(tp_of(1))
        for log in (kept, gone):
            log.write_epochs([(0, 0)], flush=True)
        gone.delete()
    assert ((0, 0),) == epochs_of(data.path, 0) and not (data.path / "t-1").exists()
    assert not any(name.startswith("t-1") for name, _ in durable)


def test_what_a_step_did_before_it_failed_stands(tmp_path: Path) -> None:
    data = data_dir(tmp_path / "d", [])

    def fails() -> None:
        with data.together():
            data.create_log(tp_of(0)).write_epochs([(5, 0)], flush=True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert ((5, 0),) == epochs_of(data.path, 0)


def test_clean_end_flushes_all_logs_before_its_marker_and_reports_them_on_its_own_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side: of thousands of logs each would otherwise wait for a commit of the filesystem's journal."""
    durable: list[tuple[str, int]] = []
    flushed: set[str] = set()
    by: set[threading.Thread] = set()
    logs, fsync = 20, os.fsync

    def watched(fd: int) -> None:
        fsync(fd)
        flushed.add(os.readlink(f"/proc/self/fd/{fd}"))

    def note(name: str, length: int) -> None:
        by.add(threading.current_thread())
        durable.append((name, length))

    monkeypatch.setattr(os, "fsync", watched)
    (tmp_path / "d").mkdir()
    data = DataDir(tmp_path / "d", segment_bytes=100, on_durable=note)
    for number in range(logs):
        singles(data.create_log(tp_of(number)), 3)
    files = {str(path) for path in data.path.glob("t-*/*.log")}
    assert len(files) > logs, "some logs have several segments"
    data.close_cleanly({})
    assert files <= flushed
    assert {threading.current_thread()} == by
    sizes = {f"{Path(file).parent.name}/{Path(file).name}": Path(file).stat().st_size for file in files}
    assert sizes.items() <= dict(durable).items()
    assert checkpoint.CLEAN_MARKER == durable[-1][0]
    reopened = open_data_dir(data.path).logs
    assert {3} == {log.end_offset for log, _ in reopened.values()} and logs == len(reopened)


@pytest.mark.parametrize("logs", [1, 20])
def test_clean_end_with_a_disk_that_fails_leaves_no_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: int
) -> None:
    data = data_dir(tmp_path / "d", [])
    for number in range(logs):
        singles(data.create_log(tp_of(number)), 1)

    def fails(fd: int) -> None:
        raise OSError(5, os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match=r"t-\d+/0+\.log"):
        data.close_cleanly({})
    assert not (data.path / checkpoint.CLEAN_MARKER).exists()


@pytest.mark.parametrize("logs", [1, 20])
def test_error_of_the_disk_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: int) -> None:
    """Nothing is reported then: the broker ends (Kafka Replication Design V3, discussion 4)."""
    durable: list[tuple[str, int]] = []
    data = data_dir(tmp_path / "d", durable)
    write = checkpoint.write_epochs

    def full(path: Path, entries: object, *, flush: bool) -> int:
        if path.parent.name == f"t-{logs - 1}":
            raise OSError(28, "No space left on device")
        return write(path, [(0, 0)], flush=flush)

    def lead() -> None:
        with data.together():
            for number in range(logs):
                data.create_log(tp_of(number)).write_epochs([(0, 0)], flush=True)

    monkeypatch.setattr(checkpoint, "write_epochs", full)
    with pytest.raises(OSError, match="No space left") as caught:
        lead()
    assert [f"in a write of the epochs of t-{logs - 1}"] == caught.value.__notes__
    assert not durable
