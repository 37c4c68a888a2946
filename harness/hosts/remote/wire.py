"""
Messages between the harness and an agent, over the standard input and output of one SSH command.

A message is one line, a JSON object, followed by as many bytes as its key `bytes` says.

    harness -> agent  {"id": 7, "do": "kill", "name": "A"}                     a call
                      {"answer": 2, "error": ""}                              the answer to what an agent asked
    agent -> harness  {"id": 7, "part": {...}, "bytes": 4096}, then the bytes a part of the answer, zero or more
                      {"id": 7, "done": {...}}                                the end of the answer
                      {"id": 7, "error": "...", "kind": "UsageError"}         or why there is none
                      {"ask": 2, "drain": "A"}                                what the agent needs to go on

Before its first message an agent prints MARK on a line of its own: a login shell may print something before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

MARK: Final = b"\x1efencepost agent\n"
# Of what is printed before the mark.
GREETING_BYTES_MAX: Final = 256 * 1024
LINE_BYTES_MAX: Final = 4 * 1024 * 1024
PAYLOAD_BYTES_MAX: Final = 1024 * 1024


class Source(Protocol):
    """What messages are read from: a pipe, or a channel's file."""

    def readline(self, size: int = ..., /) -> bytes:
        """Return a line, or less at the end."""

    def read(self, size: int = ..., /) -> bytes:
        """Return so many bytes, or less at the end."""


def pack(message: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """Return the bytes of a message."""
    assert len(payload) <= PAYLOAD_BYTES_MAX, f"payload of {len(payload)} bytes; expected {PAYLOAD_BYTES_MAX}"
    head = {**message, "bytes": len(payload)} if payload else message
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + payload


def receive(source: Source) -> tuple[dict[str, Any], bytes] | None:
    """
    Return the next message and its bytes; None at the end of the source, also in the middle of a message.

    Raises:
        ValueError: What came is no message.
    """
    line = source.readline(LINE_BYTES_MAX)
    if not line.endswith(b"\n"):
        if len(line) >= LINE_BYTES_MAX:
            raise ValueError(f"a line of more than {LINE_BYTES_MAX} bytes")
        return None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{line[:200]!r} is no JSON") from error
    size = message.get("bytes", 0) if isinstance(message, dict) else -1
    if not isinstance(size, int) or not 0 <= size <= PAYLOAD_BYTES_MAX:
        raise ValueError(f"{line[:200]!r} is no message")
    payload = source.read(size) if size else b""
    return (message, payload) if len(payload) == size else None


def skip_greeting(source: Source) -> bytes | None:
    """Read up to the mark; return None if it was found, else what came in its place."""
    said = b""
    while len(said) < GREETING_BYTES_MAX:
        line = source.readline(LINE_BYTES_MAX)
        if line == MARK:
            return None
        if not line:
            break
        said += line
    return said
