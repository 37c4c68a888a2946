"""Events as (f, value), as the history has them, for tests that compare what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.events import Event
from harness.events.codec import encode, key_of


def as_recorded(event: Event) -> tuple[str, dict[str, Any]]:
    """The f and the value of the op that an event becomes."""
    return key_of(event)[1], encode(event)


def into(record: list[tuple[str, dict[str, Any]]]) -> Callable[[Event], None]:
    """What keeps events in that list as they would be recorded."""
    return lambda event: record.append(as_recorded(event))
