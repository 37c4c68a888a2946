"""
Run a module under cProfile between two signals: `python -m benchmarks.profiled FILE MODULE ARGUMENTS`.

A profile of a process's whole life shows its start and what was made before, not what is measured. SIGUSR1 begins
a profile, SIGUSR2 ends it and writes FILE, which is whole once it is there. Its times are of the processor; of
several threads only the first is profiled.
"""

from __future__ import annotations

import cProfile
import os
import runpy
import signal
import sys
import time
from types import FrameType
from typing import Final

BEGIN: Final = signal.SIGUSR1
END: Final = signal.SIGUSR2


def main() -> None:
    """Run the module as if it had been started alone."""
    file, module, *arguments = sys.argv[1:]
    profile = cProfile.Profile(time.thread_time)

    def begin(_number: int, _frame: FrameType | None) -> None:
        profile.enable()

    def end(_number: int, _frame: FrameType | None) -> None:
        profile.disable()
        profile.dump_stats(f"{file}.part")
        os.replace(f"{file}.part", file)

    signal.signal(BEGIN, begin)
    signal.signal(END, end)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
