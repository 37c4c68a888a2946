"""
Compaction of batches and old messages: of each key the newest record stays; offsets and epochs do not change.

A batch of which some records stay is written again with those alone: its base offset, last offset, epoch, producer
and codec stay, so that offsets and the ends of epochs are what they were, and gaps are all that one sees of it.
A batch without a record is left out, unless it is its producer's last one, or the last one that is cleaned: then
it stays, empty. The next sequence number is told by it, and followers reach the log's end by it (KAFKA-17076).
A tombstone, a record whose value is null, stays like any other until its delay is over (core/tombstones.py). A
batch in which the end of the delay is written has that as its base timestamp, from which its records' times count.
A record without a key stays for ever; Apache Kafka refuses to append one to a compacted topic. Control batches,
batches of transactions, and what cannot be opened stay as they are. Entries of old message sets keep their format,
and are never left empty, as they cannot be: the last one that is cleaned keeps its last message.
Source:  Kafka, Cleaner.buildOffsetMap, cleanInto, shouldRetainRecord; MemoryRecords.filterTo; KIP-534.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, NamedTuple

from targets.broker.core.log_port import number_bytes
from targets.broker.core.messages import Payload
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.limits import Limits
from targets.broker.log.batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    TRANSACTIONAL,
    Header,
    build,
    parse_header,
)
from targets.broker.log.compression import CodecError, TooLargeError, open_records, pack_records
from targets.broker.log.old_messages import Message, messages_of, with_only
from targets.broker.log.records import RecordsError, number_at
from targets.broker.log.stored import is_old

# As in Kafka's map: what is remembered of a key has this size, however long the key is.
_KEY_BYTES: Final = 16
_NO_PRODUCER: Final = -1
_NO_TIME: Final = -1
_OPENED_BYTES_MAX: Final = Limits().batch_opened_bytes_max


class Keyed(NamedTuple):
    """
    One record of a batch.

    Attributes:
        key: None if it has none.
        raw: all its bytes, from its length on.
    """

    offset: int
    time_delta: int
    key: bytes | None
    is_tombstone: bool
    raw: memoryview


@dataclass(slots=True)
class Newest:
    """
    What is known of the records of a part of a log.

    Attributes:
        offsets: key -> the offset of its newest record there.
        last_batches: producer -> the base offset of its last batch, there or before.
    """

    offsets: dict[bytes, int] = field(default_factory=dict)
    last_batches: dict[int, int] = field(default_factory=dict)

    def pass_over(self, batch: Payload) -> Header | None:
        """Note whose batch this is, of which the header is enough; return that if its records may be removed."""
        header = _cleanable(batch)
        if header is not None and header.producer_id != _NO_PRODUCER:
            self.last_batches[header.producer_id] = header.base_offset
        return header

    def learn(self, batch: Payload) -> None:
        """Take the keys of a batch that follows all others."""
        if is_old(batch):
            keyed = (each for each in messages_of(batch) or () if each.key is not None)
            self.offsets |= {_short(each.key or b""): each.offset for each in keyed}
            return
        header = self.pass_over(batch)
        if header is None:
            return
        for record in _records(header, batch) or ():
            if record.key is not None:
                self.offsets[_short(record.key)] = record.offset

    def keeps(self, record: Keyed | Message, *, drop_tombstones: bool) -> bool:
        """Return True if no newer record of its key is known, and it is no tombstone that may go."""
        if record.key is None:
            return True
        newest = self.offsets.get(_short(record.key), record.offset)
        return record.offset >= newest and not (record.is_tombstone and drop_tombstones)


def clean(
    batch: Payload, newest: Newest, delay: TombstoneDelay, *, in_old_file: bool, is_last: bool
) -> Payload | None:
    """
    Return what is to be stored of a batch: it, the same object, or another one with fewer records, or None.

    Args:
        in_old_file: its file is old, by the times of files.
        is_last: it is the last one that is cleaned, and stays, if only empty.
    """
    if is_old(batch):
        return _clean_old(batch, newest, drop_tombstones=in_old_file, is_last=is_last)
    header = _cleanable(batch)
    records = None if header is None else _records(header, batch)
    if header is None or records is None:
        return batch
    drop_tombstones = delay.is_over(header.horizon_ms, in_old_file=in_old_file)
    kept = [record for record in records if newest.keeps(record, drop_tombstones=drop_tombstones)]
    horizon_ms = header.horizon_ms
    if any(record.is_tombstone for record in kept):
        horizon_ms = delay.horizon_of(horizon_ms)
    if len(kept) == len(records) and (kept or is_last) and horizon_ms == header.horizon_ms:
        return batch
    if kept:
        return _with(header, kept, horizon_ms)
    named = newest.last_batches.get(header.producer_id) == header.base_offset
    if not is_last and not named:
        return None
    return _emptied(header) if records else batch


def _clean_old(entry: Payload, newest: Newest, *, drop_tombstones: bool, is_last: bool) -> Payload | None:
    """Return what is to be stored of an entry of an old message set."""
    messages = messages_of(entry)
    if messages is None:
        return entry
    kept = [each for each in messages if newest.keeps(each, drop_tombstones=drop_tombstones)]
    if is_last and messages[-1] not in kept:
        kept.append(messages[-1])
    if len(kept) == len(messages):
        return entry
    return with_only(entry, kept) if kept else None


def _with(header: Header, kept: list[Keyed], horizon_ms: int | None) -> bytes:
    """Return a batch with these of its records; their times count from the horizon, if it has one."""
    codec = header.attributes & CODEC_MASK
    latest = header.base_timestamp + max(record.time_delta for record in kept)
    fewer = replace(header, count=len(kept), max_timestamp=min(header.max_timestamp, latest))
    if horizon_ms is not None:
        attributes = header.attributes | DELETE_HORIZON
        fewer = replace(fewer, attributes=attributes, base_timestamp=horizon_ms)
    later = fewer.base_timestamp - header.base_timestamp
    records = b"".join(_counted_from(record, later) if later else record.raw for record in kept)
    return build(fewer, pack_records(codec, records) if codec else records)


def _counted_from(record: Keyed, later: int) -> bytes:
    """Return a record whose time counts from so much later."""
    _, body = number_at(record.raw, 0)
    _, rest = number_at(record.raw, body + 1)
    fields = (
        bytes(record.raw[body : body + 1]) + number_bytes(record.time_delta - later) + bytes(record.raw[rest:])
    )
    return number_bytes(len(fields)) + fields


def _emptied(header: Header) -> bytes:
    """Return a batch without its records, which no codec is needed for."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    return build(replace(header, attributes=attributes, base_timestamp=_NO_TIME, count=0), b"")


def _cleanable(batch: Payload) -> Header | None:
    """Return the header of a batch whose records may be removed, None for all else."""
    if is_old(batch):
        return None
    header = parse_header(batch)
    return None if header.attributes & (CONTROL | TRANSACTIONAL) else header


def _records(header: Header, batch: Payload) -> list[Keyed] | None:
    """Return a batch's records, None if they cannot be read: then all of it stays."""
    codec = header.attributes & CODEC_MASK
    data = memoryview(batch)[HEADER_BYTES:]
    try:
        opened = open_records(codec, data, _OPENED_BYTES_MAX) if codec and header.count else data
        return list(_walk(opened, header))
    except (CodecError, TooLargeError, RecordsError, IndexError):
        return None


def _walk(data: memoryview, header: Header) -> Iterator[Keyed]:
    at = 0
    for _ in range(header.count):
        length, body = number_at(data, at)
        time_delta, look = number_at(data, body + 1)
        delta, look = number_at(data, look)
        key_length, look = number_at(data, look)
        key = bytes(data[look : look + key_length]) if key_length >= 0 else None
        value_length, _ = number_at(data, look + max(0, key_length))
        end = body + length
        if not at < end <= len(data):
            raise RecordsError(f"record at byte {at} ends at byte {end}; expected at most {len(data)}")
        yield Keyed(header.base_offset + delta, time_delta, key, value_length < 0, data[at:end])
        at = end


def _short(key: bytes) -> bytes:
    return blake2b(key, digest_size=_KEY_BYTES).digest()
