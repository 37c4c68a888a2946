"""
A start on a hostile data directory opens no link, FIFO or folder in a file's place, and touches nothing.

Length:  one table, file by what has its place, at a start and later, with the directory that both spoil.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.messages import TopicPartition
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import checkpoint, open_data_dir
from targets.broker.log.beneath import NAMES_MAX, RefusedError, require_directory, require_file
from targets.broker.log.data_dir import DataDir
from targets.broker.log.lock import held
from tests.broker.log.batches import TP, singles
from tests.broker.log.hostile import NO_FILE, NO_FOLDER, OUTSIDE, Place, tree, watched
from tests.broker.log.keyed import append

CHECKPOINTS = (
    checkpoint.RECOVERY_POINTS_FILE,
    checkpoint.HIGH_WATERMARKS_FILE,
    checkpoint.LOG_STARTS_FILE,
    checkpoint.CLEANED_FILE,
)
SIDE_FILES = (checkpoint.EPOCHS_FILE, checkpoint.TOPIC_ID_FILE)
SEGMENT, NEXT = f"{TP}/{0:020d}.log", f"{TP}/{2:020d}.log"
DELETED = f"gone-3.{'0' * 32}-delete"
FILES = (
    ".lock",
    checkpoint.CLEAN_MARKER,
    *CHECKPOINTS,
    *(f"{name}.tmp" for name in CHECKPOINTS),
    *(f"{TP}/{name}" for name in SIDE_FILES),
    *(f"{TP}/{name}.tmp" for name in SIDE_FILES),
    *(SEGMENT, NEXT, f"{SEGMENT}.cleaned", f"{SEGMENT}.swap", f"{SEGMENT}.deleted"),
)
FOLDERS = (str(TP), "other-1", DELETED)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_bytes(OUTSIDE)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the data directory of a broker that was shut down cleanly, with all that one may have."""
    path = tmp_path / "data"
    made = open_data_dir(path, segment_bytes=160).data
    log = made.create_log(TP, 5)
    append(log, *([("k", str(number))] for number in range(4)))
    made._keep_clean(TP, 0)
    made._keep_clean(TP, 1)
    log.write_epochs([(0, 0)], flush=True)
    made.close_cleanly({TP: 4})
    return path


def start(path: Path) -> DataDir:
    """Do what a broker's start does with its disk."""
    with held(path):
        return open_data_dir(path, segment_bytes=160).data


def put(path: Path, place: Place, outside: Path) -> None:
    """Put something in the place of a file or folder."""
    if path.is_dir():
        path.rename(outside / "moved")
    path.unlink(missing_ok=True)
    place(path, outside)


@pytest.mark.parametrize(
    ("name", "how"),
    [*itertools.product(FILES, NO_FILE), *itertools.product(FOLDERS, NO_FOLDER)],
)
def test_start_refuses_what_is_not_what_it_expects_and_touches_nothing(
    data: Path, outside: Path, name: str, how: str
) -> None:
    put(data / name, (NO_FOLDER if name in FOLDERS else NO_FILE)[how], outside)
    before = tree(data), tree(outside)
    with watched(data) as careless, pytest.raises(RefusedError) as refused:
        start(data)
    assert [] == careless
    text = str(refused.value)
    assert (1, True) == (len(text.splitlines()), repr(str(data / name)) in text)
    wanted = "directory" if name in FOLDERS else "regular file"
    assert f"expected a {wanted}" in text
    lock = {".lock"} - {name}
    after = {path: found for path, found in tree(data).items() if path not in lock}
    assert before == (after | {path: found for path, found in before[0].items() if path in lock}, tree(outside))


@pytest.mark.parametrize(
    ("kind", "words"),
    [(stat.S_IFCHR, "a character device"), (stat.S_IFBLK, "a block device"), (0, "unknown kind")],
)
def test_device_is_refused_by_its_kind_before_it_is_opened(kind: int, words: str) -> None:
    """Only root can make one."""
    for require in (require_file, require_directory):
        with pytest.raises(RefusedError, match=words):
            require(Path("x"), kind | 0o666)


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith((".lock", ".swap"))])
def test_hard_link_is_a_file_like_any_other(data: Path, outside: Path, name: str) -> None:
    path = data / name
    if path.exists():
        os.link(path, outside / "backup")
    else:
        os.link(outside / "kept", path)
    start(data).close()
    assert OUTSIDE == (outside / "kept").read_bytes()


@pytest.mark.parametrize("name", [*CHECKPOINTS, *(f"{TP}/{name}" for name in SIDE_FILES)])
def test_temporary_file_that_is_a_hard_link_is_not_written_through(data: Path, outside: Path, name: str) -> None:
    opened = start(data)
    os.link(outside / "kept", data / f"{name}.tmp")
    log = opened.logs[TP]
    log.write_epochs([(1, 4)], flush=True)
    log.adopt(6)
    opened.close_cleanly({TP: 4})
    opened.create_log(TopicPartition("x", 0)).advance_start(0)
    opened._keep_clean(TP, 2)
    assert OUTSIDE == (outside / "kept").read_bytes()


def test_every_opening_of_a_whole_life_follows_no_link_and_waits_for_no_fifo(data: Path) -> None:
    """What is watched here is what the table above relies on."""
    with watched(data) as careless:
        opened = start(data)
        log = opened.logs[TP]
        singles(log, 9)
        log.flush()
        log.truncate_to(11, LeoAfterCut.TARGET)
        log.roll()
        log.clean(8, TombstoneDelay(0), 2**20)
        log.advance_start(9)
        log.write_epochs([(2, 9)], flush=False)
        log.flush()
        opened.create_log(TopicPartition("x", 0), 3).delete()
        opened.close_cleanly({TP: 9})
        start(data).close()
    assert [] == careless


# --- sizes, numbers, names -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*CHECKPOINTS, *(f"{TP}/{name}" for name in SIDE_FILES)])
def test_giant_is_refused_before_it_is_read(data: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    os.truncate(data / name, 20 * 2**30)
    before = {path: (data / path).stat().st_size for path in tree(data.parent / "outside") or ()}
    read: list[int] = []
    real = os.read

    def counted(fd: int, size: int) -> bytes:
        read.append(size)
        return real(fd, size)

    monkeypatch.setattr(os, "read", counted)
    with pytest.raises(RefusedError, match="bytes; expected at most") as refused:
        start(data)
    assert sum(read) <= 2 * checkpoint.BYTES_MAX
    assert repr(str(data / name)) in str(refused.value)
    assert {} == before
    assert (data / checkpoint.CLEAN_MARKER).exists()


@pytest.mark.parametrize(
    ("name", "line"), [(checkpoint.HIGH_WATERMARKS_FILE, "t 0 1\n"), (f"{TP}/{checkpoint.EPOCHS_FILE}", "0 0\n")]
)
def test_lines_are_counted_before_they_are_taken_apart(
    data: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str
) -> None:
    for limit in ("ENTRIES_MAX", "EPOCHS_MAX"):
        monkeypatch.setattr(checkpoint, limit, 1_000)
    (data / name).write_text(f"0\n1001\n{line * 1_001}")
    with pytest.raises(RefusedError, match="lines; expected at most 1002") as refused:
        start(data)
    assert repr(str(data / name)) in str(refused.value)


NUMBERS = (str(2**63), str(-(2**63) - 1), "9" * 5_000, "-" + "9" * 5_000, "9" * 100_000)


@pytest.mark.parametrize("number", NUMBERS, ids=len)
@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("line", ["0\n1\ntopic 0 {}\n", "0\n1\ntopic {} 0\n", "0\n{}\ntopic 0 4\n"])
def test_number_beyond_64_bits_makes_a_checkpoint_unreadable(
    data: Path, name: str, number: str, line: str
) -> None:
    (data / name).write_text(line.format(number))
    opened = open_data_dir(data)
    assert [f"{name}-unreadable"] == [note.partition(":")[0] for note in opened.notes]
    assert 4 == opened.data.logs[TP].end_offset
    opened.data.close_cleanly({TP: 4})
    again = open_data_dir(data).notes
    assert ([name] if name == checkpoint.CLEANED_FILE else []) == [note.split("-unreadable")[0] for note in again]


@pytest.mark.parametrize("line", ["{} 0\n", "0 {}\n", "0 0\n{} 4\n"])
@pytest.mark.parametrize("number", [*NUMBERS, "-1", "-4"], ids=len)
def test_number_of_no_epoch_makes_an_epoch_checkpoint_unreadable(data: Path, number: str, line: str) -> None:
    entries = line.format(number)
    (data / str(TP) / checkpoint.EPOCHS_FILE).write_text(f"0\n{entries.count(chr(10))}\n{entries}")
    log, found = open_data_dir(data).logs[TP]
    assert ((), "clean+epoch-checkpoint-unreadable") == (found.file_epochs, found.reason)
    assert 4 == log.end_offset


@pytest.mark.parametrize("suffix", [".log", ".log.swap", ".log.cleaned"])
def test_segment_whose_offset_has_more_than_64_bits_is_refused(data: Path, suffix: str) -> None:
    (data / str(TP) / f"{'9' * 20}{suffix}").write_bytes(b"")
    before = tree(data)
    with pytest.raises(RefusedError, match=f"{'9' * 20}{suffix}.*expected an offset of at most"):
        start(data)
    assert before == {path: found for path, found in tree(data).items() if path != ".lock"}


STRANGE = (
    b"topic\xff-0",
    "tópic-0".encode(),
    b"lost+found-0",
    b"topic-99999999999999999999",
    b"topic-" + b"9" * 200,
    "topic-٣".encode(),
    b"a" * 250 + b"-0",
    b"topic\n-0",
    b"..-0",
    b"keep-delete",
    b"mine.tmp",
)


@pytest.mark.parametrize("name", STRANGE, ids=repr)
def test_name_that_is_no_partition_of_kafka_s_is_left_alone(data: Path, name: bytes) -> None:
    folder = os.fsencode(data) + b"/" + name
    os.mkdir(folder)
    os.mkfifo(folder + b"/" + b"0" * 20 + b".log")
    opened = start(data)
    assert [TP] == [*opened.logs]
    opened.close_cleanly({TP: 4})
    assert [b"0" * 20 + b".log"] == os.listdir(folder)


@pytest.mark.parametrize(
    "name",
    ["0.log", "-0000000000000000001.log", "٣" * 20 + ".log", f"{0:021d}.log", "x.log.swap", "0x.log.cleaned"],
)
def test_name_that_is_no_segment_is_left_alone(data: Path, name: str) -> None:
    path = data / str(TP) / name
    os.mkfifo(path)
    start(data).close()
    assert path.is_fifo()


@pytest.mark.parametrize("folder", [".", str(TP)])
def test_folder_with_more_names_than_are_read_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    assert NAMES_MAX >= 1_000_000
    monkeypatch.setattr("targets.broker.log.beneath.NAMES_MAX", 40)
    for number in range(41):
        (data / folder / f"x{number}").touch()
    with pytest.raises(RefusedError, match="more than 40 names"):
        start(data)


def test_checksum_of_a_batch_of_any_length_is_computed_piece_by_piece(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse segment may begin with the header of a batch of 2 GB."""
    path = data / SEGMENT
    with path.open("r+b") as file:
        head = bytearray(file.read(61))
        head[8:12] = (2**31 - 1 - 12).to_bytes(4, "big")
        file.seek(0)
        file.write(head)
        file.truncate(300 * 2**20)
        head[8:12] = (200 * 2**20).to_bytes(4, "big")
        file.seek(0)
        file.write(head)
    (data / checkpoint.CLEAN_MARKER).unlink()
    (data / checkpoint.RECOVERY_POINTS_FILE).unlink()
    read: list[int] = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read.append(size) or real(fd, size, at))
    opened = start(data)
    assert 0 == opened.logs[TP].end_offset
    assert 200 * 2**20 < sum(read)
    assert max(read) <= 2**20


# --- while the broker runs --------------------------------------------------------------------------------
def _read(opened: DataDir) -> None:
    opened.logs[TP].read(0, 1, 1)  # so that the newest file is not the one that is open
    opened.logs[TP].read(2, 4, 1)


def _append(opened: DataDir) -> None:
    singles(opened.logs[TP], 4)


def _epochs(opened: DataDir) -> None:
    opened.logs[TP].write_epochs([(3, 4)], flush=True)


def _topic_id(opened: DataDir) -> None:
    opened.logs[TP].adopt(9)


def _no_topic_id(opened: DataDir) -> None:
    opened.logs[TP].adopt(0)


def _watermarks(opened: DataDir) -> None:
    opened.write_high_watermarks({TP: 4})


def _points(opened: DataDir) -> None:
    opened.write_recovery_points()


def _end(opened: DataDir) -> None:
    opened.close_cleanly({TP: 4})


def _start_moves(opened: DataDir) -> None:
    opened.logs[TP].advance_start(3)


def _truncate(opened: DataDir) -> None:
    opened.logs[TP].truncate_to(1, LeoAfterCut.TARGET)


def _clean(opened: DataDir) -> None:
    log = opened.logs[TP]
    log.roll()
    while log.clean(4, TombstoneDelay(0), 2**20).more:
        pass


def _create(opened: DataDir) -> None:
    opened.create_log(TopicPartition("other", 1), 7)


LATER: tuple[tuple[str, Callable[[DataDir], Any]], ...] = (
    (f"{TP}/{4:020d}.log", _append),
    (NEXT, _read),
    (f"{TP}/{checkpoint.EPOCHS_FILE}", _epochs),
    (f"{TP}/{checkpoint.EPOCHS_FILE}.tmp", _epochs),
    (f"{TP}/{checkpoint.TOPIC_ID_FILE}", _topic_id),
    (f"{TP}/{checkpoint.TOPIC_ID_FILE}", _no_topic_id),
    (f"{TP}/{checkpoint.TOPIC_ID_FILE}.tmp", _topic_id),
    (checkpoint.HIGH_WATERMARKS_FILE, _watermarks),
    (f"{checkpoint.HIGH_WATERMARKS_FILE}.tmp", _watermarks),
    (checkpoint.RECOVERY_POINTS_FILE, _points),
    (checkpoint.CLEAN_MARKER, _end),
    (SEGMENT, _start_moves),
    (NEXT, _truncate),
    (f"{SEGMENT}.cleaned", _clean),
    (f"{SEGMENT}.swap", _clean),
    ("other-1", _create),
)


@pytest.mark.parametrize("how", ["link to a file", "dangling link", "link to a folder", "FIFO"])
@pytest.mark.parametrize(("name", "do"), LATER, ids=lambda value: getattr(value, "__name__", value))
def test_what_takes_a_file_s_place_later_is_refused_too(
    data: Path, outside: Path, name: str, do: Callable[[DataDir], Any], how: str
) -> None:
    with held(data):
        opened = open_data_dir(data, segment_bytes=160, files_open_max=1).data
    put(data / name, NO_FILE[how], outside)
    kept = tree(data)[name], tree(outside)
    with watched(data) as careless, pytest.raises(OSError, match=r"expected|exists") as refused:
        do(opened)
    assert [] == careless
    assert name.rpartition("/")[2] in str(refused.value)
    assert kept == (tree(data)[name], tree(outside))


@pytest.mark.parametrize("do", [_append, _read, _epochs, _topic_id, _truncate, _start_moves, _clean])
def test_partition_that_becomes_a_link_while_the_broker_runs_is_refused(
    data: Path, outside: Path, do: Callable[[DataDir], Any]
) -> None:
    with held(data):
        opened = open_data_dir(data, segment_bytes=160, files_open_max=1).data
    (data / str(TP)).rename(outside / "moved")
    (data / str(TP)).symlink_to(outside / "moved")
    before = tree(outside)
    with watched(data) as careless, pytest.raises(RefusedError, match="a link; expected a directory"):
        do(opened)
    assert ([], before) == (careless, tree(outside))
