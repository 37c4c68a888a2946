"""The safety rule of a power loss: the ioctl is sent only to the run's own loop mount."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup import mounts
from harness.cleanup.ledger import Ledger, reap
from harness.hosts import loopfs
from harness.hosts.loopfs import LoopDisk, why_not
from harness.hosts.shutdown import shut_down
from harness.model import PreconditionError, UsageError
from tests.needs import needs

BARE = Path(__file__).parents[2] / ".ci" / "bare"

root_only = [
    pytest.mark.slow,
    pytest.mark.root,
    needs("loop"),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A run's ledger, closed after the test with nothing left."""
    ledger = Ledger.open(tmp_path)
    yield ledger
    assert ledger.close() == []


@pytest.fixture
def no_ioctl(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record ioctls instead of sending them: a broken safety rule must not shut down the machine's disk."""
    sent: list[object] = []
    monkeypatch.setattr(fcntl, "ioctl", lambda *arguments: sent.append(arguments))
    return sent


def test_shutdown_of_a_folder_whose_mount_failed_is_refused(tmp_path: Path, no_ioctl: list[object]) -> None:
    (tmp_path / "mount").mkdir()
    with pytest.raises(PreconditionError, match="nothing is mounted there"):
        shut_down(tmp_path / "mount", tmp_path)
    assert no_ioctl == []


def test_shutdown_of_a_mount_without_a_loop_device_is_refused(tmp_path: Path, no_ioctl: list[object]) -> None:
    with pytest.raises(PreconditionError, match="backed by no loop device"):
        shut_down(Path("/proc"), tmp_path)
    assert no_ioctl == []


class TestOwnLoop:
    """Tests that mount a loop filesystem."""

    pytestmark = root_only

    def test_disk_that_somebody_else_keeps_busy_is_left_whole_for_the_next_reap(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without its image, a mount could not be told from another one, and would stay for ever."""
        monkeypatch.setattr(limits, "PROCESS_END_S_MAX", 0.2)
        ledger = Ledger.open(tmp_path, root=tmp_path / "runs")
        disk = LoopDisk(folder=tmp_path / "disk", ledger=ledger)
        image, mount = tmp_path / "disk" / "disk.img", tmp_path / "disk" / "mount"
        with (disk.data / "busy").open("wb"):
            left = ledger.close()
            assert [f"{mount}: target is busy.; expected no process to use it"] == left[:1]
            assert f"{image}: still backs /dev/loop" in left[1]
            assert True is image.exists()
            assert 2 == len(reap(tmp_path / "runs").left)
        assert () == reap(tmp_path / "runs").left
        assert ([], [], False) == (mounts.mounts_below(tmp_path), mounts.loops_of(image), image.exists())

    def test_shutdown_of_another_runs_loop_mount_is_refused(
        self, tmp_path: Path, ledger: Ledger, no_ioctl: list[object]
    ) -> None:
        LoopDisk(folder=tmp_path / "theirs", ledger=ledger)
        (tmp_path / "ours").mkdir()
        with pytest.raises(PreconditionError, match=r"theirs/disk.img; expected a file in .*ours"):
            shut_down(tmp_path / "theirs" / "mount", tmp_path / "ours")
        assert no_ioctl == []

    def test_shutdown_that_did_not_bite_is_no_power_loss(
        self, tmp_path: Path, ledger: Ledger, no_ioctl: list[object]
    ) -> None:
        disk = LoopDisk(folder=tmp_path / "A", ledger=ledger)
        with pytest.raises(PreconditionError, match="gave success; expected EIO"):
            shut_down(disk.data.parent, tmp_path / "A")
        assert len(no_ioctl) == 1

    def test_shutdown_makes_every_later_write_fail(self, tmp_path: Path, ledger: Ledger) -> None:
        disk = LoopDisk(folder=tmp_path / "A", ledger=ledger)
        shut_down(disk.data.parent, tmp_path / "A")
        with pytest.raises(OSError, match="Input/output error"):
            (disk.data / "log").write_bytes(b"x")

    @needs("cachestat")
    def test_file_is_unflushed_until_the_kernel_has_written_all_of_it(
        self, tmp_path: Path, ledger: Ledger
    ) -> None:
        disk = LoopDisk(folder=tmp_path / "A", ledger=ledger)
        (disk.data / "t-0").mkdir()
        for path in ("t-0/log", "checkpoint"):
            (disk.data / path).write_bytes(b"x" * 5000)
        assert ["checkpoint of 5000 bytes", "t-0/log of 5000 bytes"] == [
            text.partition(",")[0] for text in disk.unflushed()
        ]
        with (disk.data / "checkpoint").open("rb+") as written:
            os.fsync(written.fileno())
        assert ["t-0/log of 5000 bytes"] == [text.partition(",")[0] for text in disk.unflushed()]
        disk.flush()
        assert () == disk.unflushed()

    def test_unmount_that_is_in_use_is_told(
        self, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        disk = LoopDisk(folder=tmp_path / "A", ledger=ledger)
        monkeypatch.setattr(loopfs.limits, "PROCESS_END_S_MAX", 0.05)
        with (disk.data / "log").open("wb"), pytest.raises(PreconditionError, match="target is busy"):
            disk.unmount()

    def test_disk_that_another_mount_namespace_keeps_is_told_with_its_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An unmount ends our mount alone; whoever unshared its mounts before has a copy of it."""
        monkeypatch.setattr(limits, "PROCESS_END_S_MAX", 0.2)
        ledger = Ledger.open(tmp_path / "run", root=tmp_path / "runs")
        disk = LoopDisk(folder=tmp_path / "A", ledger=ledger)
        apart = ("unshare", "--mount", "sh", "-c", "echo ready; read nothing")
        with subprocess.Popen(apart, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
            assert keeper.stdout is not None and keeper.stdin is not None, "they are pipes"
            assert "ready\n" == keeper.stdout.readline()
            with pytest.raises(PreconditionError, match=rf"in the mount namespace of process {keeper.pid} \(sh\)"):
                disk.unmount()
            assert all(f"of process {keeper.pid} (sh);" in left for left in ledger.close())
        assert () == reap(tmp_path / "runs").left
        assert [] == mounts.loops_of(tmp_path / "A" / "disk.img")

    def test_suite_on_a_machine_made_bare_keeps_no_disk_of_a_run_beside_it(
        self, tmp_path: Path, ledger: Ledger
    ) -> None:
        disk = LoopDisk(folder=tmp_path / "a disk", ledger=ledger)
        apart = (str(BARE), "sh", "-c", "echo ready; read nothing")
        with subprocess.Popen(apart, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
            assert keeper.stdout is not None, "it is a pipe"
            assert "ready\n" == keeper.stdout.readline()
            assert [] == mounts.mounted_elsewhere(mounts.loops_of(tmp_path / "a disk" / "disk.img"))
            disk.unmount()
            disk.discard()
            keeper.communicate("\n")

    def test_owner_of_the_data_is_the_one_asked_for(self, tmp_path: Path, ledger: Ledger) -> None:
        disk = LoopDisk(folder=tmp_path / "A", ledger=ledger, owner=(10001, 10002))
        assert (disk.data.stat().st_uid, disk.data.stat().st_gid) == (10001, 10002)

    def test_images_take_little_space(self, tmp_path: Path, ledger: Ledger) -> None:
        LoopDisk(folder=tmp_path / "A", ledger=ledger)
        assert (tmp_path / "A" / "disk.img").stat().st_blocks * 512 < 8 * 1024 * 1024

    def test_trial_tells_what_the_machine_refuses(
        self, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loopfs, "_trials", [])
        monkeypatch.setattr(loopfs, "MOUNT_OPTIONS", "loop,no_such_option")
        assert "expected it to succeed" in why_not(tmp_path / "trial", ledger)

    def test_failed_mount_leaves_nothing_to_undo_by_hand(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = Ledger.open(tmp_path / "run")
        monkeypatch.setattr(loopfs, "MOUNT_OPTIONS", "loop,no_such_option")
        with pytest.raises(UsageError, match="mount -t ext4"):
            LoopDisk(folder=tmp_path / "A", ledger=ledger)
        assert ledger.close() == []
        assert mounts.loops_of(tmp_path / "A" / "disk.img") == []


def test_loop_filesystems_are_not_tried_without_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(tmp_path / "run")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_not(tmp_path / "trial", ledger) == "not root"
    monkeypatch.undo()
    ledger.close()
