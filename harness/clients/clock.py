"""The time that clients give their records, and the time that is left to them."""

from __future__ import annotations

import time
from typing import Final

_NS_PER_MS: Final = 1_000_000


def wall_ms() -> int:
    """Return now, as records have it: in milliseconds since 1970."""
    return time.time_ns() // _NS_PER_MS


def left(deadline: float) -> float:
    """Return the seconds until a monotonic deadline; always above 0, since sockets treat 0 differently."""
    return max(deadline - time.monotonic(), 0.001)
