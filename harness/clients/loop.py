"""An event loop in a thread of its own, for clients that stand on a library with coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own, so that the library works on between two calls."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"loop {name}", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def end(self, last: Coroutine[Any, Any, object], within_s: float) -> None:
        """Run a last coroutine, such as the end of a connection, for no longer than this, and close the loop."""
        try:
            self.run(asyncio.wait_for(last, within_s))
        except Exception:
            pass  # what is under way may be lost
        finally:
            self.close()

    def close(self) -> None:
        """End the loop and its thread; what still runs in it is cancelled."""
        self.run(_cancelled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancelled() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
