"""Below a folder that others write to, nothing is opened through a link, outside, or that is no regular file."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import beneath
from harness.beneath import Folder, RefusedError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """`data` with the file `t-0/log`; beside it `outside` with the file `secret`."""
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    (tmp_path / "data" / "t-0" / "log").write_bytes(b"inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"outside")
    with Folder.at(tmp_path / "data") as opened:
        yield opened


def content(folder: Folder, relative: str) -> bytes:
    with os.fdopen(folder.open(relative), "rb") as file:
        return file.read()


def test_file_below_the_folder_is_opened(folder: Folder) -> None:
    assert b"inside" == content(folder, "t-0/log")
    with folder.folder("t-0") as below:
        assert (b"inside", ["log"]) == (content(below, "log"), [entry.name for entry in below.entries()])
        assert 6 == below.lstat("log").st_size


def test_first_folder_may_be_a_link_only_for_who_names_it(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("data")
    with Folder.at(tmp_path / "link") as opened:
        assert b"inside" == content(opened, "t-0/log")
    with pytest.raises(RefusedError, match="a link; expected a folder"):
        Folder.no_link(tmp_path / "link")


@pytest.mark.parametrize("target", ["../outside/secret", "t-0/log", "nowhere", "/dev/zero"])
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC])
def test_link_is_refused_wherever_it_leads(folder: Folder, tmp_path: Path, target: str, flags: int) -> None:
    (tmp_path / "data" / "link").symlink_to(target)
    with pytest.raises(RefusedError, match="a link; expected a regular file"):
        folder.open("link", flags)
    assert b"outside" == (tmp_path / "outside" / "secret").read_bytes()
    assert not (tmp_path / "data" / "nowhere").exists()
    folder.unlink("link")
    assert b"outside" == (tmp_path / "outside" / "secret").read_bytes()


def test_link_in_the_middle_of_a_path_is_refused(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "data" / "way").symlink_to("../outside")
    for attempt in (folder.open, folder.lstat, folder.unlink, folder.link, folder.folder, folder.make):
        with pytest.raises(RefusedError, match="a link; expected a folder"):
            attempt("way/secret")
    assert ["secret"] == os.listdir(tmp_path / "outside")


@pytest.mark.parametrize(
    "path", ["../outside/secret", "t-0/../../outside/secret", "/etc/passwd", "", ".", "t-0//log", "a\0b"]
)
def test_path_that_leads_out_or_nowhere_is_refused(folder: Folder, path: str) -> None:
    for attempt in (folder.open, folder.lstat, folder.unlink, folder.folder, folder.make):
        with pytest.raises(RefusedError, match="is no path below a folder"):
            attempt(path)


def test_fifo_and_socket_are_refused_without_waiting(folder: Folder, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "data" / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.open(tmp_path / "data", os.O_RDONLY)
        bound.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        for name, kind in (("fifo", "a FIFO"), ("socket", "a socket"), ("t-0", "a folder")):
            with pytest.raises(RefusedError, match=f"{kind}; expected a regular file"):
                folder.open(name)
    with pytest.raises(RefusedError, match="a FIFO; expected a folder"):
        folder.folder("fifo")


def test_device_is_refused() -> None:
    with Folder.at(Path("/dev")) as devices, pytest.raises(RefusedError, match="a character device; expected"):
        devices.open("zero")


@pytest.mark.parametrize("becomes", ["fifo", "link", "folder"])
def test_file_that_becomes_something_else_after_the_look_is_refused(
    folder: Folder, tmp_path: Path, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look and the opening are two calls; whoever may write there may act in between."""
    look = beneath._require_file
    path = tmp_path / "data" / "t-0" / "log"

    def then_swap(found: os.stat_result, relative: str) -> None:
        look(found, relative)
        if path.is_symlink() or not path.is_file():
            return
        path.unlink()
        if becomes == "fifo":
            os.mkfifo(path)
        elif becomes == "link":
            path.symlink_to("../../outside/secret")
        else:
            path.mkdir()

    monkeypatch.setattr(beneath, "_require_file", then_swap)
    with pytest.raises(RefusedError, match="expected"):
        folder.open("t-0/log")


def test_folder_that_is_swapped_for_a_link_after_the_listing_is_refused(folder: Folder, tmp_path: Path) -> None:
    (name,) = (entry.name for entry in folder.entries())
    (tmp_path / "data" / name).rename(tmp_path / "data" / "old")
    (tmp_path / "data" / name).symlink_to("../outside")
    with pytest.raises(RefusedError, match="a link; expected a folder"):
        folder.folder(name)


def test_open_folder_stays_the_one_that_was_opened_when_its_name_becomes_a_link(
    folder: Folder, tmp_path: Path
) -> None:
    with folder.folder("t-0") as below:
        (tmp_path / "data" / "t-0").rename(tmp_path / "data" / "old")
        (tmp_path / "data" / "t-0").symlink_to("../outside")
        assert b"inside" == content(below, "log")


def test_make_makes_what_is_missing_and_opens_what_is_there(folder: Folder, tmp_path: Path) -> None:
    folder.make("t-0/a/b").close()
    folder.make("t-0/a").close()
    assert (tmp_path / "data" / "t-0" / "a" / "b").is_dir()


def test_nothing_stays_open(folder: Folder) -> None:
    before = os.listdir("/proc/self/fd")
    folder.make("t-0/a").close()
    for path in ("t-0/missing", "missing/log", "../x"):
        with pytest.raises(OSError, match=r"No such file|is no path"):
            folder.open(path)
    assert len(before) == len(os.listdir("/proc/self/fd"))
