"""Events as the history records them, (f, value), for tests that compare recorded events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.events import Event
from harness.events.codec import encode, key_of


def as_recorded(event: Event) -> tuple[str, dict[str, Any]]:
    """Return the f and the value of the op that an event becomes."""
    return key_of(event)[1], encode(event)


def into(record: list[tuple[str, dict[str, Any]]]) -> Callable[[Event], None]:
    """Return a callback that appends each event to the list in its recorded form."""
    return lambda event: record.append(as_recorded(event))
