"""How the harness's own session dials ZooKeeper's servers: none for long, since another one may answer."""

from __future__ import annotations

from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

# kazoo waits for a whole session timeout. Nobody answers at the address of a container that is gone, not even to
# refuse; a process that is frozen or down is accepted or refused at once.
DIAL_S_MAX: Final = 2.0


def dialling_soon() -> SequentialThreadingHandler:
    """Return kazoo's threads, with connections that are given up after DIAL_S_MAX if nobody accepts them."""
    handler = SequentialThreadingHandler()
    dial = handler.create_connection

    def dial_soon(*args: Any, timeout: float | None = None, **more: Any) -> Any:
        connection = dial(*args, timeout=DIAL_S_MAX, **more)
        connection.settimeout(timeout)
        return connection

    handler.create_connection = dial_soon
    return handler
