"""
Keys of records: a value of a keyed workload says its key itself, `k2/m1.0`, so that nobody has to be told.

Every client that sends such a value sends its key with it; every other value has none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from zlib import crc32

_KEYED: Final = re.compile(r"k[0-9]+(?=/)")


def keyed(value: str, keys: int) -> str:
    """Return a value with one of so many keys, always the same one; 0 keys: as it is."""
    return f"k{crc32(value.encode()) % keys}/{value}" if keys else value


@lru_cache(maxsize=65536)
def key_of(value: str) -> str | None:
    """Return the key that a value says, None if it says none."""
    found = _KEYED.match(value)
    return found.group() if found else None


def key_bytes(value: str) -> bytes | None:
    """Return the key that a record with this value is sent with."""
    key = key_of(value)
    return None if key is None else key.encode()
