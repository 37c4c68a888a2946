"""High watermarks that fall, op by op: at a leader by its own events, and in what clients' reads were told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from checkers.live.replicas import Step
from harness.events import HighWatermark, Leader
from harness.model import Op


class Fall(NamedTuple):
    """A high watermark that fell: what it is, what it was, and the index of the op that told that."""

    now: int
    before: int
    op: int


def fall_of_leader(step: Step) -> Fall | None:
    """Return the fall if a process says that it leads with a lower high watermark than it had while it led."""
    high, old = step.after.high_watermark, step.before.high_watermark
    if step.before.role != "leader" or not isinstance(step.event, HighWatermark | Leader):
        return None
    return Fall(high, old, step.told) if high is not None and old is not None and high < old else None


@dataclass(slots=True)
class ToldToClients:
    """The highest high watermark that a read was told since the last change, of one partition."""

    _high: int = -1
    _op: int = -1

    def step(self, op: Op, high: int, invoked: int, changed: int) -> Fall | None:
        """
        Follow a read that was told a high watermark.

        Args:
            op: the read's end.
            high: what it was told.
            invoked: the index of its beginning.
            changed: the index of the last op that may lawfully have lowered it.
        """
        calm = changed <= self._op
        if calm and high < self._high:
            return Fall(high, self._high, self._op) if invoked > self._op else None
        if not calm or high > self._high:
            self._high, self._op = high, op.index
        return None
