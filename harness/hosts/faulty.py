"""
A disk that can fail as it is told: the node sees another disk through harness/hosts/faultfs.py.

The harness reads and changes the disk below; the node's data directory is `mounted`. So a power loss works below
as ever, in this order: pause the node, shut the filesystem down, kill the node, take the FUSE mount away, unmount
and mount the filesystem, mount FUSE anew.
A full disk is full for every write, also for one that the disk below could still take in a block that it has.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from harness import extras, limits
from harness.cleanup import mounts
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import until
from harness.cluster.disk_error import SLOW_MS, DiskError
from harness.hosts.disks import Disk, Owner, PlainDisk, Victim
from harness.hosts.fault_rules import MET_MAX
from harness.hosts.faultfs import CONTROL, MEND, SYNCED
from harness.hosts.node import NodeProcess, child_environment
from harness.model import PreconditionError, UsageError

MODULE: Final = "harness.hosts.faultfs"
LIBRARY: Final = "mfusepy"
# The project's root, on the PYTHONPATH of the filesystem's process.
ROOT: Final = Path(__file__).resolve().parents[2]

# FUSE is tried once for each process; holds "" if it works, else the reason why not.
_trials: Final[list[str]] = []
_trial_mutex: Final = threading.Lock()


class FaultyDisk:
    """
    A disk over another one.

    Raises:
        PreconditionError: The filesystem's process does not answer any more.
    """

    def __init__(self, below: Disk, *, folder: Path, ledger: Ledger) -> None:
        """
        Mount it at folder/data; the ledger records mount and process before.

        Raises:
            UsageError: FUSE cannot be mounted here.
        """
        self.tier = below.tier
        self.data = below.data
        self.mounted = folder / "data"
        self._below = below
        self._ledger = ledger
        self._source = f"fencepost-{ledger.token}"
        self._folder = folder
        self.mounted.mkdir(parents=True)
        self._entry = ledger.note("fuse", mount_point=str(self.mounted), source=self._source)
        self._server = NodeProcess(name=f"disk {folder}", ledger=ledger, log=folder / "log.txt")
        self._mount()

    # --- as every disk -------------------------------------------------------------------------------------
    def flush(self) -> str:
        """Flush the disk below; what was written until then is no longer in doubt."""
        seen = self._below.flush()
        self._tell(SYNCED)
        return seen

    def unflushed(self) -> tuple[str, ...]:
        """Return the files that the disk below has not written whole."""
        return self._below.unflushed()

    def note_flushed(self, path: str, length: int) -> None:
        """Tell the disk below what the node flushed."""
        self._below.note_flushed(path, length)

    def power_loss(self, victim: Victim, drain: Callable[[], None], torn: Random | None = None) -> str:
        """Cut the power of the disk below, and mount anew once it is back."""

        def drained() -> None:
            drain()
            self._unmount()

        wrong = self.seen()["error"]
        seen = self._below.power_loss(victim, drained, torn)
        self._mount()
        self._tell(wrong)
        return seen

    def lose(self, aside: Path) -> str:
        """Empty the disk below, and keep what it had aside."""
        seen = self._below.lose(aside)
        self._tell(SYNCED)
        return seen

    # --- errors --------------------------------------------------------------------------------------------
    def state(self) -> str:
        """Return what is wrong with it now, as its process says."""
        return str(self.seen()["error"])

    def break_down(self, error: DiskError, victim: Victim) -> str:
        """Let the disk fail so from now on; a slow one is asked something, and must have taken its time."""
        del victim
        self._tell(error)
        if error is not DiskError.SLOW:
            return ""
        started = time.monotonic()
        os.statvfs(self.mounted)
        took_ms = (time.monotonic() - started) * 1000
        if not self.seen()["slowed"]:
            raise PreconditionError(f"disk {self.mounted}: a call was not slowed; expected it to be")
        return f"every call takes {SLOW_MS} ms longer; one from outside took {took_ms:.1f} ms"

    def mend(self, victim: Victim) -> str:
        """Let it work again; return what it refused, or how many calls took longer, "" for nothing."""
        del victim
        self._tell(MEND)
        seen = self.seen()
        self._tell("")
        told = [*seen["met"], *([f"{seen['slowed']} calls took longer"] if seen["slowed"] else [])]
        more = seen["refused"] - MET_MAX
        return "; ".join([*told, *([f"{more} more calls failed"] if more > 0 else [])])

    def seen(self) -> dict[str, Any]:
        """Return what is wrong with the disk now, and what it refused since: see FaultRules.seen."""
        try:
            found: dict[str, Any] = json.loads(os.getxattr(self.mounted, CONTROL))
        except OSError as error:
            raise PreconditionError(f"disk {self.mounted}: {error.strerror}; expected it to answer") from error
        return found

    def discard(self) -> None:
        """Take it away, and close its entry of the ledger."""
        self._unmount()
        self._ledger.done(self._entry)

    def forget(self) -> None:
        """Wait for its process after the ledger has killed it, so that no zombie remains."""
        self._server.forget()

    def _tell(self, word: str) -> None:
        try:
            os.setxattr(self.mounted, CONTROL, word.encode())
        except OSError as error:
            raise PreconditionError(
                f"disk {self.mounted}: told {word!r}: {error.strerror}; expected it to obey; it said: "
                f"{self._server.log_tail()}"
            ) from error

    def _mount(self) -> None:
        argv = [sys.executable, "-m", MODULE, str(self.data), str(self.mounted), self._source]
        # Others than root see no mount of another user's: a container's node is another user.
        argv += ["--shared"] if os.geteuid() == 0 else []
        self._server.start(argv, env=child_environment({}, ROOT), cwd=self._folder)
        up = until(lambda: self._is_mounted() or not self._server.alive(), limits.PROCESS_START_S_MAX)
        if not up or not self._server.alive():
            self._end()
            raise UsageError(f"FUSE at {self.mounted}: not mounted; it said: {self._server.log_tail()}")

    def _is_mounted(self) -> bool:
        return mounts.source_of(self.mounted) == self._source

    def _unmount(self) -> None:
        problem = mounts.detach(self.mounted, self._source)
        if problem:
            raise PreconditionError(f"unmount {problem}")
        # It ends by itself once nothing uses the mount any more; the disk below must not wait for that.
        self._end()

    def _end(self) -> None:
        with suppress(PreconditionError):
            self._server.kill()
        self._server.wait()


def why_no_fuse(folder: Path, ledger: Ledger) -> str:
    """Return why disks cannot be made to fail by FUSE here, "" if they can; tries it once in a process."""
    with _trial_mutex:
        if not _trials:
            _trials.append(missing() or _try_once(folder, ledger))
        return _trials[0]


def missing() -> str:
    """Return which part of FUSE is not on this machine, "" if it may work."""
    if not Path("/dev/fuse").exists():
        return "no /dev/fuse; expected the kernel's module fuse"
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        return "no fusermount3 on PATH; expected the package fuse3, or root"
    return extras.lacks("fuse")


def _try_once(folder: Path, ledger: Ledger) -> str:
    """Mount a disk in the folder, let a write fail, and unmount it; return what went wrong, or ""."""
    owner: Owner = None
    try:
        disk = FaultyDisk(PlainDisk(folder / "below", owner), folder=folder / "fuse", ledger=ledger)
        try:
            disk._tell(DiskError.READ_ONLY)
            with suppress(OSError):
                (disk.mounted / "probe").write_bytes(b"x")
            refused = disk.seen()["refused"]
        finally:
            disk.discard()
        shutil.rmtree(folder)
    except (UsageError, PreconditionError, OSError) as error:
        last = str(error).strip().splitlines()[-1]
        return f"FUSE: {last}; expected fuse3 (libfuse3) to be installed and /dev/fuse to be allowed"
    return "" if refused else "FUSE: a write succeeded on a disk that is read-only"
