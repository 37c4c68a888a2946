"""
A disk that really loses power: a loop-mounted ext4 for each node, shut down while the node uses it.

FS_IOC_SHUTDOWN without a flush of the journal makes the filesystem lose what it has not written: bytes, sizes,
names and truncations that no fsync covered. Unmounting and mounting it again replays the journal, as after a real
power loss.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from harness import limits
from harness.beneath import Folder
from harness.cleanup import mounts
from harness.cleanup.ledger import Ledger
from harness.cleanup.state import state_dir
from harness.cluster.disk_error import DiskError
from harness.hosts import loop_faults
from harness.hosts.disks import Owner, Victim, opened, set_aside, set_owner, sync_filesystem
from harness.hosts.lost_pages import Contents, contents, lost_between
from harness.hosts.shutdown import FLUSH_ALL, LOG_FLUSH, NO_LOG_FLUSH, PROBE_FILE, require_own_mount, shut_down
from harness.hosts.unwritten import unwritten
from harness.model import PreconditionError, UsageError

# A small journal, and all tables written at once, so that no kernel thread writes any later.
MKFS: Final = ("-q", "-F", "-m", "0", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0")
# By default the journal commits every 5 s, which would make an unflushed truncation durable. An error makes the
# filesystem read-only, which is a fault that is asked for (loop_faults.make_read_only).
MOUNT_OPTIONS: Final = "loop,noatime,commit=900,errors=remount-ro"
TOOLS: Final = ("mkfs.ext4", "mount", "umount", "losetup", "cp")

# Loop filesystems are tried once for each process; holds "" if they work, else the reason why not.
_trials: Final[list[str]] = []
_trial_mutex: Final = threading.Lock()


class LoopDisk:
    """An ext4 filesystem in a file of the run's folder; the node's data is in `data` below its root."""

    def __init__(self, *, folder: Path, ledger: Ledger, owner: Owner = None) -> None:
        """
        Copy the template and mount the copy at folder/mount; the ledger records both before.

        Raises:
            UsageError: A tool fails, or the mount is not ours.
        """
        self.tier = "loop"
        self._folder = folder
        self._image = folder / "disk.img"
        self._mount_point = folder / "mount"
        self._mutex = threading.Lock()
        self.data = self.mounted = self._mount_point / "data"
        # What is wrong with it, until `mend`.
        self._broken: DiskError | None = None
        self._seen = ""
        self._mount_point.mkdir(parents=True)
        ledger.note("directory", path=str(self._image))
        self._ledger = ledger
        _run(self._ledger, "cp", "--sparse=always", str(_template(ledger)), str(self._image))
        self._entry = ledger.note("mount", mount_point=str(self._mount_point), backing=str(self._image))
        self._mount()
        self.data.mkdir()
        (self._mount_point / PROBE_FILE).write_bytes(b"")
        set_owner(self.data, owner)
        sync_filesystem(self._mount_point)

    def flush(self) -> str:
        """Flush this filesystem alone."""
        return sync_filesystem(self._mount_point)

    def unflushed(self) -> tuple[str, ...]:
        """Return the files that the kernel has not written whole."""
        with opened(self.data) as data:
            return unwritten(data)

    def note_flushed(self, path: str, length: int) -> None:
        """Do nothing: the filesystem itself knows what is durable."""

    def power_loss(self, victim: Victim, drain: Callable[[], None], torn: Random | None = None) -> str:
        """
        Pause, shut down, kill, unmount and mount, in this order.

        Without the pause, the node would see an IO error before it dies. Without the kill, it would keep the
        filesystem in use, and the mount would return the one that is shut down.
        If torn, some of the unflushed pages are written before, and the journal with it, so that the files have
        their new length, and zeros where a page is missing.
        """
        with self._mutex:
            if victim.alive():
                victim.pause()
            before = self._contents()
            pages = 0
            if torn is not None:
                with Folder.at(self.data) as data:
                    pages = loop_faults.sync_pages(data, torn)
            flags = NO_LOG_FLUSH if torn is None else LOG_FLUSH
            took_ms = shut_down(self._mount_point, self._folder, flags)
            if victim.alive():
                victim.kill()
            drain()
            self._remount()
            lost = lost_between(before, self._contents())
        kept = "" if torn is None else f"; {pages} pages and the journal reached the disk before"
        seen = f"filesystem shut down in {took_ms:.1f} ms, a write then failed with EIO; journal replayed"
        return f"{seen}{kept}; {lost}"

    def lose(self, aside: Path) -> str:
        """Empty it, durably."""
        with self._mutex:
            seen = set_aside(self.data, aside)
            sync_filesystem(self._mount_point)
        return seen

    def state(self) -> str:
        """Return what was broken and not mended since."""
        return self._broken or ""

    def break_down(self, error: DiskError, victim: Victim) -> str:
        """
        Let it fail so from now on, as this filesystem can by itself.

        A flush that fails is a shutdown that loses what was not flushed, and a write that fails is one that writes
        everything before; all other calls fail with EIO too, and the node meets the one that it makes first.
        """
        with self._mutex:
            match error:
                case DiskError.FULL:
                    self._seen = loop_faults.fill(self._mount_point)
                case DiskError.WRITE | DiskError.FLUSH:
                    flags = FLUSH_ALL if error is DiskError.WRITE else NO_LOG_FLUSH
                    took_ms = shut_down(self._mount_point, self._folder, flags)
                    self._seen = f"filesystem shut down in {took_ms:.1f} ms, a write then failed with EIO"
                case DiskError.READ_ONLY:
                    self._seen = self._become_read_only(victim)
                case _:
                    raise PreconditionError(f"disk error {error}: ext4 has none; expected FUSE over it")
            self._broken = error
        return self._seen

    def mend(self, victim: Victim) -> str:
        """Free it if it was full; else unmount and mount it again, for which the node must be down."""
        del victim
        with self._mutex:
            broken, self._broken = self._broken, None
            if broken is None:
                return ""
            if broken is DiskError.FULL:
                loop_faults.free(self._mount_point)
            else:
                self._remount()
        return self._seen

    def _become_read_only(self, victim: Victim) -> str:
        """Flush and make it read-only while the node does nothing, so that nothing is lost by it."""
        require_own_mount(self._mount_point, self._folder)
        runs = victim.alive()
        if runs:
            victim.pause()
        try:
            sync_filesystem(self._mount_point)
            return loop_faults.make_read_only(self._mount_point)
        finally:
            if runs:
                victim.resume()

    def _contents(self) -> Contents:
        with Folder.at(self.data) as data:
            return contents(data)

    def _remount(self) -> None:
        self.unmount()
        self._mount()

    def unmount(self) -> None:
        """Unmount it; raise PreconditionError if a process still uses it."""
        problem = mounts.unmount(self._mount_point, self._image)
        if problem:
            raise PreconditionError(f"unmount {problem}")

    def discard(self) -> None:
        """Unmount it and close its ledger entry."""
        self.unmount()
        self._ledger.done(self._entry)

    def _mount(self) -> None:
        _run(self._ledger, "mount", "-t", "ext4", "-o", MOUNT_OPTIONS, str(self._image), str(self._mount_point))
        backing = mounts.backing_file(self._mount_point.stat().st_dev)
        if backing != self._image:
            raise UsageError(f"mount {self._mount_point}: backed by {backing}; expected {self._image}")


def why_not(folder: Path, ledger: Ledger) -> str:
    """Return why loop filesystems cannot be used here, "" if they can; tries to mount one and shut it down."""
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/loop-control").exists():
        return "no /dev/loop-control"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"no {', '.join(missing)} on PATH"
    with _trial_mutex:
        if not _trials:
            _trials.append(_mount_once(folder, ledger))
        return _trials[0]


def _mount_once(folder: Path, ledger: Ledger) -> str:
    """Mount a disk in the folder, shut it down and unmount it; return what failed, or ""."""
    try:
        disk = LoopDisk(folder=folder, ledger=ledger)
        try:
            shut_down(disk.data.parent, folder)
        finally:
            disk.discard()
        shutil.rmtree(folder)
    except (UsageError, PreconditionError, OSError) as error:
        return str(error)
    return ""


def _template(ledger: Ledger) -> Path:
    """Return an image of an empty ext4, made once for this user, size and options."""
    options = hashlib.sha256(repr((MKFS, limits.DISK_BYTES)).encode()).hexdigest()[:12]
    template = state_dir("templates") / f"ext4-{options}.img"
    if not template.exists():
        fresh = template.with_name(f"{template.name}.{os.getpid()}.{threading.get_ident()}")
        entry = ledger.note("directory", path=str(fresh))
        with fresh.open("wb") as file:
            file.truncate(limits.DISK_BYTES)
        try:
            _run(ledger, "mkfs.ext4", *MKFS, str(fresh))
            fresh.replace(template)
        finally:
            fresh.unlink(missing_ok=True)
        ledger.done(entry)
    return template


def _run(ledger: Ledger, *argv: str) -> None:
    """Run a tool; raise UsageError with its error output if it fails."""
    problem = ledger.run(*argv)
    if problem:
        raise UsageError(f"{' '.join(argv)}: {problem}; expected it to succeed (are loop devices allowed here?)")
