"""Unmounting a path that another thread unmounts at the same time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup import mounts


@pytest.mark.parametrize("moment", ["before umount runs", "before the backing file is read"])
def test_path_that_another_thread_unmounts_first_is_unmounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A run that is cancelled during a power loss: the fault and the clean-up unmount the same disk."""
    backing = tmp_path / "disk.img"
    mounted = [str(tmp_path)]

    def backing_file(_device: int) -> Path | None:
        if moment == "before the backing file is read":
            mounted.clear()
        return backing if mounted else None

    def run(argv: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        mounted.clear()
        return subprocess.CompletedProcess(argv, 32, stdout="", stderr=f"umount: {tmp_path}: not mounted.")

    monkeypatch.setattr(mounts, "_mount_points", lambda: list(mounted))
    monkeypatch.setattr(mounts, "backing_file", backing_file)
    monkeypatch.setattr(mounts.subprocess, "run", run)
    monkeypatch.setattr(limits, "PROCESS_END_S_MAX", 0.1)
    assert "" == mounts.unmount(tmp_path, backing)


@pytest.mark.parametrize("way", ["results", "beside/../results", "link", "inside/../results"])
def test_mounts_of_a_run_are_found_by_every_path_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The kernel names them without a link: a run that is thought to have none is deleted with what is mounted."""
    top = tmp_path.resolve()
    for name in ("beside", "results/deep"):
        (top / name).mkdir(parents=True)
    (top / "link").symlink_to(top / "results")
    (top / "inside").symlink_to(top / "results")
    mounted = [top / "results" / "run 1" / "A"]
    monkeypatch.setattr(mounts, "_mount_points", lambda: ["/", *map(str, mounted)])
    monkeypatch.chdir(top / "beside")
    for folder in (top / way / "run 1", Path("..") / way / "run 1"):
        assert mounted == mounts.mounts_below(folder)
    assert [] == mounts.mounts_below(top / way / "run 2")
