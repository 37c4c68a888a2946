"""Run code in a process of its own that may not reserve much memory."""

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
