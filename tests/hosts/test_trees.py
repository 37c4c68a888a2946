"""A node's tree is copied and compared as it is, with its links as links and without what has no bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.beneath import Folder, RefusedError
from harness.hosts import trees
from harness.hosts.trees import copy_pass, difference, empty, exchange
from harness.model import PreconditionError


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A tree with a file, a folder, a link and a FIFO; and an empty folder."""
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "t-0").mkdir(parents=True)
    (source / "t-0" / "log").write_bytes(b"x" * 5000)
    (source / "t-0" / "log").chmod(0o600)
    (source / "link").symlink_to("/etc/passwd")
    (source / "folder").symlink_to("/etc")
    os.mkfifo(source / "fifo")
    target.mkdir()
    return source, target


def test_copy_has_links_as_links_and_no_fifo(pair: tuple[Path, Path]) -> None:
    source, target = pair
    with Folder.at(source) as ours, Folder.at(target) as theirs:
        assert (False, 3) == copy_pass(ours, theirs)
        assert (False, 3) == copy_pass(ours, theirs), "a second copy replaces the first"
        assert (0, 0) == difference(ours, theirs)
    assert ["folder", "link", "t-0"] == sorted(os.listdir(target))
    assert ("/etc/passwd", "/etc") == (os.readlink(target / "link"), os.readlink(target / "folder"))
    was, found = (source / "t-0" / "log").stat(), (target / "t-0" / "log").stat()
    assert (was.st_mode, was.st_mtime_ns, was.st_size) == (found.st_mode, found.st_mtime_ns, found.st_size)


def test_difference_compares_links_by_their_text(pair: tuple[Path, Path]) -> None:
    source, target = pair
    with Folder.at(source) as ours, Folder.at(target) as theirs:
        copy_pass(ours, theirs)
        (target / "link").unlink()
        (target / "link").symlink_to("/etc/shadow")
        (target / "folder").unlink()
        (target / "folder").write_bytes(b"/etc")
        assert 2 == difference(ours, theirs)[1]


def test_empty_removes_links_and_not_what_they_lead_to(pair: tuple[Path, Path], tmp_path: Path) -> None:
    source, _ = pair
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    (source / "t-0" / "way").symlink_to(tmp_path / "outside")
    with Folder.at(source) as ours:
        empty(ours)
    assert ([], ["file"]) == (os.listdir(source), os.listdir(tmp_path / "outside"))


def test_folder_that_becomes_a_link_during_the_copy_is_not_followed(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = pair
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    opened = Folder.folder

    def swap(folder: Folder, relative: str) -> Folder:
        if folder.path == source and not (source / "t-0").is_symlink():
            (source / "t-0").rename(source / "was")
            (source / "t-0").symlink_to(tmp_path / "outside")
        return opened(folder, relative)

    monkeypatch.setattr(Folder, "folder", swap)
    with Folder.at(source) as ours, Folder.at(target) as theirs:
        vanished, _ = copy_pass(ours, theirs)
    assert vanished
    assert [] == list(target.rglob("secret"))


def test_tree_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "DEPTH_MAX", 3)
    (tmp_path / "source" / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tmp_path / "target").mkdir()
    with (
        Folder.at(tmp_path / "source") as ours,
        Folder.at(tmp_path / "target") as theirs,
        pytest.raises(PreconditionError, match="nested deeper than 3"),
    ):
        copy_pass(ours, theirs)


def test_bytes_are_written_over_in_place_only_if_they_are_as_expected_and_through_no_link(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    (data / "t-0").mkdir(parents=True)
    (data / "t-0" / "log").write_bytes(b"0123456789")
    outside.write_bytes(b"0123")
    (data / "link").symlink_to(outside)
    with (data / "t-0" / "log").open("rb", buffering=0) as reader, Folder.at(data) as folder:
        assert b"34" == exchange(folder, "t-0/log", 3, b"34", b"xy")
        assert b"012xy56789" == reader.read()
        assert b"xy" == exchange(folder, "t-0/log", 3, b"34", b"zz")
        assert b"" == exchange(folder, "t-0/log", 10, b"3", b"z")
        for path in ("link", "../outside", "t-0"):
            with pytest.raises(RefusedError):
                exchange(folder, path, 0, b"0", b"z")
    assert (b"012xy56789", b"0123") == ((data / "t-0" / "log").read_bytes(), outside.read_bytes())
