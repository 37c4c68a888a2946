"""The calls of the failing filesystem, without a mount: each reaches the folder, or is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.hosts.faultfs import CONTROL, MEND, SYNCED, FaultFs


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[FaultFs]:
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield FaultFs(folder)
    os.close(folder)


def opened(fs: FaultFs, path: str, flags: int = os.O_RDWR | os.O_CREAT) -> SimpleNamespace:
    """Create a file, or open it without O_CREAT; return its handle's fields."""
    fi = SimpleNamespace(flags=flags, fh=0, direct_io=0)
    if flags & os.O_CREAT:
        fs.create(path, 0o644, fi)
    else:
        fs.open(path, fi)
    return fi


def tell(fs: FaultFs, word: str) -> None:
    fs.setxattr("/", CONTROL, word.encode(), 0)


def met(fs: FaultFs) -> list[str]:
    found: list[str] = json.loads(fs.getxattr("/", CONTROL))["met"]
    return found


def test_bytes_go_to_the_folder_below_and_come_from_it(fs: FaultFs, tmp_path: Path) -> None:
    fs.mkdir("/t-0", 0o755)
    fi = opened(fs, "/t-0/0.log")
    assert 4 == fs.write("/t-0/0.log", b"abcd", 0, fi)
    assert (b"bc", 0) == (fs.read("/t-0/0.log", 2, 1, fi), fs.fsync("/t-0/0.log", 0, fi))
    assert b"abcd" == (tmp_path / "t-0" / "0.log").read_bytes()
    fs.truncate("/t-0/0.log", 2)
    fs.rename("/t-0/0.log", "/t-0/1.log")
    assert 2 == fs.getattr("/t-0/1.log")["st_size"]
    assert [".", "..", "1.log"] == fs.readdir("/t-0", 0)
    fs.release("/t-0/1.log", fi)
    fs.unlink("/t-0/1.log")
    fs.rmdir("/t-0")
    assert [] == list(tmp_path.iterdir())


def test_index_files_may_be_mapped_and_all_others_are_read_directly(fs: FaultFs) -> None:
    names = ("/0.log", "/0.index", "/0.timeindex", "/leader-epoch-checkpoint")
    files = {name: opened(fs, name) for name in names}
    assert [1, 0, 0, 1] == [fi.direct_io for fi in files.values()]
    for name, fi in files.items():
        fs.release(name, fi)


def test_call_that_is_refused_changes_nothing_and_is_noted_under_the_file_s_name_of_now(
    fs: FaultFs, tmp_path: Path
) -> None:
    fi = opened(fs, "/cp.tmp")
    fs.write("/cp.tmp", b"1", 0, fi)
    fs.rename("/cp.tmp", "/cp")
    tell(fs, "read-only")
    for call in (
        lambda: fs.write("/cp", b"22", 0, fi),
        lambda: fs.truncate("/cp", 0),
        lambda: fs.unlink("/cp"),
        lambda: fs.rename("/cp", "/other"),
        lambda: fs.mkdir("/t-1", 0o755),
        lambda: opened(fs, "/new"),
        lambda: opened(fs, "/cp", os.O_WRONLY),
    ):
        with pytest.raises(OSError, match="Read-only file system"):
            call()
    assert [("cp", b"1")] == [(path.name, path.read_bytes()) for path in tmp_path.iterdir()]
    assert "EROFS at cp, write of 2 bytes" == met(fs)[0]
    fs.release("/cp", opened(fs, "/cp", os.O_RDONLY))
    fs.release("/cp", fi)


def test_full_disk_has_a_half_of_the_first_write(fs: FaultFs, tmp_path: Path) -> None:
    fi = opened(fs, "/log")
    tell(fs, "full")
    assert 2 == fs.write("/log", b"abcd", 0, fi)
    with pytest.raises(OSError, match="No space left"):
        fs.write("/log", b"cd", 2, fi)
    assert (b"ab", ["ENOSPC at log, write of 2 bytes"]) == ((tmp_path / "log").read_bytes(), met(fs))
    fs.release("/log", fi)


def test_mended_disk_has_lost_what_its_fsync_was_to_write(fs: FaultFs, tmp_path: Path) -> None:
    fi = opened(fs, "/log")
    fs.write("/log", b"durable", 0, fi)
    tell(fs, SYNCED)
    fs.write("/log", b" and not", 7, fi)
    tell(fs, "flush")
    with pytest.raises(OSError, match="Input/output error"):
        fs.fsync("/log", 0, fi)
    tell(fs, MEND)
    assert b"durable" == (tmp_path / "log").read_bytes()
    assert ["EIO at log, fsync", "8 bytes in 1 files are gone with it"] == met(fs)
    fs.release("/log", fi)


def test_node_cannot_be_led_out_of_the_folder(fs: FaultFs, tmp_path: Path) -> None:
    secret = tmp_path.with_name("secret")
    secret.write_bytes(b"s")
    (tmp_path / "link").symlink_to(secret)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        opened(fs, "/link", os.O_RDONLY)
    assert not hasattr(fs, "symlink")
    assert not hasattr(fs, "link")


@pytest.mark.parametrize(("path", "name"), [("/log", CONTROL), ("/", "user.other")])
def test_only_the_root_takes_words_and_only_under_their_name(fs: FaultFs, path: str, name: str) -> None:
    with pytest.raises(OSError, match="Operation not supported"):
        fs.setxattr(path, name, b"full", 0)
    with pytest.raises(OSError, match="No data available"):
        fs.getxattr(path, name)
