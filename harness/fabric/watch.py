"""
Interrupts a thread in a call that lasts too long, and nowhere else.

A target's own code runs in the fabric's thread, through which every frame of a run passes. If it never returned,
no frame would, and no rule could be lifted. The exception is raised in the thread at its next step in Python; a
call into C that never returns cannot be ended so.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

# More steps of the thread than it takes until an exception that was set from outside is raised in it.
_STEPS: Final = 1000


class LateError(BaseException):
    """A call lasted too long. No `except Exception` of what was called hides it."""


class Watch:
    """
    Watches the calls of one thread, one at a time.

    Args:
        within_s: how long a call may last, in seconds; it is interrupted after twice that at the latest.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._lock = threading.Lock()
        self._calls = 0
        self._busy = False
        self._fired = False
        self._over = threading.Event()
        self._thread_id = 0
        self._watching: threading.Thread | None = None

    def start(self, thread_id: int) -> None:
        """Watch the thread with this id from now on."""
        self._thread_id = thread_id
        self._watching = threading.Thread(target=self._watch, name="watch of the fabric", daemon=True)
        self._watching.start()

    def close(self) -> None:
        """Watch no more; safe to call twice."""
        self._over.set()
        if self._watching is not None:
            self._watching.join()

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._busy

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call the function; raise what it raises, and LateError if it lasts too long."""
        try:
            self._calls += 1
            self._busy = True
            try:
                return function(*args)
            except LateError:
                self._fired = False
                raise
            finally:
                self._end()
        finally:
            self._busy = self._fired = False

    def _end(self) -> None:
        with self._lock:  # after it nothing is set any more
            self._busy = False
        if self._fired:
            for _ in range(_STEPS):
                pass  # what was set is raised here, unless what was called has caught it
            raise LateError

    def _watch(self) -> None:
        seen = -1
        while not self._over.wait(self._within_s):
            with self._lock:
                if self._busy and self._calls == seen:
                    self._fired = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self._thread_id), ctypes.py_object(LateError)
                    )
            seen = self._calls
