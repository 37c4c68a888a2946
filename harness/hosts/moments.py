"""
What this machine's clocks show, and how far another's are ahead: it answers a question with what they show there.

It looked at them between two moments here, so that each distance has bounds. Nothing is assumed of its wall clock,
and its monotonic clock began when it was started.
Source:  F. Cristian: "Probabilistic clock synchronization", Distributed Computing 3, 1989.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from harness.clocks import NS_PER_S, Moment, Reading

# A wall clock that is further off cannot be told from one that a fault has set (harness/cluster/clock_fault.py).
WALL_OFF_S_MAX: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """By how much a machine's clocks are ahead of this one's, in nanoseconds: at least, and at most."""

    least: Moment
    most: Moment

    def why_wrong(self) -> str:
        """Return by how much the machine's wall clock surely is wrong, if that is too much for faults of it."""
        off_ns = max(self.least.wall_ns, -self.most.wall_ns)
        if off_ns <= WALL_OFF_S_MAX * NS_PER_S:
            return ""
        where = "ahead of" if self.least.wall_ns > 0 else "behind"
        return (
            f"its wall clock is {off_ns / NS_PER_S:.1f} s {where} this machine's; expected at most "
            f"{WALL_OFF_S_MAX:g} s: have both follow one NTP server"
        )

    def there(self, reading: Reading) -> Reading:
        """Return a reading with the moments that the machine's own clocks showed then, or a little earlier."""
        return replace(reading, asked=_sum(reading.asked, self.least), answered=_sum(reading.answered, self.least))


def look(ask: Callable[[], Moment]) -> Ahead:
    """Ask a machine for what its clocks show, and return how far they are ahead."""
    before = now()
    there = ask()
    after = now()
    return Ahead(least=_difference(there, after), most=_difference(there, before))


def now() -> Moment:
    """Return what this machine's clocks show."""
    return Moment(wall_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())


def _sum(one: Moment, other: Moment) -> Moment:
    return Moment(wall_ns=one.wall_ns + other.wall_ns, monotonic_ns=one.monotonic_ns + other.monotonic_ns)


def _difference(one: Moment, other: Moment) -> Moment:
    return Moment(wall_ns=one.wall_ns - other.wall_ns, monotonic_ns=one.monotonic_ns - other.monotonic_ns)
