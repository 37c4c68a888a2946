"""
Guards the links against the wire of a target: whatever it does, bytes go on, in bounded time and memory.

The first time that a wire raises, lasts too long, or answers what no wire can, it is asked no more: all bytes
pass unread from then on, and the history has an event that makes the run unknown and names the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harness.events import Event, OfLinkAndPartition, OpType
from harness.events.codec import MisfitError, decode, encode, key_of
from harness.fabric.limits import (
    EVENTS_OF_FRAME_MAX,
    FRAME_BYTES_MAX,
    HEAD_BYTES,
    OFFSETS_OF_FRAME_MAX,
    UNSPLIT_CONNECTIONS_MAX,
)
from harness.late import LateError, Watch
from harness.target.wire import Direction, Message, NotFramedError, Reading, Seen
from harness.unseen_value import text_of

T = TypeVar("T")


class Guard:
    """
    The calls of one target's wire in one run; all of them are made in the fabric's thread.

    Args:
        note: Records that the wire failed, and how; called once at most.

    Attributes:
        failure: What the wire did wrong, "target NAME, wire: …"; "" as long as it did nothing wrong.
    """

    def __init__(self, target: str, watch: Watch, note: Callable[[str], None]) -> None:
        self.failure = ""
        self._note = note
        self._target = target
        self._watch = watch
        # Whether it ever found a frame; else, on how many connections that ended it found none in what came.
        self._splits = False
        self._unsplit = 0

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """
        Call a function of the wire.

        Raises:
            NotFramedError: The wire says so, or has failed, now or before.
        """
        if self.failure:
            raise NotFramedError(self.failure)
        try:
            return self._watch.call(function, *args)
        except NotFramedError:
            raise
        except LateError:
            raise self.failed(f"{_name(function)} did not return in time") from None
        except Exception as error:
            raise self.failed(f"{_name(function)} raised {text_of(error)}") from error

    def size(self, reading: Reading, direction: Direction, buffer: bytes, offset: int) -> int:
        """Return the size of the frame at the offset, 0 if more bytes are needed; raise NotFramedError."""
        found = self.call(reading.size, buffer, offset, direction)
        if type(found) is not int or not 0 <= found <= FRAME_BYTES_MAX:
            text = f"size said {text_of(found)} of a frame; expected a number from 0 to {FRAME_BYTES_MAX}"
            raise self.failed(text)
        if not found and len(buffer) - offset >= HEAD_BYTES:
            text = f"size said 0 of {len(buffer) - offset} bytes; expected to find a frame in {HEAD_BYTES}"
            raise self.failed(text)
        return found

    def read(self, reading: Reading, frame: bytes, direction: Direction) -> Message:
        """Return what the frame says; raise NotFramedError."""
        self._splits = True
        found = self.call(reading.read, frame, direction)
        if wrong := _wrong(found):
            raise self.failed(f"read said {wrong}")
        return found

    def unsplit(self, data: bytes, *, last: bool = False) -> None:
        """
        Hear of bytes in which the wire found no frame until their connection ended.

        One connection may end within a frame. A wire that found no frame of any connection splits nothing.

        Args:
            last: Whether no more connections come.
        """
        if self._splits or self.failure or not data:
            return
        self._unsplit += 1
        if last or self._unsplit >= UNSPLIT_CONNECTIONS_MAX:
            self.failed(f"size said 0 of all that came, such as {text_of(data)}; expected a frame")

    def failed(self, text: str) -> NotFramedError:
        """Ask the wire no more, and return the error that says so."""
        self.failure = f"target {self._target}, wire: {text}"
        self._note(self.failure)
        return NotFramedError(self.failure)


def _wrong(message: object) -> str:
    """Return what is wrong with a message, and what was expected; "" for nothing."""
    if not isinstance(message, Message) or not isinstance(message.seen, Seen):
        return f"{text_of(message)}; expected a Message"
    seen = message.seen
    link = seen.link
    if not (isinstance(link, tuple) and len(link) == 2 and all(isinstance(end, str) for end in link)):
        return f"link {text_of(link)}; expected two names"
    if not isinstance(seen.api, str) or not isinstance(seen.direction, Direction):
        return f"{text_of(seen.api)}, {text_of(seen.direction)}; expected a word and a Direction"
    if type(seen.version) is not int or type(seen.correlation) is not int:
        return f"version {text_of(seen.version)}, number {text_of(seen.correlation)}; expected two numbers"
    if not isinstance(seen.offsets, tuple) or len(seen.offsets) > OFFSETS_OF_FRAME_MAX:
        return f"{type(seen.offsets).__name__} of offsets; expected {OFFSETS_OF_FRAME_MAX} in a tuple at most"
    for each in seen.offsets:
        if not (isinstance(each, tuple) and len(each) == 2 and type(each[0]) is str and type(each[1]) is int):
            return f"offset {text_of(each)}; expected a topic and a number"
    if not isinstance(message.events, tuple) or len(message.events) > EVENTS_OF_FRAME_MAX:
        return f"{type(message.events).__name__} of events; expected {EVENTS_OF_FRAME_MAX} in a tuple at most"
    if not isinstance(message.error, str):
        return f"error {text_of(message.error)}; expected a text"
    return next((wrong for event in message.events if (wrong := _misfit(event))), "")


def _misfit(event: Event) -> str:
    if not isinstance(event, OfLinkAndPartition):
        return f"event {text_of(event)}; expected one about a partition, seen on a link"
    try:
        decode(*key_of(event), OpType.INFO, encode(event))
    except (MisfitError, AttributeError, KeyError, TypeError, ValueError) as error:
        return f"event {type(event).__name__}: {text_of(error)}"
    return ""


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))
