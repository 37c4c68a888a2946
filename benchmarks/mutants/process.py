"""
Run one broker with a bug in its codec:  python -m benchmarks.mutants.process MUTANT --config FILE

The broker's program does the rest: it has never heard of the bug.
"""

from __future__ import annotations

import runpy
import sys

from benchmarks.mutants.apply import install
from benchmarks.mutants.wire import MUTANTS_OF_THE_CODEC

PROGRAM = "targets.broker"


def main() -> None:
    """Install the mutant, and be the broker."""
    name = sys.argv.pop(1)
    install(MUTANTS_OF_THE_CODEC[name])
    runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
