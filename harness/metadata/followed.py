"""Metadata that are followed: an iterator yields what there is after each change, as of a watch or of a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from harness import limits
from harness.metadata.shown import Shown
from harness.target.metadata import Look, TargetRun

# In place of a look, at their end.
_OVER: Final = object()


class Followed(Shown):
    """
    The metadata that an iterator shows, in a thread of its own.

    Args:
        looks: yields all that there is: once at the beginning, within METADATA_LOOK_S_MAX, and after each change.
            It lasts as long as the run. If it yields None now and then while there is no change, it needs no end.
        end: lets a `looks` that waits for a change end.
    """

    exact = True

    def __init__(
        self, run: TargetRun, looks: Iterable[Look | None], end: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(run, self._follow, end)
        self._looks = looks
        self.start()

    def _follow(self) -> None:
        second, count = time.monotonic(), 0
        looks = self.asked(iter, self._looks)
        while (look := self.asked(next, looks, _OVER)) is not _OVER:
            if self._closed or self._problem:
                return
            if time.monotonic() - second >= 1:
                second, count = time.monotonic(), 0
            count += 1
            if count > limits.METADATA_LOOKS_PER_S_MAX:
                self.fail(f"more than {limits.METADATA_LOOKS_PER_S_MAX} looks in a second; expected one a change")
                return
            if look is not None:
                self.show(look)
        if not self._closed:
            self.fail("its looks ended; expected them to last as long as the run")

    def refresh(self) -> None:
        """Wait for the first look; raise PreconditionError if there is none in time, or something is wrong."""
        with self._changed:
            known = self._changed.wait_for(
                lambda: self._shows or self._closed or bool(self._problem), limits.METADATA_LOOK_S_MAX
            )
        if not known:
            self.fail(f"no look within {limits.METADATA_LOOK_S_MAX:g} s; expected one at the beginning")
        self.require()
