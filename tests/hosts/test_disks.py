"""On the watermark tier exactly the reported and flushed bytes are durable; tested on plain files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.beneath import Folder
from harness.hosts import disks, trees
from harness.hosts.disks import PlainDisk, WatermarkDisk
from harness.model import PreconditionError


class DeadVictim:
    """A process that is dead."""

    def alive(self) -> bool:
        return False

    def pause(self) -> str:
        raise AssertionError("a dead process is not paused")

    def resume(self) -> str:
        raise AssertionError("a dead process is not resumed")

    def kill(self) -> str:
        raise AssertionError("a dead process is not killed")


def names_of(disk: WatermarkDisk) -> list[str]:
    """Return its unflushed files, without the moments of their last writes."""
    return [text.partition(",")[0] for text in disk.unflushed()]


def nothing() -> None:
    """Drain no reports."""


@pytest.fixture
def disk(tmp_path: Path) -> WatermarkDisk:
    """An empty disk."""
    return WatermarkDisk(tmp_path / "data", tmp_path / "shadow")


def test_loss_puts_back_bytes_names_and_folders_of_the_last_flush(disk: WatermarkDisk) -> None:
    (disk.data / "t-0").mkdir()
    (disk.data / "t-0" / "log").write_bytes(b"aaaa")
    (disk.data / "checkpoint").write_bytes(b"1")
    assert disk.flush() == "2 files copied to the shadow"
    (disk.data / "t-0" / "log").write_bytes(b"aa")
    (disk.data / "checkpoint").rename(disk.data / "renamed")
    (disk.data / "t-1").mkdir()
    probe = disk.power_loss(DeadVictim(), nothing)
    assert probe == (
        "killed; 4 bytes in 3 files undone (watermark); of 3 bytes written 2 were durable and 1 are gone, "
        "0 of them zeros now; 3 cut bytes are back, 2 names undone"
    )
    assert {"t-0", "checkpoint"} == {path.name for path in disk.data.iterdir()}
    assert (disk.data / "t-0" / "log").read_bytes() == b"aaaa"


def test_loss_of_an_overwritten_file_of_equal_length_counts_it_whole(disk: WatermarkDisk) -> None:
    (disk.data / "log").write_bytes(b"aaaa")
    disk.flush()
    (disk.data / "log").write_bytes(b"bbbb")
    assert disk.power_loss(DeadVictim(), nothing).startswith("killed; 4 bytes in 1 files undone (watermark)")
    assert (disk.data / "log").read_bytes() == b"aaaa"


def test_file_is_unflushed_until_its_shadow_has_all_of_it(disk: WatermarkDisk) -> None:
    (disk.data / "t-0").mkdir()
    (disk.data / "t-0" / "log").write_bytes(b"aaaa")
    (disk.data / "checkpoint").write_bytes(b"1")
    (disk.data / "link").symlink_to("checkpoint")
    assert ["checkpoint of 1 bytes", "t-0/log of 4 bytes"] == names_of(disk)
    disk.note_flushed("t-0/log", 2)
    assert ["checkpoint of 1 bytes", "t-0/log of 4 bytes"] == names_of(disk)
    disk.note_flushed("t-0/log", 4)
    assert ["checkpoint of 1 bytes"] == names_of(disk)
    disk.flush()
    assert [] == names_of(disk)


def test_file_that_was_written_to_in_between_is_told_in_other_words(disk: WatermarkDisk) -> None:
    log = disk.data / "log"
    log.write_bytes(b"aaaa")
    before = disk.unflushed()
    assert before == disk.unflushed()
    os.utime(log, ns=(0, 1))
    assert set() == {*before} & {*disk.unflushed()}


def test_noted_flush_makes_a_truncation_durable(disk: WatermarkDisk) -> None:
    (disk.data / "log").write_bytes(b"aaaabbbb")
    disk.flush()
    (disk.data / "log").write_bytes(b"aaaa")
    disk.note_flushed("log", 4)
    disk.power_loss(DeadVictim(), nothing)
    assert (disk.data / "log").read_bytes() == b"aaaa"


def test_noted_flush_of_a_file_that_is_gone_changes_nothing(disk: WatermarkDisk) -> None:
    disk.note_flushed("gone/log", 4)
    disk.power_loss(DeadVictim(), nothing)
    assert list(disk.data.iterdir()) == []


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../outside"])
def test_noted_flush_outside_the_disk_is_refused(disk: WatermarkDisk, path: str) -> None:
    with pytest.raises(PreconditionError, match="expected a path below"):
        disk.note_flushed(path, 4)


def test_flush_finds_a_file_that_is_renamed_while_it_copies(
    disk: WatermarkDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (disk.data / "checkpoint.tmp").write_bytes(b"new")
    copy = trees.copy_file

    def rename_first(source: Folder, target: Folder, name: str) -> None:
        if name.endswith(".tmp"):
            (disk.data / name).rename(disk.data / name.removesuffix(".tmp"))
        copy(source, target, name)

    monkeypatch.setattr(trees, "copy_file", rename_first)
    disk.flush()
    disk.power_loss(DeadVictim(), nothing)
    assert (disk.data / "checkpoint").read_bytes() == b"new"


def test_flush_gives_up_on_a_folder_that_never_stays_quiet(
    disk: WatermarkDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (disk.data / "log").write_bytes(b"a")

    def always_gone(source: Folder, target: Folder, name: str) -> None:
        raise FileNotFoundError(source, target, name)

    monkeypatch.setattr(trees, "copy_file", always_gone)
    with pytest.raises(PreconditionError, match=f"each of {disks.COPY_PASSES_MAX} passes"):
        disk.flush()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of the harness's user, which no node may reach through the harness."""
    path = tmp_path / "outside" / "authorized_keys"
    path.parent.mkdir()
    path.write_bytes(b"ours")
    return path


def test_noted_flush_writes_nothing_through_a_link_that_a_flush_has_copied(
    disk: WatermarkDisk, outside: Path
) -> None:
    """The node makes a link, waits for a flush, puts a file in the link's place, and reports it as flushed."""
    (disk.data / "log").symlink_to(outside)
    disk.flush()
    (disk.data / "log").unlink()
    (disk.data / "log").write_bytes(b"theirs")
    disk.note_flushed("log", 6)
    assert b"ours" == outside.read_bytes()
    disk.power_loss(DeadVictim(), nothing)
    assert (b"ours", b"theirs") == (outside.read_bytes(), (disk.data / "log").read_bytes())


def test_noted_flush_writes_nothing_through_a_folder_that_was_a_link(disk: WatermarkDisk, outside: Path) -> None:
    (disk.data / "t-0").symlink_to(outside.parent)
    disk.flush()
    (disk.data / "t-0").unlink()
    (disk.data / "t-0").mkdir()
    (disk.data / "t-0" / outside.name).write_bytes(b"theirs")
    with pytest.raises(PreconditionError, match="a link; expected a folder"):
        disk.note_flushed(f"t-0/{outside.name}", 6)
    assert b"ours" == outside.read_bytes()


@pytest.mark.parametrize("path", ["log", "t-0/authorized_keys"])
def test_noted_flush_reads_nothing_through_a_link(disk: WatermarkDisk, outside: Path, path: str) -> None:
    (disk.data / "log").symlink_to(outside)
    (disk.data / "t-0").symlink_to(outside.parent)
    with pytest.raises(PreconditionError, match="a link; expected a"):
        disk.note_flushed(path, 4)
    disk.power_loss(DeadVictim(), nothing)
    assert (b"ours", []) == (outside.read_bytes(), os.listdir(disk.data))


def test_noted_flush_of_a_fifo_does_not_wait(disk: WatermarkDisk) -> None:
    os.mkfifo(disk.data / "log")
    with pytest.raises(PreconditionError, match="a FIFO; expected a regular file"):
        disk.note_flushed("log", 4)


def test_loss_puts_a_link_back_as_a_link_and_reads_nothing_behind_it(disk: WatermarkDisk, outside: Path) -> None:
    (disk.data / "link").symlink_to(outside)
    disk.flush()
    (disk.data / "link").unlink()
    os.mkfifo(disk.data / "link")
    disk.power_loss(DeadVictim(), nothing)
    assert (str(outside), b"ours") == (os.readlink(disk.data / "link"), outside.read_bytes())


def test_noted_flush_of_a_file_replaces_a_folder_of_that_name(disk: WatermarkDisk) -> None:
    (disk.data / "log").mkdir()
    disk.flush()
    (disk.data / "log").rmdir()
    (disk.data / "log").write_bytes(b"file")
    disk.note_flushed("log", 4)
    disk.power_loss(DeadVictim(), nothing)
    assert (disk.data / "log").read_bytes() == b"file"


def test_disk_that_became_a_link_is_refused(disk: WatermarkDisk, outside: Path) -> None:
    disk.data.rmdir()
    disk.data.symlink_to(outside.parent)
    with pytest.raises(PreconditionError, match="a link; expected a folder"):
        disk.power_loss(DeadVictim(), nothing)
    assert b"ours" == outside.read_bytes()


@pytest.mark.parametrize("name", ["shadow", "shadow.new"])
def test_flush_writes_and_removes_nothing_through_a_link_in_the_shadow_s_place(
    disk: WatermarkDisk, outside: Path, tmp_path: Path, name: str
) -> None:
    (disk.data / outside.name).write_bytes(b"theirs")
    if (tmp_path / name).exists():
        (tmp_path / name).rmdir()
    (tmp_path / name).symlink_to(outside.parent)
    with pytest.raises(OSError, match=r"symbolic link|File exists"):
        disk.flush()
    assert b"ours" == outside.read_bytes()


def test_flush_of_a_disk_that_became_a_link_flushes_nothing_else(tmp_path: Path, outside: Path) -> None:
    disk = PlainDisk(tmp_path / "plain")
    assert disk.flush().startswith("syncfs in ")
    disk.data.rmdir()
    disk.data.symlink_to(outside.parent)
    with pytest.raises(PreconditionError, match="a link; expected a folder"):
        disk.flush()


def test_plain_disk_has_nothing_to_lose(tmp_path: Path) -> None:
    disk = PlainDisk(tmp_path / "data")
    with pytest.raises(PreconditionError, match="expected a node added with a disk"):
        disk.power_loss(DeadVictim(), nothing)
