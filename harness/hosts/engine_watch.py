"""
Notices that the Docker engine of a run has gone, also if it is back a moment later.

An engine that stops may end its containers, and one that comes back has others at work than the run knows of. So
whatever the run sees afterwards proves nothing about its brokers.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from harness.cleanup import engine
from harness.model import PreconditionError


class EngineWatch:
    """
    One connection to the engine, for its events, that ends only with the engine; any thread may call its methods.

    Attributes:
        lost: Why the engine is lost, "" if it is not; never "" again.
    """

    def __init__(self, client: Any, label: str) -> None:
        """Connect; the events are those of one run, and nobody reads them."""
        self.lost = ""
        self._closed = False
        with engine.answering("watch the engine"):
            self._events = client.events(filters={"label": label})
        self._thread = threading.Thread(target=self._follow, name="engine-watch", daemon=True)
        self._thread.start()

    def require(self, what: str) -> None:
        """Raise PreconditionError, which says what was to be done, if the engine was ever gone."""
        if self.lost:
            raise PreconditionError(f"{what}: {self.lost}; expected it until the end of the run")

    def require_now(self, what: str) -> None:
        """Raise PreconditionError if the engine takes no new connection: one that stops ends its containers."""
        self.require(what)
        try:
            engine.dial()
        except OSError as error:
            raise PreconditionError(
                f"{what}: {engine.said_by(error)}; expected it to answer until the end of the run"
            ) from error

    def close(self) -> str:
        """End the connection; return why the engine is lost, "" if it is not."""
        self._closed = True
        # The thread may have ended the connection meanwhile, and then it has no socket any more.
        with suppress(OSError, AttributeError):
            self._events.close()
        self._thread.join()
        return self.lost

    def _follow(self) -> None:
        try:
            for _ in self._events:
                pass
        except Exception as error:  # however the connection ends: the library has no error of its own for it
            self._lose(str(error) or type(error).__name__)
        else:
            self._lose("the connection has ended")

    def _lose(self, why: str) -> None:
        if not self._closed:
            self.lost = f"engine {engine.address()}: lost: {why}"
