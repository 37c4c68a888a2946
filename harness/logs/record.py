"""
A record's content, and the digest that compares it among replicas, and with the record that its client sent.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from harness.keys import headers_of, key_bytes, text_in, value_bytes

# The timestamp of a record that has none, and its epoch.
NO_TIMESTAMP: Final = -1
NO_EPOCH: Final = -1
_DIGEST_BYTES: Final = 8
_NULL: Final = struct.pack(">i", -1)
_HEADERS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    One record as it is stored.

    Attributes:
        timestamp: In milliseconds since 1970; the batch's, if the broker set the time (LogAppendTime).
        epoch: The leader epoch that is stored with it; -1 if there is none, or its batch has it.
    """

    offset: int
    value: bytes | None
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    epoch: int = NO_EPOCH

    @property
    def digest(self) -> str:
        """16 hex digits over timestamp, key, value and headers; equal content has an equal digest."""
        spelled = [struct.pack(">q", self.timestamp)]
        for part in (self.key, self.value, *(part for header in self.headers for part in header)):
            # Lengths are hashed too, so that different records never produce the same bytes.
            spelled += (_NULL,) if part is None else (struct.pack(">i", len(part)), part)
        return blake2b(b"".join(spelled), digest_size=_DIGEST_BYTES).hexdigest()

    @property
    def value_text(self) -> str | None:
        """
        The value as text; as hex with the prefix `hex:` if it is not UTF-8.

        Of a tombstone it is the text that its client put into a header; None if null and without one.
        """
        return self.beginning(None)

    def beginning(self, characters_max: int | None) -> str | None:
        """Return the value's text, or only its beginning and `…` if it is longer than that; None: no limit."""
        value = text_in(self.headers) if self.value is None else self.value
        if value is None:
            return None
        if characters_max is None or len(value) <= characters_max:
            return _text(value)
        # A character has at most four bytes; the last one may be cut.
        cut = value[: 4 * characters_max]
        text = _text(cut[: len(cut) - _cut_bytes(cut)] if len(cut) < len(value) else cut)
        return text if len(text) <= characters_max else f"{text[:characters_max]}…"

    def about(self, characters_max: int) -> str:
        """Return all but the value, each part no longer than that: what differs if two values look alike."""
        headers = b", ".join(b"%b=%b" % (name, content or b"") for name, content in self.headers[:_HEADERS_SHOWN])
        size = "null" if self.value is None else f"{len(self.value)} bytes"
        return (
            f"key {_beginning(self.key, characters_max)}, timestamp {self.timestamp}, value {size}, "
            f"headers {_beginning(headers or None, characters_max)}, digest {self.digest}"
        )


def sent_digest(value: str, timestamp: int = NO_TIMESTAMP) -> str:
    """Return the digest of a record as a client sends it: this text with its key and timestamp."""
    headers = tuple((name.encode(), text) for name, text in headers_of(value))
    sent = Record(offset=0, timestamp=timestamp, key=key_bytes(value), value=value_bytes(value), headers=headers)
    return sent.digest


def _beginning(part: bytes | None, characters_max: int) -> str:
    if part is None:
        return "none"
    text = part[:characters_max].decode("utf-8", "backslashreplace")
    return f"{text!r}{'…' * (len(part) > characters_max)}"


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"hex:{value.hex()}"


def _cut_bytes(cut: bytes) -> int:
    """Return how many bytes at the end begin a character of UTF-8 that is not whole; 0 if none do."""
    try:
        cut.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(cut) - error.start if error.reason == "unexpected end of data" else 0
    return 0
