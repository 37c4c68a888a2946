"""
Whether the schedule of a run is to end, because a watch of its history saw a violation.

The watch is the live check (checkers/live), which the player passes in: the harness imports no checker.
"""

from __future__ import annotations

from typing import Protocol

from harness.events import ScheduleStopped
from harness.model import Op, PreconditionError


class Watch(Protocol):
    """Follows the ops of a run, in index order."""

    def step(self, op: Op) -> ScheduleStopped | None:
        """Follow the next op, at once and without recording; return a violation that it shows."""


class StoppedError(PreconditionError):
    """A step ended early because the schedule is to end."""


class Stop:
    """A listener of a history that keeps the first violation that a watch sees."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._error: Exception | None = None
        self._seen: ScheduleStopped | None = None

    def listen(self, op: Op) -> None:
        """Let the watch follow an op; called by the thread that records it, which an error here must not end."""
        if self._seen is None and self._error is None:
            try:
                self._seen = self._watch.step(op)
            except Exception as error:
                self._error = error

    @property
    def violation(self) -> ScheduleStopped | None:
        """
        The first violation so far, None if there is none; for the runner's thread.

        Raises:
            Exception: the watch failed, which is a bug of ours.
        """
        if self._error is not None:
            raise self._error
        return self._seen
