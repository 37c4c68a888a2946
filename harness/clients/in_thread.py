"""A produce in the background, for clients whose calls block."""

from __future__ import annotations

import threading
from collections.abc import Callable

from harness.model import PreconditionError


class InThread:
    """
    A produce in a thread of its own, for clients whose calls block.

    An error of the call is raised by `result`.
    """

    def __init__(self, call: Callable[[], list[int]]) -> None:
        self._offsets: list[int] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), name="produce", daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], list[int]]) -> None:
        try:
            self._offsets = call()
        except BaseException as error:
            self._error = error

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return not self._thread.is_alive()

    def result(self) -> list[int]:
        """Return the call's result or raise its error; raise PreconditionError while it is under way."""
        if not self.done:
            raise PreconditionError("a produce is still under way; expected its outcome")
        if self._error is not None:
            raise self._error
        return self._offsets
