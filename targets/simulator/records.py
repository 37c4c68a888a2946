"""
Records in the simulator: a batch's payload is a short text with a real batch's contents.

The client makes a payload once; leaders and followers pass it on unchanged, as the core does.
Digests are those of the log reader over the same content, so that histories have the same form.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final
from zlib import crc32

from harness.logdir.records import sent_digest
from targets.broker.core.messages import Batch, Payload

HEADER_BYTES: Final = 61
# The size of a real batch's record without its value: lengths, deltas, attributes.
RECORD_BYTES: Final = 7
_SEPARATOR: Final = "\x1f"
# In place of a value that compaction has removed.
_REMOVED: Final = "\x1e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """
    The contents of a payload.

    Attributes:
        records: (offset delta, digest, value), in order; without those that compaction has removed.
        count: how many records the batch was sent with.
        timestamp_ms: milliseconds since 1970, the same for all records of a batch.
    """

    codec: str
    timestamp_ms: int
    records: tuple[tuple[int, str, str], ...]
    count: int


def make_batch(values: Sequence[str], *, codec: str = "none", timestamp_ms: int) -> Batch:
    """Return a batch as a producer sends it: offsets from 0, no epoch."""
    payload = _SEPARATOR.join((codec, str(timestamp_ms), *values)).encode()
    return Batch(
        base_offset=0,
        last_offset=len(values) - 1,
        leader_epoch=-1,
        crc=crc32(payload),
        size=HEADER_BYTES + sum(len(value) + RECORD_BYTES for value in values),
        payload=payload,
    )


def with_only(batch: Batch, deltas: Collection[int]) -> Batch:
    """Return a batch of which compaction has left the records at these offset deltas."""
    codec, timestamp, *values = bytes(batch.payload).decode().split(_SEPARATOR)
    kept = [value if delta in deltas else _REMOVED for delta, value in enumerate(values)]
    payload = _SEPARATOR.join((codec, timestamp, *kept)).encode()
    size = HEADER_BYTES + sum(len(value) + RECORD_BYTES for value in kept if value != _REMOVED)
    return replace(batch, payload=payload, crc=crc32(payload), size=size)


def placed(batch: Batch, base_offset: int, leader_epoch: int) -> Batch:
    """Return the batch with its base offset and epoch, which its CRC does not cover."""
    last_offset = base_offset + batch.last_offset - batch.base_offset
    return replace(batch, base_offset=base_offset, last_offset=last_offset, leader_epoch=leader_epoch)


def content_of(payload: Payload) -> Content:
    """Parse a payload of make_batch."""
    return _read(bytes(payload))


@lru_cache(maxsize=4096)
def _read(payload: bytes) -> Content:
    codec, timestamp, *values = payload.decode().split(_SEPARATOR)
    return Content(
        codec=codec,
        timestamp_ms=int(timestamp),
        records=tuple(
            (delta, sent_digest(value, int(timestamp)), value)
            for delta, value in enumerate(values)
            if value != _REMOVED
        ),
        count=len(values),
    )
