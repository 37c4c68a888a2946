"""
Ask the log reader of a target, and no more once it has not returned.

What calls the reader is done in a thread that can be left behind. The first time that the reader neither yields
nor returns within LOG_CALL_S_MAX, that work is done again without it: to call the reader is an error then, and
what it should have read is unread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from harness import limits
from harness.late import LateError, Steps, apart
from harness.logs.names import shown
from harness.model import FencepostError, PreconditionError, TargetError

T = TypeVar("T")


class ReaderError(PreconditionError):
    """The log reader of a target raised an error or returned nonsense; the text names target and part."""


class _OfThread(threading.local):
    """Where a thread is in its calls of the reader."""

    def __init__(self) -> None:
        self.steps = Steps()


class Asked:
    """
    One target's reader.

    Args:
        give_up: Called with the error when the reader does what none may do.

    Attributes:
        late: How the reader did not return; "" as long as it did. Then it is asked no more.
        wrong: What it did first that no reader may do, such as not to return; "" as long as it did nothing so. A
            run is unknown then: to take a log for lost because its reader fails would accuse the system.
    """

    def __init__(self, target: str, give_up: Callable[[Exception], object] = lambda _: None) -> None:
        self.target = target
        self.late = ""
        self.wrong = ""
        self._give_up = give_up
        self._of_thread = _OfThread()

    def run(self, work: Callable[[], T]) -> T:
        """Do work that calls the reader; if a call does not return, do it again without asking the reader."""
        if not self.late:
            steps = Steps()

            def watched() -> T:
                self._of_thread.steps = steps
                return work()

            try:
                return apart(watched, limits.LOG_CALL_S_MAX, steps)
            except LateError as error:
                self.late = self.text(f"no answer within {limits.LOG_CALL_S_MAX:g} s", str(error))
                self._fail(self.late)
        return work()

    @property
    def steps(self) -> Steps:
        """Where this thread is in its calls of the reader."""
        return self._of_thread.steps

    def call(self, ask: Callable[[], T], expected: str) -> T:
        """Call the reader, which may take its time; raise what it raises."""
        steps = self._of_thread.steps
        steps.what = expected
        steps.began += 1
        try:
            return ask()
        finally:
            steps.ended = steps.began

    def text(self, found: str, expected: str) -> str:
        """Return what a reader did, for people."""
        return f"target {self.target}, logs: {found}; expected {expected}"

    def nonsense(self, found: str, expected: str) -> str:
        """Return, for people, what a reader did that none may do; the run is unknown."""
        text = self.text(found, expected)
        self._fail(text)
        return text

    def raised(self, error: Exception, expected: str) -> str:
        """Return what a reader raised, for people; the run is unknown if no reader may raise it."""
        text = f"{type(error).__name__}: {shown(str(error))}"
        if isinstance(error, FencepostError | OSError):
            return self.text(text, expected)
        return self.nonsense(text, expected)

    def _fail(self, text: str) -> None:
        if not self.wrong:
            self.wrong = text
            self._give_up(TargetError(text))
