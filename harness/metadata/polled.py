"""Metadata that are polled, as a file or a request: what lies between two looks is not known."""

from __future__ import annotations

from collections.abc import Callable

from harness import limits
from harness.metadata.shown import Shown
from harness.model import PreconditionError
from harness.target.metadata import Look, TargetRun


class Polled(Shown):
    """
    The metadata that a function shows. It is called every so often, in a thread of its own, and whenever somebody
    asks: each answer is from a look that began after the question.

    Args:
        look: returns all that there is now; None if it cannot be seen now, and what was seen last still stands.
            It returns within METADATA_LOOK_S_MAX.
    """

    exact = False

    def __init__(self, run: TargetRun, look: Callable[[], Look | None]) -> None:
        super().__init__(run, self._poll)
        self._see = look
        # How many looks began, how many ended, and the number that somebody waits for.
        self._began = 0
        self._ended = 0
        self._wanted = 0
        self.start()

    def _poll(self) -> None:
        while self._begins():
            found = self.asked(self._see)
            if found is not None:
                self.show(found)
            with self._changed:
                self._ended += 1
                self._changed.notify_all()

    def _begins(self) -> bool:
        """Wait until the next look is due; return False when the run is over."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or bool(self._problem) or self._wanted > self._began, limits.METADATA_POLL_S
            )
            self._began += 1
            return not (self._closed or self._problem)

    def refresh(self) -> None:
        """
        Wait for a look that begins now or later.

        Raises:
            PreconditionError: it does not end in time, or something is wrong with the part.
        """
        with self._changed:
            wanted = self._began + 1
            self._wanted = max(self._wanted, wanted)
            self._changed.notify_all()

            def over() -> bool:
                return self._ended >= wanted or self._closed or bool(self._problem)

            in_time = self._changed.wait_for(over, limits.METADATA_LOOK_S_MAX)
        if not in_time:
            self.fail(f"no answer within {limits.METADATA_LOOK_S_MAX:g} s; expected a look to end")
        self.require()
        if self._closed:
            raise PreconditionError(f"target {self._run.target}, metadata: asked after the end of the run")
