"""A call in the background, as a produce, for clients whose calls block."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from harness.model import PreconditionError

T = TypeVar("T")


class InThread(Generic[T]):
    """
    A call in a thread of its own.

    An error of the call is raised by `result`.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._found: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), name="call", daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], T]) -> None:
        try:
            self._found.append(call())
        except BaseException as error:
            self._error = error

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return not self._thread.is_alive()

    def result(self) -> T:
        """Return the call's result or raise its error; raise PreconditionError while it is under way."""
        if not self.done:
            raise PreconditionError("a produce is still under way; expected its outcome")
        if self._error is not None:
            raise self._error
        return self._found[0]
