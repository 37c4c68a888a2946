"""An event loop in its own thread, and the calls by which other threads use it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

from harness.fabric.limits import CALL_S_MAX, CLOSE_S_MAX

P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """
    Runs functions and coroutines in one thread, and waits for their results.

    Raises:
        Exception: Any that the function raises.
        RuntimeError: A callback in the thread has failed earlier; otherwise its failure would be lost.
        TimeoutError: The thread did not finish the call within CALL_S_MAX.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._note_failure)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    @property
    def id(self) -> int:
        """The thread's id, as the interpreter knows it."""
        assert self._thread.ident is not None, "the thread runs from the start on"
        return self._thread.ident

    def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread and return its result; run it directly if this is the thread."""
        self.raise_failure()
        if threading.current_thread() is self._thread:
            return function()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return future.result(CALL_S_MAX)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(CALL_S_MAX)

    def guard(self, function: Callable[P, T]) -> Callable[P, T]:
        """
        Wrap a function that the thread's callbacks call, so that its failure is never lost.

        asyncio treats an OSError (a full disk) in a protocol's callback as a broken connection, and hides it.
        """

        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                self._failure = self._failure or error
                raise

        return guarded

    def end(self, last: Coroutine[Any, Any, None]) -> None:
        """Run a last coroutine, then end the thread and close the loop, even if the coroutine failed."""
        try:
            asyncio.run_coroutine_threadsafe(last, self.loop).result(CLOSE_S_MAX)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(CLOSE_S_MAX)
            self.loop.close()
        self.raise_failure()

    def raise_failure(self) -> None:
        """Raise RuntimeError if a callback has failed."""
        if self._failure is not None:
            raise RuntimeError(f"{self._thread.name}: its thread failed: {self._failure!r}") from self._failure

    def _note_failure(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failure = self._failure or context.get("exception") or RuntimeError(context["message"])
