"""
What all hosts share: the run's folder and ledger, the disks of its nodes, and the check of the machine.

A host has one Site, which it opens first and closes last.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness import limits
from harness.ability import OF_DISKS, Ability
from harness.beneath import Folder, RefusedError
from harness.cleanup.ledger import Ledger, Reaped, reap
from harness.hosts.disks import Disk, Owner, PlainDisk, WatermarkDisk
from harness.hosts.faulty import FaultyDisk, why_no_fuse
from harness.hosts.loopfs import LoopDisk, why_not
from harness.launch import Launch
from harness.model import FencepostError, PreconditionError, UsageError

TIERS: Final = ("loop", "watermark")
# What every disk of a folder here can suffer.
_EVERY_DISK: Final = frozenset({Ability.LOST_DISKS, Ability.TORN_POWER_LOSS, Ability.BIT_ROT})
# What a loop filesystem can do wrong by itself, without FUSE over it.
_OF_LOOP: Final = frozenset({Ability.DISK_FULL, Ability.DISK_ERRORS, Ability.DISK_READ_ONLY})


class Site:
    """A run's folder, ledger and disks on this machine."""

    def __init__(self, run_dir: Path, *, power_tier: str | None, drain: Callable[[str], None] | None) -> None:
        """Check the power tier; nothing is created before open."""
        if power_tier is not None and power_tier not in TIERS:
            raise UsageError(f"power tier {power_tier!r}: expected one of {', '.join(TIERS)}")
        self.run_dir = run_dir.absolute()
        self.power_tier = power_tier or ""
        self.power_reason = "requested" if power_tier else ""
        self.reaped = Reaped()
        self._drain = drain
        self._ledger: Ledger | None = None
        self._mutex = threading.Lock()
        self._closed = False
        self._disks: dict[str, Disk] = {}

    @property
    def ledger(self) -> Ledger:
        """The run's ledger; raises UsageError before open."""
        if self._ledger is None:
            raise UsageError(f"host in {self.run_dir}: not open; expected open before any other call")
        return self._ledger

    def open(self) -> None:
        """Reap killed runs, check the free space, begin the ledger, and choose the power tier."""
        self.reaped = reap(again_s=limits.REAP_AGAIN_S_MIN)
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.run_dir = self.run_dir.resolve()
        require_free_space(self.run_dir)
        with self._mutex:
            if self._closed:
                raise UsageError(f"host in {self.run_dir}: closed while it was being opened; expected no close")
            self._ledger = Ledger.open(self.run_dir)
        if self.power_tier == "watermark":
            return
        reason = why_not(self.folder("trial"), self._ledger)
        if not reason:
            self.power_tier = "loop"
            self.power_reason = "loop filesystems can be mounted and shut down here"
        elif self.power_tier == "loop":
            self.close()
            raise UsageError(f"power tier loop: {reason}; expected root and loop devices")
        else:
            self.power_tier = "watermark"
            self.power_reason = f"no loop filesystems: {reason}"

    def folder(self, *names: str) -> Path:
        """Return the path of a folder of the run, without creating it."""
        return self.run_dir.joinpath(*names)

    def lacks(self, ability: Ability) -> str:
        """Return why nodes' disks here cannot do it, "" if they can."""
        if ability in _EVERY_DISK:
            return ""
        if ability is Ability.SERVICE_POWER_LOSS:
            return self._why_no_service_power_loss()
        if ability not in OF_DISKS:
            return f"nothing here does {ability}; expected host sim"
        if self.power_tier == "loop" and ability in _OF_LOOP:
            return ""
        return self._why_no_fuse()

    def _why_no_service_power_loss(self) -> str:
        """Return why a power loss would take what a service has flushed, "" if it would not: none reports it."""
        if self.power_tier == "loop":
            return ""
        return f"power tier watermark ({self.power_reason}) takes what a service has flushed; expected tier loop"

    def _why_no_fuse(self) -> str:
        return why_no_fuse(self.folder("fuse-trial"), self.ledger)

    def add_disk(self, name: str, *, disk: bool, owner: Owner = None, fails: bool = False) -> Disk:
        """
        Make a node's disk: of the run's power tier if `disk`, else one that cannot lose power.

        Args:
            fails: It shall be able to fail: the node sees it through FUSE, if that can be had here.
        """
        if name in self._disks:
            raise UsageError(f"node {name}: added before; expected a new name")
        folder = self.folder("nodes", name)
        made: Disk
        if not disk:
            made = PlainDisk(folder / "data", owner)
        elif self.power_tier == "loop":
            made = LoopDisk(folder=folder / "disk", ledger=self.ledger, owner=owner)
        else:
            made = WatermarkDisk(folder / "disk" / "data", folder / "disk" / "shadow", owner)
        if disk and fails and not self._why_no_fuse():
            made = FaultyDisk(made, folder=folder / "fuse", ledger=self.ledger)
        self._disks[name] = made
        return made

    def disk(self, name: str) -> Disk:
        """Return the node's disk."""
        if name not in self._disks:
            raise UsageError(f"node {name!r}: unknown; expected one of {', '.join(self._disks) or 'none'}")
        return self._disks[name]

    def drain(self, name: str) -> None:
        """Wait until the run has received all that a dead node sent."""
        if self._drain is not None:
            self._drain(name)

    def close(self) -> None:
        """
        Undo all through the ledger; safe to call twice, and while another thread is in open.

        Raises:
            FencepostError: Something could not be undone.
        """
        with self._mutex:
            self._closed = True
            ledger, self._ledger = self._ledger, None
        if ledger is None:
            return
        left = ledger.close()
        for disk in self._disks.values():
            if isinstance(disk, FaultyDisk):
                disk.forget()
        if left:
            raise FencepostError(
                f"host in {self.run_dir}: not all is undone, the next run tries again: {'; '.join(left)}"
            )


def require_free_space(folder: Path) -> None:
    """Raise UsageError if the folder's filesystem has less free space than a run needs."""
    free = shutil.disk_usage(folder).free
    if free < limits.FREE_BYTES_MIN:
        raise UsageError(
            f"disk of {folder}: {free // 2**20} MiB free; expected {limits.FREE_BYTES_MIN // 2**20} MiB; "
            "free some, or put the results elsewhere"
        )


def write_files(conf_dir: Path, launch: Launch) -> None:
    """Write the launch's files; raise UsageError for a name with a path."""
    conf_dir.mkdir(parents=True, exist_ok=True)
    try:
        with Folder.no_link(conf_dir) as conf:
            for name, text in launch.files.items():
                if Path(name).name != name:
                    raise UsageError(f"launch file {name!r}: expected a plain name")
                handle = conf.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
    except RefusedError as error:
        raise PreconditionError(f"{conf_dir}: {error.filename}: {error}") from error
