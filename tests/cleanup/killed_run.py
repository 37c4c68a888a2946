"""
Plays `fencepost run`, counts the entries of ledgers and the lines of the history, and tells of the one it is to.

    python -m tests.cleanup.killed_run OF NUMBER ARGUMENTS...

OF is `ledger` or `history`. After its line NUMBER, which is written by then, it prints `now` and goes on. Lines of
the history are those of the runner and of faults: every run has about as many, and others come by the thousand. A
run that ends before prints `now` at its end, and waits. With a NUMBER of 0 it prints both counts at its end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from harness.cleanup.ledger import Ledger
from harness.cli.main import main
from harness.history.file import History
from harness.model import Op, Source

Write = Callable[[Any, Any], None]

NOW = b"\nnow\n"
COUNTED: Counter[str] = Counter()
_mutex = threading.Lock()


def is_counted(line: Any) -> bool:
    """Return True for an entry of a ledger, and for a history's line of the runner or of a fault."""
    return not isinstance(line, Op) or line.source in (Source.RUNNER, Source.NEMESIS)


def counting(name: str, at: int, write: Write) -> Write:
    """Return the method that also counts its calls, and prints `now` after that one."""

    def counted(self: Any, line: Any) -> None:
        write(self, line)
        with _mutex:
            COUNTED[name] += is_counted(line)
            if is_counted(line) and COUNTED[name] == at:
                os.write(1, NOW)

    return counted


def play(of: str, number: int, arguments: list[str]) -> int:
    """Play the run; return its exit code."""
    changed: Any
    for name, changed in (("ledger", Ledger), ("history", History)):
        changed._write = counting(name, number if name == of else 0, changed._write)
    code = main(arguments)
    if COUNTED[of] < number:
        os.write(1, NOW)
        signal.pause()
    print(f"\ncounted {COUNTED['ledger']} {COUNTED['history']}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(play(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
