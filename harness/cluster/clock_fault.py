"""
Sets a node's clocks wrong and right again, and judges both by what the node's own process reads of its clocks.

Two readings, some time apart, say how far the wall clock is ahead and how fast each clock runs. Each reading lies
between two moments of the harness, so that every figure has bounds: on a busy machine they are further apart, and
then another reading is made. What is decided holds for both bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness.clocks import NS_PER_S, RIGHT, Reading, Setting, Which
from harness.cluster.cluster import Cluster
from harness.cluster.in_force import FaultInForce
from harness.effect import Effect
from harness.model import PreconditionError

# How long a clock is watched to see how fast it runs: far longer than the answer to a question takes.
WATCH_S: Final = 0.15
# The bounds of a rate are no further apart than this factor, or another reading is made.
WIDTH_MAX: Final = 1.5
# A clock within these is right. Every fault here goes far beyond.
RATE_LOW, RATE_HIGH = 0.6, 1.6
AHEAD_S_MAX: Final = 2.0
# How long a change may take to be seen.
SEEN_WITHIN_S: Final = 20.0

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """
    A node's clocks as its process read them: at least, and at most.

    Attributes:
        last: the later of the two readings.
        ahead_s: how far the wall clock is ahead of the harness's.
        wall, monotonic: how fast the clocks run, in seconds per second.
    """

    last: Reading
    ahead_s: Bounds
    wall: Bounds
    monotonic: Bounds

    def __str__(self) -> str:
        return (
            f"wall {_middle(self.ahead_s):+.2f} s, {_middle(self.wall):.2f} s/s, "
            f"monotonic {_middle(self.monotonic):.2f} s/s"
        )

    def shows(self, setting: Setting) -> bool:
        """Return True if the clocks surely are as they were set."""
        if setting.which is Which.BOTH:
            return _runs_at(setting.rate, self.monotonic) and _runs_at(setting.rate, self.wall)
        if not _runs_at(1.0, self.monotonic):
            return False
        if setting.frozen:
            return self.wall[1] < RATE_LOW
        least, most = (each - setting.ahead_s for each in self.ahead_s)
        return least > -AHEAD_S_MAX and most < AHEAD_S_MAX and _runs_at(1.0, self.wall)

    def is_wrong(self, which: Which) -> bool:
        """Return True if the clock that a fault set surely is not as all others are."""
        if which is Which.BOTH:
            return _runs_otherwise(self.monotonic)
        least, most = self.ahead_s
        return least > AHEAD_S_MAX or most < -AHEAD_S_MAX or _runs_otherwise(self.wall)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWrong:
    """What a clock fault needs to be undone: how the clocks were set, and what the process read before."""

    setting: Setting
    before: Reading


def _runs_at(rate: float, seen: Bounds) -> bool:
    return RATE_LOW * rate < seen[0] and seen[1] < RATE_HIGH * rate


def _runs_otherwise(seen: Bounds) -> bool:
    return seen[1] < RATE_LOW or seen[0] > RATE_HIGH


def look(cluster: Cluster, name: str) -> Seen:
    """
    Watch a node's clocks for a moment; return what its process read.

    Raises:
        PreconditionError: the machine is too busy for a reading whose bounds say anything.
    """
    first = cluster.host.clocks(name)
    found: list[Seen] = []

    def decided() -> bool:
        now = cluster.host.clocks(name)
        least, most = now.passed_s(first)
        if least < WATCH_S or most > WIDTH_MAX * least:
            return False
        wall, monotonic = now.wall_ns - first.wall_ns, now.monotonic_ns - first.monotonic_ns
        found.append(
            Seen(
                last=now,
                ahead_s=now.ahead_s,
                wall=_rate(wall / NS_PER_S, least, most),
                monotonic=_rate(monotonic / NS_PER_S, least, most),
            )
        )
        return True

    cluster.time.until(lambda: cluster.cancelled, WATCH_S)
    cluster.await_(decided, lambda: f"how fast the clocks of {name} run", SEEN_WITHIN_S)
    return found[-1]


def wrong(cluster: Cluster, name: str, fault: str, setting: Setting) -> str:
    """
    Set a node's clocks wrong, and wait until its process reads them so; return what was seen before and now.

    Raises:
        PreconditionError: the process went on reading what it read before.
    """
    before = look(cluster, name)
    cluster.host.set_clocks(name, setting, before.last)
    # Recorded here, because the clocks must be set right even if the change is not seen.
    handle = SetWrong(setting=setting, before=before.last)
    cluster.in_force.begin(FaultInForce(fault=fault, effect=Effect.CLOCK_WRONG, node=name, handle=handle))
    return f"{before} before; {_await(cluster, name, setting)} now"


def turns(cluster: Cluster, name: str, settings: Sequence[Setting]) -> int:
    """Set a node's wall clock to one setting after another, each read by its process; return how many."""
    for setting in settings:
        cluster.host.set_clocks(name, setting, cluster.host.clocks(name))
        _await_turn(cluster, name, setting)
    return len(settings)


def right(cluster: Cluster, name: str) -> str:
    """
    Set a node's clocks right, and wait until its process reads them so; return what was seen before and now.

    Both clocks run at the usual rate again, and keep what they gained or lost: a monotonic clock never goes back.

    Raises:
        PreconditionError: no clock of it is wrong, or its process still reads a wrong one.
    """
    found = cluster.in_force.of(name, Effect.CLOCK_WRONG)
    if found is None or not isinstance(found.handle, SetWrong):
        raise PreconditionError(f"clock-right {name}: no fault set its clocks; expected one in force")
    setting = RIGHT[found.handle.setting.which]
    if name in cluster.down:
        cluster.host.set_clocks(name, setting, found.handle.before)
        return "it is down; its next process starts with clocks that run as all others"
    before = look(cluster, name)
    cluster.host.set_clocks(name, setting, before.last)
    return f"{before} before; {_await(cluster, name, setting)} now"


def probe(cluster: Cluster, name: str) -> str:
    """Return what contradicts a wrong clock: what the process reads of it; "" while it reads a wrong one."""
    found = cluster.in_force.of(name, Effect.CLOCK_WRONG)
    if found is None or not isinstance(found.handle, SetWrong):
        return f"its clocks were not set: {look(cluster, name)}"
    if name in cluster.down:
        return "it is down, and reads no clock"
    seen = look(cluster, name)
    return "" if seen.is_wrong(found.handle.setting.which) else f"its clocks are right: {seen}"


def rate_of(cluster: Cluster, name: str) -> float:
    """Return the rate that a fault in force has set both clocks of a node to, 1 if none has."""
    found = cluster.in_force.of(name, Effect.CLOCK_WRONG)
    return found.handle.setting.rate if found is not None and isinstance(found.handle, SetWrong) else 1.0


def moved_on_s(before: Reading, now: Reading, rate: float) -> Bounds:
    """Return how much further a monotonic clock of that rate has moved between two readings than it ran."""
    least, most = (rate * passed for passed in now.passed_s(before))
    moved = (now.monotonic_ns - before.monotonic_ns) / NS_PER_S
    return moved - most, moved - least


def _await(cluster: Cluster, name: str, setting: Setting) -> Seen:
    found: list[Seen] = []

    def seen() -> bool:
        found.append(look(cluster, name))
        return found[-1].shows(setting)

    cluster.await_(
        seen, lambda: f"{name}'s clocks as they were set ({setting}); it reads {found[-1]}", SEEN_WITHIN_S
    )
    return found[-1]


def _await_turn(cluster: Cluster, name: str, setting: Setting) -> None:
    def read() -> bool:
        least, most = (each - setting.ahead_s for each in cluster.host.clocks(name).ahead_s)
        return least > -AHEAD_S_MAX and most < AHEAD_S_MAX

    cluster.await_(read, lambda: f"{name}'s wall clock {setting.ahead_s:g} s ahead", SEEN_WITHIN_S)


def _rate(moved_s: float, least: float, most: float) -> Bounds:
    """Return the bounds of a clock's rate that moved while so much time passed, at least and at most."""
    return min(moved_s / least, moved_s / most), max(moved_s / least, moved_s / most)


def _middle(bounds: Bounds) -> float:
    return sum(bounds) / 2
