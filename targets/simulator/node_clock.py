"""
A node's own monotonic clock: it shows another time than the world's, and runs faster or slower.

All that a node plans by its clock happens when that clock shows the time. A core compares times of one clock
alone, so a cluster must work with any; lags, waits and retries are then measured differently on each node.
The core reads no wall clock: the timestamps of records are their producers'.
Source:  POSIX, clock_gettime: the monotonic clock has no defined start; Kafka's Time.hiResClockMs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from targets.simulator.clock import NS_PER_S, Clock, Event

# A rate of one second per second.
USUAL: Final = 1_000
# Per mille of the usual rate: a little off, as by a bad oscillator, or far off, as on a starved virtual machine.
RATES: Final = (USUAL, USUAL, 970, 1_030, 700, 1_500)
# How long a machine may have been up when the world begins.
UPTIME_S_MAX: Final = 30 * 24 * 3_600
# The share of wide runs whose nodes have clocks of their own.
DRIFT_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What a clock shows as the world begins, and how fast it runs, in per mille."""

    offset_ns: int = 0
    rate: int = USUAL


class NodeClock(Clock):
    """One node's clock in a world; its events and its random source are the world's."""

    def __init__(self, world: Clock, drift: Drift) -> None:
        self.random = world.random
        self._world = world
        self._drift = drift

    @property
    def now_ns(self) -> int:  # type: ignore[override]
        """What the clock shows now."""
        return self.own(self._world.now_ns)

    def own(self, world_ns: int) -> int:
        """Return what the clock shows at a time of the world."""
        return self._drift.offset_ns + world_ns * self._drift.rate // USUAL

    def at(self, at_ns: int, event: Event) -> None:
        """Plan an event for when the clock shows that time."""
        self._world.at(-((self._drift.offset_ns - at_ns) * USUAL // self._drift.rate), event)


def random_clocks(seed: int, names: Iterable[str]) -> Mapping[str, Drift]:
    """Return the drift of each node's clock in a wide run; {} if all show the world's time."""
    chance = Random(f"clocks {seed}")
    if chance.random() >= DRIFT_SHARE:
        return {}
    return {
        name: Drift(offset_ns=chance.randrange(UPTIME_S_MAX * NS_PER_S), rate=chance.choice(RATES))
        for name in names
    }
