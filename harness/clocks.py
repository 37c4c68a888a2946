"""
What a node's clocks are set to, and what its process was seen to read of them: plain values, without any clock.

A machine has a wall clock, which may be set, and a monotonic clock, which may not. A fault is about the wall clock
alone, or about both, which then show the same changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NS_PER_S: Final = 1_000_000_000


class Which(StrEnum):
    """
    The clocks of a node that can be set: those of a process are decided as it starts.

    WALL: the wall clock alone. BOTH: the wall clock and the monotonic one, together.
    """

    WALL = "wall"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """
    What a node's clocks are set to.

    Attributes:
        which: WALL is set beside the right time; BOTH go on from what they show, since a monotonic clock never
            goes back.
        ahead_s: how far the wall clock is ahead of the right time, negative for behind; or how far both move on.
        rate: how fast both run from now on, in seconds per second; 1 for WALL.
        frozen: whether the wall clock stands still, at the right time plus `ahead_s`.
    """

    which: Which
    ahead_s: float = 0.0
    rate: float = 1.0
    frozen: bool = False


# The wall clock as it should be; and both clocks at the usual rate.
RIGHT: Final = {which: Setting(which=which) for which in Which}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What the harness's own clocks showed, in nanoseconds."""

    wall_ns: int
    monotonic_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    What a node's own process read of its clocks, in nanoseconds, at some moment between two of the harness.

    Attributes:
        asked: before the process read its clocks.
        answered: after it had.
    """

    wall_ns: int
    monotonic_ns: int
    asked: Moment
    answered: Moment

    @property
    def ahead_s(self) -> tuple[float, float]:
        """How far the wall clock is ahead of the harness's: at least, and at most."""
        least, most = self.wall_ns - self.answered.wall_ns, self.wall_ns - self.asked.wall_ns
        return least / NS_PER_S, most / NS_PER_S

    def passed_s(self, since: Reading) -> tuple[float, float]:
        """Return how much time has passed for the harness since an earlier reading: at least, and at most."""
        least = self.asked.monotonic_ns - since.answered.monotonic_ns
        most = self.answered.monotonic_ns - since.asked.monotonic_ns
        return least / NS_PER_S, most / NS_PER_S
