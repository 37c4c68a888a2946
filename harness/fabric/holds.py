"""The proxy's hold: any thread may wait for the frames that it stops."""

from __future__ import annotations

import threading

from harness.fabric.core import rules
from harness.fabric.core.rules import HeldFrame, Link, Pattern, Seen
from harness.fabric.limits import PASSED_KINDS_MAX
from harness.model import PreconditionError


class Hold(rules.Hold):
    """A hold that the fabric's thread updates and other threads wait on."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__(pattern)
        self._changed = threading.Condition()
        self._passed: dict[tuple[Link, str, str], tuple[int, int | None]] = {}

    def wait(self, timeout_s: float, *, count: int = 1) -> HeldFrame:
        """
        Block until the hold has stopped `count` frames, and return the last of them.

        Raises:
            PreconditionError: The hold did not stop so many in time, or is over. The text names the hold and
                the frames that passed it.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._held) >= count or self.over, timeout_s)
            if len(self._held) >= count:
                return self._held[count - 1]
            why = "it was released or dropped" if self.over else f"{timeout_s} s have passed"
            raise PreconditionError(
                f"hold of {self.pattern}: {len(self._held)} frames were held when {why}; "
                f"expected {count}. Passed by instead: {self._passed_text() or 'nothing'}"
            )

    def note_held(self, seen: Seen) -> HeldFrame:
        """Record a frame that the hold stopped, and wake waiting threads."""
        with self._changed:
            frame = super().note_held(seen)
            self._changed.notify_all()
        return frame

    def note_passed(self, seen: Seen) -> None:
        """Count a frame that passed the hold; only the first PASSED_KINDS_MAX kinds are kept."""
        kind = (seen.link, seen.api, seen.direction.value)
        offset = max((offset for _, offset in seen.offsets), default=None)
        with self._changed:
            if kind in self._passed or len(self._passed) < PASSED_KINDS_MAX:
                self._passed[kind] = (self._passed.get(kind, (0, None))[0] + 1, offset)

    def note_over(self) -> None:
        """Record that the hold was released or dropped, and wake waiting threads."""
        with self._changed:
            super().note_over()
            self._changed.notify_all()

    def _passed_text(self) -> str:
        return ", ".join(
            f"{count} x {api} {direction} on {link[0]}->{link[1]}"
            + ("" if offset is None else f" (last at offset {offset})")
            for (link, api, direction), (count, offset) in self._passed.items()
        )
