"""Whether this machine has the memory to judge a partition whole. This module imports nothing of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# What an op takes while it is judged, as measured: its row, its event, and what the rules derive from it.
OP_BYTES: Final = 3_000
# Of the free memory; other cores may judge at the same time.
_SHARE: Final = 2
_GIB: Final = 2**30

_MEMINFO: Final = Path("/proc/meminfo")
_GROUP: Final = Path("/sys/fs/cgroup")


def lacking(ops: int) -> str:
    """Return why so many ops are not judged together, "" if they are: the machine must keep some memory."""
    free = free_bytes()
    if free is None or ops * OP_BYTES <= free // _SHARE:
        return ""
    return (
        f"{ops:,} ops must be judged together and take about {ops * OP_BYTES / _GIB:.1f} GiB; expected half of "
        f"the free memory to be enough, of which there are {free / _GIB:.1f} GiB; check the run on a machine with "
        "more"
    )


def free_bytes() -> int | None:
    """Return the memory that is free to this process, None if that is not known here."""
    found = [each for each in (_of_machine(), _of_group()) if each is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_group() -> int | None:
    """Return what is left of the limit of a container, None without one."""
    try:
        most, now = (
            (_GROUP / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current")
        )
    except OSError:
        return None
    return None if most == "max" else max(0, int(most) - int(now))
