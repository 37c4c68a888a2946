"""The CPU time of processes from the kernel, and the load average of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
# Indexes into the fields after the name: utime and stime are fields 14 and 15 of /proc/PID/stat (proc(5)).
_UTIME: Final = 11
_PPID: Final = 1


def cpu_seconds(pids: Iterable[int]) -> float:
    """
    Return the CPU time in seconds, user and system, of these processes since their start.

    Raises:
        FileNotFoundError: one of them is gone; a sum without it would be wrong.
    """
    ticks = 0
    for pid in pids:
        fields = _fields(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
        ticks += int(fields[_UTIME]) + int(fields[_UTIME + 1])
    return ticks / _TICKS_PER_S


def child_with(word: str) -> int | None:
    """Return the pid of this process's child whose command line contains the text; None if there is none."""
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
            command = Path(f"/proc/{name}/cmdline").read_bytes().decode("utf-8", errors="replace")
        except OSError:
            continue
        if int(_fields(stat)[_PPID]) == os.getpid() and word in command:
            return int(name)
    return None


def load_average() -> float:
    """Return the load average of the last minute, which includes our own processes."""
    return os.getloadavg()[0]


def _fields(stat: str) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on; the second, the name, can have blanks."""
    return stat.rpartition(")")[2].split()
