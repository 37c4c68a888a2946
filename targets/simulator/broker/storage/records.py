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

from harness.keys import TEXT_HEADER, is_tombstone, key_of
from harness.logs.record import sent_digest
from targets.broker.core.log_port import LATEST_FORMAT, FormatError, number_bytes
from targets.broker.core.messages import Batch, Payload

HEADER_BYTES: Final = 61
# The size of a message of format 1 without its value.
MESSAGE_BYTES: Final = 34
# The size of a real batch's record without its value: lengths, deltas, attributes.
RECORD_BYTES: Final = 7
_SEPARATOR: Final = "\x1f"
# In place of a value that compaction has removed.
_REMOVED: Final = "\x1e"
# Behind the codec of what is stored in an older format.
_OLDER: Final = "\x1d1"
_PLAIN: Final = "none"
# Between the timestamp of a batch and the time when its tombstones may go, if a cleaning has said it.
_HORIZON: Final = "@"
# The lengths of a header's name and of its value.
_HEADER_LENGTHS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """
    The contents of a payload.

    Attributes:
        records: (offset delta, digest, value), in order; without those that compaction has removed.
        count: how many records the batch was sent with.
        magic: its message format.
        timestamp_ms: milliseconds since 1970, the same for all records of a batch.
        horizon_ms: when tombstones of the batch may go, None if no cleaning has said it yet (KIP-534).
    """

    codec: str
    timestamp_ms: int
    records: tuple[tuple[int, str, str], ...]
    count: int
    magic: int = LATEST_FORMAT
    horizon_ms: int | None = None


def make_batch(values: Sequence[str], *, codec: str = "none", timestamp_ms: int) -> Batch:
    """Return a batch as a producer sends it: offsets from 0, no epoch."""
    payload = _SEPARATOR.join((codec, str(timestamp_ms), *values)).encode()
    return Batch(
        base_offset=0,
        last_offset=len(values) - 1,
        leader_epoch=-1,
        crc=crc32(payload),
        size=HEADER_BYTES + sum(map(_record_bytes, values)),
        payload=payload,
    )


def with_only(batch: Batch, deltas: Collection[int], horizon_ms: int | None = None) -> Batch:
    """Return a batch of which compaction has left the records at these offset deltas, with this horizon."""
    codec, times, *values = bytes(batch.payload).decode().split(_SEPARATOR)
    timestamp, _, _ = times.partition(_HORIZON)
    kept = [value if delta in deltas else _REMOVED for delta, value in enumerate(values)]
    horizon_ms = horizon_ms if deltas else None  # a batch without records has no place for it
    times = timestamp if horizon_ms is None else f"{timestamp}{_HORIZON}{horizon_ms}"
    payload = _SEPARATOR.join((codec, times, *kept)).encode()
    # The times of records count from the horizon then.
    more = 0 if horizon_ms is None else len(number_bytes(int(timestamp) - horizon_ms)) - 1
    size = HEADER_BYTES + sum(_record_bytes(value) + more for value in kept if value != _REMOVED)
    return replace(batch, payload=payload, crc=crc32(payload), size=size)


def _record_bytes(value: str) -> int:
    """Return the size of a real batch's record; a tombstone has its text in a header (harness/keys.py)."""
    if not is_tombstone(value):
        return RECORD_BYTES + len(value)
    return RECORD_BYTES + len(key_of(value) or "") + _HEADER_LENGTHS + len(TEXT_HEADER) + len(value)


def placed(batch: Batch, base_offset: int, leader_epoch: int) -> Batch:
    """Return the batch with its base offset and epoch, which its CRC does not cover."""
    last_offset = base_offset + batch.last_offset - batch.base_offset
    return replace(batch, base_offset=base_offset, last_offset=last_offset, leader_epoch=leader_epoch)


def as_messages(batch: Batch, base_offset: int) -> list[Batch]:
    """
    Return a batch in message format 1: one message for each record, or a compressed one around all of them.

    Raises:
        FormatError: the format has no place for it, as on files (targets/broker/log/older.py).
    """
    codec, timestamp, *values = bytes(batch.payload).decode().split(_SEPARATOR)
    if codec == "zstd":
        raise FormatError("a batch compressed with zstd; expected another codec, as message format 1 has none")
    found: list[Batch] = []
    for each in [[value] for value in values] if codec == _PLAIN else [values]:
        payload = _SEPARATOR.join((codec + _OLDER, timestamp, *each)).encode()
        last = base_offset + len(each) - 1
        size = MESSAGE_BYTES * (len(each) + (codec != _PLAIN)) + sum(map(len, each))
        found.append(
            Batch(
                base_offset=base_offset,
                last_offset=last,
                leader_epoch=-1,
                crc=crc32(payload),
                size=size,
                payload=payload,
            )
        )
        base_offset = last + 1
    return found


def placed_all(batches: Sequence[Batch], base_offset: int, leader_epoch: int, message_format: int) -> list[Batch]:
    """Return batches as a leader stores them in this format; or raise FormatError."""
    found: list[Batch] = []
    for batch in batches:
        older = message_format < LATEST_FORMAT
        found += as_messages(batch, base_offset) if older else [placed(batch, base_offset, leader_epoch)]
        base_offset = found[-1].next_offset
    return found


def content_of(payload: Payload) -> Content:
    """Parse a payload of make_batch."""
    return _read(bytes(payload))


@lru_cache(maxsize=4096)
def _read(payload: bytes) -> Content:
    codec, times, *values = payload.decode().split(_SEPARATOR)
    timestamp, _, horizon = times.partition(_HORIZON)
    return Content(
        codec=codec.removesuffix(_OLDER),
        magic=LATEST_FORMAT if codec == codec.removesuffix(_OLDER) else 1,
        timestamp_ms=int(timestamp),
        records=tuple(
            (delta, sent_digest(value, int(timestamp)), value)
            for delta, value in enumerate(values)
            if value != _REMOVED
        ),
        count=len(values),
        horizon_ms=int(horizon) if horizon else None,
    )
