"""Processes that may not reserve much memory, and what a process had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
# Far less than what a count of four bytes can announce, far more than any message of the tests needs.
MEMORY_BYTES_MAX: Final = 2 << 30


def printed_with_little_memory(code: str) -> str:
    """Return what the code prints; it must end without an error."""
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES_MAX}, {MEMORY_BYTES_MAX}))\n"
    ended = subprocess.run(
        [sys.executable, "-c", limit + code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (0, "") == (ended.returncode, ended.stderr[-2000:])
    return ended.stdout


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process had resident, 0 if it has ended.

    The kernel's own record of it: ru_maxrss of a child begins with what its parent had when it was forked.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return 0
    _, found, rest = status.partition("VmHWM:")
    return int(rest.split()[0]) * 1024 if found else 0
