"""
Everything that runs of one state folder could leave on this machine, as one list of texts.

Each look asks the kernel, iptables or the engine, and none asks the ledger, which is under test.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.cleanup import chains, engine
from harness.cleanup.ledger import LINES, runs_dir
from harness.cleanup.process import TOKEN_VARIABLE
from harness.hosts.docker import HOME_LABEL, _home

SHARED = "/dev/shm"


@dataclass(slots=True, kw_only=True)
class Leftovers:
    """
    What is left of all runs of the current state folder.

    Attributes:
        folder: in which all results of the runs are.
        docker: whether the engine is asked too.
        tokens: of the runs that `remember` found.
        pids: of their processes.
    """

    folder: Path
    docker: bool = False
    tokens: set[str] = field(default_factory=set)
    pids: set[int] = field(default_factory=set)

    def remember(self) -> None:
        """Note the runs that have a ledger now, and their processes: later there is no ledger to read it from."""
        for path in runs_dir().iterdir():
            if path.is_dir():
                self.tokens.add(path.name)
                with suppress(FileNotFoundError):
                    for line in (path / LINES).read_text("utf-8").splitlines()[1:]:
                        with suppress(ValueError):  # the last one, cut short
                            self.pids.add(json.loads(line).get("pid", 0))
        self.pids |= {pid for pid, _ in self._processes()}

    def found(self) -> list[str]:
        """Return what is left, each with its kind as the first word."""
        return [
            *(f"mount {line}" for line in self._mounts()),
            *(f"loop {name}" for name in self._loops()),
            *(f"process {pid} {what}" for pid, what in self._processes()),
            *(f"clock {path}" for path in self._clocks()),
            *(f"chain {line}" for line in self._chains()),
            *(f"image {path}" for path in self._images()),
            *(f"ledger {path.name}" for path in runs_dir().iterdir() if path.is_dir()),
            *(self._of_engine() if self.docker else ()),
        ]

    def _mounts(self) -> Iterator[str]:
        for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
            if str(self.folder) in line or any(token in line for token in self.tokens):
                yield line

    def _images(self) -> Iterator[str]:
        # Walked so that a mount whose process is gone, itself a leftover, is no error here.
        for path, _, names in os.walk(self.folder):
            if "disk.img" in names:
                yield f"{path}/disk.img"

    def _loops(self) -> Iterator[str]:
        for node in Path("/sys/block").glob("loop*/loop/backing_file"):
            with suppress(OSError):
                backing = node.read_text("utf-8")
                if str(self.folder) in backing:
                    yield f"{node.parents[1].name} {backing.strip()}"

    def _processes(self) -> Iterator[tuple[int, str]]:
        """Yield each process that was given this state folder or a run's token, or that names the folder."""
        state = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}".encode()
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with suppress(OSError):
                given = Path(f"/proc/{pid}/environ").read_bytes()
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                marked = any(f"{TOKEN_VARIABLE}={token}.".encode() in given for token in self.tokens)
                if pid != os.getpid() and (state in given.split(b"\0") or marked or str(self.folder) in line):
                    yield pid, line

    def _clocks(self) -> Iterator[Path]:
        for name in os.listdir(SHARED):
            what, _, pid = name.rpartition("_")
            if what in ("faketime_shm", "sem.faketime_sem") and int(pid) in self.pids:
                yield Path(SHARED, name)

    def _chains(self) -> Iterator[str]:
        if chains.why_not():
            return
        listed = subprocess.run(["iptables", "-w", "-S"], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            if any(f"{chains.PREFIX}{token}" in line for token in self.tokens):
                yield line

    def _of_engine(self) -> Iterator[str]:
        client, ours = engine.connect(), f"{HOME_LABEL}={_home()}"
        try:
            for kind, found in (("container", engine.containers), ("network", engine.networks)):
                yield from (f"{kind} {each.name}" for each in found(client, ours))
        finally:
            client.close()
