"""
Ctrl-C, SIGTERM and SIGHUP end a command in order: work stops, then the clean-up runs to its end.

The first signal raises KeyboardInterrupt in the main thread, unless `shielded` delays it. Later signals are
ignored, since the clean-up has begun. Work that changes the machine runs `apart`, in a thread, so that a signal
cannot interrupt an operation halfway.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_S: Final = 0.05


class Interrupts:
    """Handles the signals; only the main thread may use it."""

    def __init__(self) -> None:
        self._shields = 0
        self._pending = False
        self._raised = False

    def catch(self) -> None:
        """Install the handlers, except for signals that the parent process set to be ignored (nohup)."""
        self._shields, self._pending, self._raised = 0, False, False
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def ignore(self) -> None:
        """Ignore all further signals: everything is down, and a signal would only hide the exit code."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Delay a signal until the block has ended."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if self._pending and not self._shields:
                self._raise()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._shields:
            self._pending = True
        else:
            self._raise()

    def _raise(self) -> None:
        self._pending = False
        if not self._raised:
            self._raised = True
            raise KeyboardInterrupt


INTERRUPTS: Final = Interrupts()


def apart(function: Callable[[], T], name: str) -> T:
    """
    Run a function in a separate thread, wait for it and return its result.

    Raises:
        BaseException: the exception of the function.
        KeyboardInterrupt: at once, while the function continues in its thread.
    """
    given: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            given.append(function())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
    if failed:
        raise failed[0]
    return given[0]
