"""
Ctrl-C, SIGTERM and SIGHUP end a command in order: work stops, then everything is taken down, undisturbed.

The first signal raises KeyboardInterrupt in the main thread, unless `shielded` puts it off; those that follow
are ignored, since taking down is under way by then. Work that makes things on the machine runs `apart`, in a
thread: a signal can then never tear an operation in two.
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
    """What came of the signals so far; the main thread's alone."""

    def __init__(self) -> None:
        self._shields = 0
        self._pending = False
        self._raised = False

    def catch(self) -> None:
        """Begin: take the signals, but those that whoever started us wants ignored (nohup)."""
        self._shields, self._pending, self._raised = 0, False, False
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def ignore(self) -> None:
        """End: all is down, and a last signal would only hide the exit code that says so."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Put a signal off until the block has ended."""
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
    Run a function in a thread of its own and wait for it; an interrupted wait leaves it to the thread.

    Raises:  what the function raised; KeyboardInterrupt at once, while the function goes on.
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
