"""On the watermark tier exactly the reported and flushed bytes are durable; tested on plain files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.hosts import disks
from harness.hosts.disks import PlainDisk, WatermarkDisk
from harness.model import PreconditionError


class DeadVictim:
    """A process that is dead."""

    def alive(self) -> bool:
        return False

    def pause(self) -> str:
        raise AssertionError("a dead process is not paused")

    def kill(self) -> str:
        raise AssertionError("a dead process is not killed")


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
    assert probe == "killed; 4 bytes in 3 files undone (watermark)"
    assert {"t-0", "checkpoint"} == {path.name for path in disk.data.iterdir()}
    assert (disk.data / "t-0" / "log").read_bytes() == b"aaaa"


def test_loss_of_an_overwritten_file_of_equal_length_counts_it_whole(disk: WatermarkDisk) -> None:
    (disk.data / "log").write_bytes(b"aaaa")
    disk.flush()
    (disk.data / "log").write_bytes(b"bbbb")
    assert disk.power_loss(DeadVictim(), nothing) == "killed; 4 bytes in 1 files undone (watermark)"
    assert (disk.data / "log").read_bytes() == b"aaaa"


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
    copy = shutil.copy2

    def rename_first(source: str, target: Path, *, follow_symlinks: bool) -> object:
        if source.endswith(".tmp"):
            os.rename(source, source.removesuffix(".tmp"))
        return copy(source, target, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(shutil, "copy2", rename_first)
    disk.flush()
    disk.power_loss(DeadVictim(), nothing)
    assert (disk.data / "checkpoint").read_bytes() == b"new"


def test_flush_gives_up_on_a_folder_that_never_stays_quiet(
    disk: WatermarkDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (disk.data / "log").write_bytes(b"a")

    def always_gone(source: str, target: Path, *, follow_symlinks: bool) -> object:
        raise FileNotFoundError(source, target, follow_symlinks)

    monkeypatch.setattr(shutil, "copy2", always_gone)
    with pytest.raises(PreconditionError, match=f"each of {disks.COPY_PASSES_MAX} passes"):
        disk.flush()


def test_plain_disk_has_nothing_to_lose(tmp_path: Path) -> None:
    disk = PlainDisk(tmp_path / "data")
    with pytest.raises(PreconditionError, match="expected a node added with a disk"):
        disk.power_loss(DeadVictim(), nothing)
