"""CPU time of processes, as the kernel counts it, and how busy the machine is besides."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
# Among the fields after the name: utime and stime, fields 14 and 15 of /proc/PID/stat (proc(5)).
_UTIME: Final = 11
_PPID: Final = 1


def cpu_seconds(pids: Iterable[int]) -> float:
    """
    Give the CPU time, user and system, that these processes have used since they began.

    Raises:  FileNotFoundError when one of them is gone: figures without it would be false.
    """
    ticks = 0
    for pid in pids:
        fields = _fields(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
        ticks += int(fields[_UTIME]) + int(fields[_UTIME + 1])
    return ticks / _TICKS_PER_S


def child_with(word: str) -> int | None:
    """Give the child of this process whose command line holds the text; None when there is none."""
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
    """Give how many processes wanted to run over the last minute, ours among them."""
    return os.getloadavg()[0]


def _fields(stat: str) -> list[str]:
    """Give /proc/PID/stat from its third field on; the second, the name, may hold blanks and brackets."""
    return stat.rpartition(")")[2].split()
