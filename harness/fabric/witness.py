"""
Records what frames say of the nodes, and what could not be read.

A frame is recorded when it is forwarded, not when it arrives: a held, dropped or cut frame has reached no node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from harness import events
from harness.events import Event
from harness.fabric.limits import UNREADABLE_KINDS_MAX
from harness.target.wire import Direction, Link, Message, Seen

Recorder: TypeAlias = Callable[[Event], None]


class Witness:
    """Records forwarded frames in the history; only the fabric's thread may call it."""

    def __init__(self, record: Recorder) -> None:
        self._record = record
        self._unreadable: set[tuple[Link, str, int, Direction]] = set()

    def passed(self, message: Message) -> None:
        """Record what a frame says, now that it is forwarded."""
        for event in message.events:
            self._record(event)

    def unreadable(self, seen: Seen, error: str) -> None:
        """Record, once for every kind of frame, that it could not be read; the frame passes anyway."""
        kind = (seen.link, seen.api, seen.version, seen.direction)
        if kind in self._unreadable or len(self._unreadable) >= UNREADABLE_KINDS_MAX:
            return
        self._unreadable.add(kind)
        self._record(
            events.FrameUnreadable(
                link=seen.link, api=seen.api, version=seen.version, direction=seen.direction.value, error=error
            )
        )
