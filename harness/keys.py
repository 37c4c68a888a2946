"""
Keys of records: a value of a keyed workload says its key itself, `k2/m1.0`, so that nobody has to be told.

Every client that sends such a value sends its key with it; every other value has none. `k2/~m1.0` is a tombstone:
it is sent with its key and without a value, and a header has the text by which the record is known nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from zlib import crc32

_KEYED: Final = re.compile(r"k[0-9]+(?=/)")
_TOMBSTONE: Final = re.compile(r"k[0-9]+/~")
# The name of a tombstone's header.
TEXT_HEADER: Final = "fencepost"
_SHARES: Final = 1_000


def keyed(value: str, keys: int, tombstones: float = 0.0) -> str:
    """
    Return a value with one of so many keys, always the same one; 0 keys: as it is.

    Args:
        tombstones: the share of values that are one instead, always the same ones.
    """
    if not keys:
        return value
    deletes = crc32(f"tombstone {value}".encode()) % _SHARES < tombstones * _SHARES
    return f"k{crc32(value.encode()) % keys}/{'~' if deletes else ''}{value}"


@lru_cache(maxsize=65536)
def key_of(value: str) -> str | None:
    """Return the key that a value says, None if it says none."""
    found = _KEYED.match(value)
    return found.group() if found else None


def key_bytes(value: str) -> bytes | None:
    """Return the key that a record with this value is sent with."""
    key = key_of(value)
    return None if key is None else key.encode()


@lru_cache(maxsize=65536)
def is_tombstone(value: str) -> bool:
    """Return True if a value says that its key is deleted."""
    return _TOMBSTONE.match(value) is not None


def value_bytes(value: str) -> bytes | None:
    """Return the value that a record is sent with, None for a tombstone."""
    return None if is_tombstone(value) else value.encode()


def headers_of(value: str) -> list[tuple[str, bytes]]:
    """Return the headers that a record is sent with."""
    return [(TEXT_HEADER, value.encode())] if is_tombstone(value) else []


def text_in(headers: Iterable[tuple[str | bytes, bytes | None]]) -> bytes | None:
    """Return the text of a record without a value, from its headers; None if they have none."""
    return next((text for name, text in headers if name in (TEXT_HEADER, TEXT_HEADER.encode())), None)
