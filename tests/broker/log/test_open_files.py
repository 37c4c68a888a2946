"""A log may have more segments, and a broker more logs, than files may be open."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.messages import TopicPartition
from targets.broker.log import open_data_dir
from targets.broker.log.open_files import OpenFiles
from tests.broker.log.batches import all_of, batch, new_log, offsets, singles


@dataclass(eq=False)
class Plain:
    """A file."""

    path: Path


def open_below(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            path = Path(os.readlink(link))
        except FileNotFoundError:  # the descriptor by which the directory itself was read
            continue
        if path.is_relative_to(folder):
            found.append(path.name)
    return sorted(found)


@pytest.fixture
def plain(tmp_path: Path) -> list[Plain]:
    return [Plain(tmp_path / name) for name in "abcd"]


class TestOpenFiles:
    def test_least_recently_used_file_is_closed(self, tmp_path: Path, plain: list[Plain]) -> None:
        files = OpenFiles(2)
        a, b, c, _ = plain
        files.create(a)
        files.create(b)
        first = files.descriptor(a)
        files.create(c)
        assert ["a", "c"] == open_below(tmp_path)
        assert first == files.descriptor(a)
        os.write(files.descriptor(b), b"x")
        assert ["a", "b"] == open_below(tmp_path)
        for file in plain:
            files.close(file)
        assert ([], 0) == (open_below(tmp_path), len(files))
        assert b"x" == b.path.read_bytes()

    def test_file_is_created_once(self, plain: list[Plain]) -> None:
        files = OpenFiles(1)
        files.create(plain[0])
        files.create(plain[1])
        with pytest.raises(FileExistsError):
            files.create(plain[0])
        with pytest.raises(FileNotFoundError):
            files.descriptor(plain[2])

    @pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
    def test_files_are_closed_when_the_process_has_no_descriptor_left(
        self, tmp_path: Path, plain: list[Plain], monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        files = OpenFiles(9)
        for file in plain[:3]:
            files.create(file)
        real = os.open

        def scarce(path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if len(files) > 1:
                raise OSError(code, os.strerror(code))
            return real(path, flags, mode, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", scarce)
        files.create(plain[3])
        assert ["c", "d"] == open_below(tmp_path)
        files.close(plain[2])
        files.close(plain[3])

    def test_error_is_not_swallowed_when_nothing_is_left_to_close(
        self, plain: list[Plain], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> int:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(os, "open", broken)
        with pytest.raises(OSError, match="Too many"):
            OpenFiles(9).create(plain[0])


def test_log_of_many_segments_keeps_few_of_them_open(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data", segment_bytes=62, files=OpenFiles(3))
    singles(log, 200)
    assert 200 == len(list(log.directory.glob("*.log")))
    assert 3 == len(open_below(tmp_path))
    assert [(at, at) for at in range(200)] == offsets(all_of(log))
    assert 150 == log.truncate_to(150, LeoAfterCut.TARGET)
    log.append_as_leader([batch(count=2)], 1)
    assert [*((at, at) for at in range(150)), (150, 151)] == offsets(all_of(log))
    assert 3 == len(open_below(tmp_path))
    log.delete()
    assert [] == open_below(tmp_path)
    assert [] == list((tmp_path / "data").iterdir())


def test_flush_reaches_files_that_were_closed_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log(tmp_path / "data", segment_bytes=62, files=OpenFiles(2))
    synced: list[str] = []
    real = os.fsync

    def spy(fd: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
        real(fd)

    monkeypatch.setattr(os, "fsync", spy)
    singles(log, 10)
    log.flush()
    assert [f"{at:020d}.log" for at in range(10)] == sorted(name for name in synced if name.endswith(".log"))
    assert 10 == log.recovery_point
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_many_logs_share_the_files_that_may_be_open(tmp_path: Path, clean: bool) -> None:
    partitions = [TopicPartition("t", number) for number in range(60)]
    data = open_data_dir(tmp_path, files_open_max=5).data
    for tp in partitions:
        singles(data.create_log(tp), 2)
    assert 5 == len(open_below(tmp_path))
    if clean:
        data.close_cleanly({})
    else:
        data.close()
    assert [] == open_below(tmp_path)
    data = open_data_dir(tmp_path, files_open_max=5).data
    assert [2] * 60 == [data.logs[tp].end_offset for tp in partitions]
    assert 5 == len(open_below(tmp_path))
    for tp in partitions:
        singles(data.logs[tp], 1)
        assert [(0, 0), (1, 1), (2, 2)] == offsets(all_of(data.logs[tp]))
    assert 5 == len(open_below(tmp_path))
    data.close()
