"""The copy of a folder is equal to it after each look, whatever was done to it, and only changes are sent."""

from __future__ import annotations

import errno
import os
import random
import shutil
from pathlib import Path

import pytest

from harness import limits
from harness.beneath import Folder
from harness.hosts.remote.changes import Changes
from harness.hosts.remote.mirror import Mirror
from harness.hosts.trees import difference, exchange
from harness.model import PreconditionError

LONG_AGO_NS = 1_000_000_000_000_000_000


class Pair:
    """A node's folder, and the copy of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.data = tmp_path / "data"
        self.data.mkdir()
        self.mirror = Mirror(tmp_path / "copy")
        self.changes = Changes(self.data)

    def look(self) -> int:
        """Bring the copy up to date; return how many bytes of files were sent."""
        sent = 0
        for part, payload in self.changes.parts():
            self.mirror.take(part, payload)
            sent += len(payload)
        with Folder.at(self.data) as ours, Folder.at(self.mirror.folder) as theirs:
            assert (0, 0) == difference(ours, theirs)
        folders = [sorted(p.relative_to(top) for p in top.rglob("*") if p.is_dir()) for top in self.both]
        assert folders[0] == folders[1]
        return sent

    @property
    def both(self) -> tuple[Path, Path]:
        return self.data, self.mirror.folder


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def settle(path: Path) -> None:
    """Let a file's last write be long ago; its last change cannot be set."""
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def test_only_what_was_appended_is_sent(pair: Pair) -> None:
    log = pair.data / "a-0"
    log.mkdir()
    append(log / "0.log", b"a" * 3_000_000)
    (log / "empty").touch()
    assert 3_000_000 == pair.look()
    assert 0 == pair.look()
    append(log / "0.log", b"b" * 10)
    assert 10 == pair.look()


def test_file_that_was_cut_or_written_over_is_sent_again(pair: Pair) -> None:
    log = pair.data / "log"
    append(log, b"a" * 1000)
    pair.look()
    os.truncate(log, 300)
    assert 300 == pair.look()
    os.truncate(log, 100)
    append(log, b"c" * 900)
    assert 1000 == pair.look()
    with log.open("r+b") as file:
        file.seek(5)
        file.write(b"!")
    # Its size is as before, and its times may be: the clock of files stands still for some milliseconds.
    assert 1000 == pair.look()
    os.truncate(log, 0)
    assert 0 == pair.look()


def test_names_that_came_went_or_changed_their_kind_are_followed(pair: Pair) -> None:
    (pair.data / "a" / "b").mkdir(parents=True)
    append(pair.data / "a" / "b" / "x", b"x")
    append(pair.data / "y", b"y")
    pair.look()
    (pair.data / "y").rename(pair.data / "a" / "y2")
    shutil.rmtree(pair.data / "a" / "b")
    append(pair.data / "a" / "b", b"a file now")
    (pair.data / "y").mkdir()
    pair.look()
    shutil.rmtree(pair.data / "a")
    pair.look()
    assert ["y"] == os.listdir(pair.mirror.folder)


def test_file_that_is_unchanged_for_long_is_not_read_again(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    append(pair.data / "log", b"a" * 10)
    settle(pair.data / "log")
    monkeypatch.setattr("harness.hosts.remote.changes.SETTLED_NS", -(10**18))
    pair.look()
    opened: list[str] = []
    real = Folder.open
    monkeypatch.setattr(
        Folder, "open", lambda self, name, *rest: (opened.append(name), real(self, name, *rest))[1]
    )
    assert [] == list(pair.changes.parts())
    assert [] == opened
    pair.changes.doubt()
    assert [] == list(pair.changes.parts())
    assert ["log"] == opened


def test_change_that_size_and_times_do_not_show_is_seen_after_a_power_loss(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(pair.data / "log", b"a" * 10)
    pair.look()
    sent = pair.changes._files["log"]
    (pair.data / "log").write_bytes(b"\0" * 10)
    found = (pair.data / "log").stat()
    sent.marks, sent.settled = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns), True
    assert [] == list(pair.changes.parts())
    pair.changes.doubt()
    assert 10 == pair.look()


def test_byte_that_flips_in_an_old_file_is_seen(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    append(pair.data / "log", b"a" * 1000)
    settle(pair.data / "log")
    monkeypatch.setattr("harness.hosts.remote.changes.SETTLED_NS", -(10**18))
    pair.look()
    assert pair.changes._files["log"].settled is True
    with Folder.at(pair.data) as data:
        assert b"a" == exchange(data, "log", 500, b"a", b"b")
    assert 1000 == pair.look()


def test_file_whose_disk_fails_meanwhile_is_named_and_sent_whole_once_it_can_be_read(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.hosts.remote.changes.PAYLOAD_BYTES_MAX", 10)
    append(pair.data / "log", b"a" * 10)
    pair.look()
    append(pair.data / "log", b"b" * 10)
    with monkeypatch.context() as broken:
        broken.setattr("harness.hosts.remote.changes._common", lambda *_: (0, Unreadable()))
        with pytest.raises(PreconditionError, match=r"Input/output error; expected files that can be read"):
            pair.look()
    os.truncate(pair.data / "log", 0)
    pair.look()
    append(pair.data / "log", b"c" * 15)
    assert 15 == pair.look()


class Unreadable:
    """A digest that fails at the second piece of a file, as its disk would."""

    pieces = 0

    def update(self, _piece: bytes) -> None:
        self.pieces += 1
        if self.pieces == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_link_is_refused_and_what_has_no_bytes_is_left_out(pair: Pair) -> None:
    os.mkfifo(pair.data / "pipe")
    assert [] == list(pair.changes.parts())
    (pair.data / "sub").mkdir()
    (pair.data / "sub" / "secret").symlink_to("/etc/shadow")
    with pytest.raises(PreconditionError, match=r"sub/secret: a link; expected files and folders"):
        list(pair.changes.parts())
    shutil.rmtree(pair.data)
    pair.data.symlink_to("/etc")
    with pytest.raises(PreconditionError, match="a link; expected a folder"):
        list(pair.changes.parts())


def test_folder_that_is_too_large_or_too_deep_for_a_copy_is_refused(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (pair.data / "sparse").open("wb") as file:
        file.truncate(limits.MIRROR_BYTES_MAX + 1)
    with pytest.raises(PreconditionError, match="1 files with 4294967297 bytes; expected at most"):
        list(pair.changes.parts())
    (pair.data / "sparse").unlink()
    (pair.data / "/".join("d" * 40)).mkdir(parents=True)
    with pytest.raises(PreconditionError, match="nested deeper than 32"):
        list(pair.changes.parts())


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b"])
def test_copy_takes_no_path_that_leads_out(tmp_path: Path, path: str) -> None:
    mirror = Mirror(tmp_path / "copy")
    for part in ({"file": path, "at": 0}, {"folder": path}, {"gone": path}):
        with pytest.raises(PreconditionError, match="is no path below a folder"):
            mirror.take(part, b"x")
    assert [tmp_path / "copy"] == list(tmp_path.rglob("*"))


@pytest.mark.parametrize("seed", range(4))
def test_copy_is_equal_after_any_changes(tmp_path: Path, seed: int) -> None:
    pair, rng = Pair(tmp_path), random.Random(seed)
    names = ["a", "b", "c/d", "c/e", "f/g/h"]
    for _ in range(60):
        path = pair.data / rng.choice(names)
        path.parent.mkdir(parents=True, exist_ok=True)
        match rng.randrange(5):
            case 0 if path.exists():
                path.unlink()
            case 1 if path.exists():
                os.truncate(path, rng.randrange(path.stat().st_size + 1))
            case 2:
                fresh = path.with_name(path.name + ".new")
                fresh.write_bytes(rng.randbytes(rng.randrange(50)))
                fresh.rename(path)
            case _:
                append(path, rng.randbytes(rng.randrange(50)))
        if rng.random() < 0.5:
            pair.look()
    pair.look()
