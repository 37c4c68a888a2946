"""A record's digest is that of its content, and its value is text."""

from __future__ import annotations

import struct
from hashlib import blake2b

import pytest

from harness.logs.record import Record

PLAIN = Record(offset=7, timestamp=1, key=b"k", value=b"v", headers=((b"h", b"x"),))


def test_digest_is_what_stored_histories_hold() -> None:
    spelled = struct.pack(">qi1si1si1si1s", 1, 1, b"k", 1, b"v", 1, b"h", 1, b"x")
    assert blake2b(spelled, digest_size=8).hexdigest() == PLAIN.digest
    assert "f6fd58d5cffea9d7" == PLAIN.digest


@pytest.mark.parametrize(
    "other",
    [
        Record(offset=7, timestamp=2, key=b"k", value=b"v", headers=((b"h", b"x"),)),
        Record(offset=7, timestamp=1, key=b"kv", value=b"", headers=((b"h", b"x"),)),
        Record(offset=7, timestamp=1, key=None, value=b"v", headers=((b"h", b"x"),)),
        Record(offset=7, timestamp=1, key=b"k", value=b"w", headers=((b"h", b"x"),)),
        Record(offset=7, timestamp=1, key=b"k", value=b"v", headers=((b"h", None),)),
        Record(offset=7, timestamp=1, key=b"k", value=b"v"),
    ],
)
def test_digest_differs_when_any_part_of_the_content_does(other: Record) -> None:
    assert PLAIN.digest != other.digest


def test_digest_is_equal_when_the_offset_alone_differs() -> None:
    assert PLAIN.digest == Record(offset=8, timestamp=1, key=b"k", value=b"v", headers=((b"h", b"x"),)).digest


@pytest.mark.parametrize(
    ("value", "text"), [(b"m1", "m1"), ("é".encode(), "é"), (b"\xff\x00", "hex:ff00"), (b"", ""), (None, None)]
)
def test_value_text_is_utf_8_else_hex_else_none(value: bytes | None, text: str | None) -> None:
    assert text == Record(offset=0, timestamp=0, key=None, value=value).value_text
