"""Query the kernel about loop mounts: what is mounted where, and which file backs a device; and unmount."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from pathlib import Path

from harness import limits
from harness.cleanup.process import until


def is_mounted(mount_point: Path) -> bool:
    """Return True if a filesystem is mounted at exactly this path."""
    return str(mount_point) in _mount_points()


def mounts_below(folder: Path) -> list[Path]:
    """Return the mount points in or at the folder, by whatever path it is named, innermost first."""
    folder = folder.resolve()  # as the kernel names them
    found = [Path(point) for point in _mount_points()]
    return sorted((p for p in found if p == folder or folder in p.parents), reverse=True)


def backing_file(device: int) -> Path | None:
    """Return the backing file of the loop device with this number (st_dev); None if it is no loop device."""
    node = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/loop/backing_file")
    try:
        return _backing(node)
    except OSError:
        return None


def loops_of(backing: Path) -> list[str]:
    """Return the loop devices (/dev/loopN) that this file backs."""
    found = []
    for node in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            of = _backing(node)
        except OSError:
            continue
        if of == backing:
            found.append(f"/dev/{node.parents[1].name}")
    return found


def unmount(mount_point: Path, backing: Path) -> str:
    """
    Unmount the path and wait until no loop device holds the backing file.

    Changes nothing if another file or device is mounted there. Several threads may unmount one path at once.

    Returns:
        "", or what went wrong.
    """
    while is_mounted(mount_point):
        behind = backing_file(mount_point.stat().st_dev)
        if behind != backing and is_mounted(mount_point):
            return f"{mount_point}: {behind} is mounted there; expected {backing}"
        problem = ""

        def gone() -> bool:
            nonlocal problem
            done = subprocess.run(
                ["umount", str(mount_point)],
                capture_output=True,
                text=True,
                check=False,
                start_new_session=True,
            )
            problem = done.stderr.strip().removeprefix(f"umount: {mount_point}: ")
            # A run that is cancelled during a power loss unmounts the same path from another thread.
            return done.returncode == 0 or not is_mounted(mount_point)

        if not until(gone, limits.PROCESS_END_S_MAX):
            return f"{mount_point}: {problem}; expected no process to use it"
    for device in loops_of(backing):
        # A mount's own loop device frees itself; this one is left from a mount that failed.
        subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
    if not until(lambda: not loops_of(backing), limits.PROCESS_END_S_MAX):
        return still_backs(backing)
    return ""


def still_backs(backing: Path) -> str:
    """
    Return which loop devices this file backs, and which processes keep them; "" if it backs none.

    A process that unshared its mount namespace while the disk was mounted has a mount of its own, which our
    unmount does not end: mount_namespaces(7). The device is free once that namespace's last process is gone.
    """
    devices = loops_of(backing)
    if not devices:
        return ""
    processes = mounted_elsewhere(devices)
    keep = f", mounted in the mount namespace of process {', '.join(processes)}" if processes else ""
    return f"{backing}: still backs {', '.join(devices)}{keep}; expected no loop device"


def mounted_elsewhere(devices: Collection[str]) -> list[str]:
    """Return one process, as "1234 (bash)", of each other mount namespace in which a device is mounted."""
    seen = {_namespace("self")}
    found = []
    for pid in sorted(int(node.name) for node in Path("/proc").iterdir() if node.name.isdecimal()):
        try:
            namespace = _namespace(str(pid))
            if namespace in seen:
                continue
            seen.add(namespace)
            lines = Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8").splitlines()
            command = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue  # it has ended, or is another user's
        if any(line.partition(" - ")[2].split()[1] in devices for line in lines):
            found.append(f"{pid} ({command})")
    return found


def source_of(mount_point: Path) -> str:
    """Return the source of the mount at exactly this path, the topmost one; "" if nothing is mounted there."""
    found = ""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        if _unescaped(before.split()[4]) == str(mount_point):
            found = _unescaped(after.split()[1])
    return found


def detach(mount_point: Path, source: str) -> str:
    """
    Take a FUSE mount of this source away at once, though it is in use or its process is gone.

    Changes nothing if another filesystem is mounted there.

    Returns:
        "", or what went wrong.
    """
    while (found := source_of(mount_point)) != "":
        if found != source:
            return f"{mount_point}: {found} is mounted there; expected {source}"
        tool = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
        done = subprocess.run(
            [*tool, str(mount_point)], capture_output=True, text=True, check=False, start_new_session=True
        )
        if done.returncode != 0 and source_of(mount_point) == source:
            return f"{mount_point}: {done.stderr.strip()}; expected to be able to unmount it"
    return ""


def _backing(node: Path) -> Path:
    """Read a loop device's backing file; the kernel appends a suffix once the file has been unlinked."""
    return Path(node.read_text(encoding="utf-8").removesuffix("\n").removesuffix(" (deleted)"))


def _namespace(process: str) -> str:
    return os.readlink(f"/proc/{process}/ns/mnt")


def _mount_points() -> list[str]:
    """Return the mount points of our namespace; the kernel writes a blank as \\040."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [_unescaped(line.split()[4]) for line in lines]


def _unescaped(word: str) -> str:
    return word.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
