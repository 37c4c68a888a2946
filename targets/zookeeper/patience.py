"""
How long the harness's own session waits for a server before it tries again, there or at another one.

kazoo waits for a whole session timeout, after which the session may be over. Yet nobody answers at the address of
a container that is gone, not even to refuse; and a server that is still starting may accept a connection, read
what a session says first, and never answer it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

# Longer than a server that serves takes for either on a busy machine.
WAIT_S_MAX: Final = 3.0


def impatient() -> SequentialThreadingHandler:
    """Return kazoo's threads, which wait no longer for a connection, nor for the rest of an answer on one."""
    handler = SequentialThreadingHandler()
    dial, select = handler.create_connection, handler.select

    def dial_soon(*args: Any, timeout: float | None = None, **more: Any) -> Any:
        connection = dial(*args, timeout=WAIT_S_MAX, **more)
        connection.settimeout(timeout)
        return connection

    def select_soon(readers: Sequence[Any], writers: Sequence[Any], others: Sequence[Any], timeout: float) -> Any:
        # An established session that has nothing to read waits for its own requests too, by a second reader.
        waits = min(timeout, WAIT_S_MAX) if len(readers) == 1 else timeout
        return select(readers, writers, others, waits)

    handler.create_connection, handler.select = dial_soon, select_soon
    return handler
