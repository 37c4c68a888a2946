"""Real time, as the cluster of real machines waits in it; the simulator has a time of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harness.cleanup import process

T = TypeVar("T")


class RealTime:
    """
    Real time: `until` sleeps, and `together` uses threads.

    Args:
        require: Called while something is waited for; raises PreconditionError if it may never come.
    """

    def __init__(self, require: Callable[[], None] = lambda: None) -> None:
        self._require = require

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds; return False if it does not within the time."""

        def holds() -> bool:
            self._require()
            return condition()

        return process.until(holds, seconds)

    def together(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Call `act` for all names at once, each in a thread; return the results in order."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(act, names))
