"""
A node's own clocks: the monotonic one shows another time than the world's, and may run faster or slower.

All that a node plans by its clock happens when that clock shows the time. A core compares times of one clock
alone, so a cluster must work with any; lags, waits and retries are then measured differently on each node.
The core gets the wall clock's time with each event, and compares it with timestamps of records, which are their
producers': for retention, and for how long a tombstone stays. Nothing else depends on it (docs/clocks.md).
Source:  POSIX, clock_gettime: the monotonic clock has no defined start; Kafka's Time.hiResClockMs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from targets.simulator.engine.clock import NS_PER_S, Clock, Event

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
        # From `_since_ns` of the world on, when it showed `_shown_ns`, it runs at `_rate`; and what was before.
        self._since_ns, self._shown_ns, self._rate = 0, drift.offset_ns, drift.rate
        self._before: list[tuple[int, int, int]] = []
        self._drift = drift

    @property
    def now_ns(self) -> int:  # type: ignore[override]
        """What the clock shows now."""
        return self.own(self._world.now_ns)

    def own(self, world_ns: int) -> int:
        """Return what the clock shows at a time of the world."""
        since_ns, shown_ns, rate = self._since_ns, self._shown_ns, self._rate
        if world_ns < since_ns:
            since_ns, shown_ns, rate = next(each for each in reversed(self._before) if each[0] <= world_ns)
        return shown_ns + (world_ns - since_ns) * rate // USUAL

    def at(self, at_ns: int, event: Event) -> None:
        """Plan an event for when the clock shows that time."""
        self._world.at(self._when(at_ns), event)

    def _when(self, at_ns: int) -> int:
        return self._since_ns - (self._shown_ns - at_ns) * USUAL // self._rate

    @property
    def gained_ns(self) -> int:
        """How far it is ahead of where it would be if it had never been set, in the world's seconds."""
        unset_ns = self._drift.offset_ns + self._world.now_ns * self._drift.rate // USUAL
        return (self.now_ns - unset_ns) * USUAL // self._drift.rate

    def go_on(self, *, ahead_ns: int, rate: int, planned: Callable[[Event], bool]) -> None:
        """
        Run on from what it shows, moved on by that much, at another rate.

        Args:
            rate: per mille of its own usual rate.
            planned: whether an event was planned by this clock; it happens when the clock shows its time.
        """
        own = self.own
        shown = {event_ns: own(event_ns) for event_ns in self._world.times(planned)}
        self._before.append((self._since_ns, self._shown_ns, self._rate))
        self._shown_ns, self._since_ns = self.now_ns + ahead_ns, self._world.now_ns
        self._rate = self._drift.rate * rate // USUAL
        self._world.replan(planned, {event_ns: self._when(at_ns) for event_ns, at_ns in shown.items()})


@dataclass(slots=True)
class WallClock:
    """A node's wall clock, beside a monotonic one that may have gained; times since the world began."""

    ahead_ns: int = 0
    frozen_ns: int | None = None

    def now_ns(self, world_ns: int, gained_ns: int) -> int:
        """Return what it shows."""
        return world_ns + gained_ns + self.ahead_ns if self.frozen_ns is None else self.frozen_ns


def random_clocks(seed: int, names: Iterable[str]) -> Mapping[str, Drift]:
    """Return the drift of each node's clock in a wide run; {} if all show the world's time."""
    chance = Random(f"clocks {seed}")
    if chance.random() >= DRIFT_SHARE:
        return {}
    return {
        name: Drift(offset_ns=chance.randrange(UPTIME_S_MAX * NS_PER_S), rate=chance.choice(RATES))
        for name in names
    }
