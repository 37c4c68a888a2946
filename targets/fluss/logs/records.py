"""
Read a batch's records: the values of a table with one column of text, else a digest of the batch.

The schema of a table is not in its files. A batch whose Arrow message has one column that is text through and
through is read as such. Of any other (more columns, another type, rows that are not in Arrow's format) each record
has the value `batch HEX #i`, where HEX digests the bytes that the checksum covers: so replicas are still compared
by what they hold.

A tablet server appends a batch without records where a writer's batch changed nothing (the delete of a key that is
not there). It takes offsets that no client reads, as a marker does.

In a table with a key each record has a change type (insert, update, delete) before the records. It is a part of
the record, as a header `change` of one byte.

Source:  Apache Fluss 0.9.1, fluss-common/.../record/DefaultLogRecordBatch.java, ChangeType.java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Final

from harness import limits
from harness.events.log import WITH_EPOCHS
from harness.logs.names import shown
from harness.logs.record import Record
from harness.logs.replica import BatchSeen
from targets.fluss.logs.arrow import ArrowError, TextColumn, text_column
from targets.fluss.logs.batch import Header
from targets.fluss.tables import arrow_schema

_DIGEST_BYTES: Final = 8
# Append, insert, update before, update after, delete. An append is what a table without a key has alone.
_APPEND: Final = 0
_CHANGES: Final = range(5)
# What stands for each offset of a batch without records.
_EMPTY: Final = b"empty batch"


def seen(
    header: Header, segment: str, *, value_characters_max: int | None, remark: Callable[[str], None]
) -> BatchSeen:
    """
    Return what is seen of a batch; without records if their number is none that it can have.

    Args:
        segment: The name of the segment's file.
        value_characters_max: How much of a record's value is kept; None: all of it.
        remark: Is told why a batch's records are read as a digest.
    """
    unopened = _wrong_count(header)
    codec, records = ("none", ()) if unopened else _records(header, segment, remark)
    return BatchSeen(
        base=header.base_offset,
        last=header.last_offset,
        epoch=header.leader_epoch,
        # The history's format of batches with an epoch is Kafka's v2.
        magic=WITH_EPOCHS if header.magic else WITH_EPOCHS - 1,
        crc=header.crc,
        codec=codec,
        position=header.position,
        segment=segment,
        records=tuple((each.offset, each.digest, each.beginning(value_characters_max)) for each in records),
        problem=header.problem,
        control=not header.record_count,
        unopened=unopened,
        about=() if value_characters_max is None else tuple(each.about(value_characters_max) for each in records),
    )


def rotting(header: Header) -> int:
    """Return where in the file the last byte of the records' text is; the batch's last byte if it has none."""
    last = header.position + header.size - 1
    try:
        at, column = _column(header)
    except ArrowError:
        return last
    first, end = column.data
    return header.payload_at + at + end - 1 if first < end else last


def _wrong_count(header: Header) -> str:
    """Return why a batch cannot have so many records; "" if it can."""
    count, offsets = header.record_count, header.last_offset + 1 - header.base_offset
    if count < 0 or (count and count != offsets):
        return f"the batch has {count} records; expected {max(offsets, 0)}, one for each of its offsets, or none"
    if offsets > limits.LOG_BATCH_RECORDS_MAX:
        return f"the batch has {offsets} offsets; this reader takes at most {limits.LOG_BATCH_RECORDS_MAX}"
    return ""


def _records(header: Header, segment: str, remark: Callable[[str], None]) -> tuple[str, Sequence[Record]]:
    """Return the codec and the records of a batch that has a lawful number of them."""
    if not header.record_count:
        offsets = range(header.base_offset, header.last_offset + 1)
        return "none", tuple(Record(offset=offset, value=_EMPTY) for offset in offsets)
    try:
        at, column = _column(header)
        values = _values(header.payload[at:])
        if len(values) != header.record_count:
            raise ArrowError(f"{len(values)} rows; expected {header.record_count}, the batch's records")
        return column.codec, tuple(_changed(header, at, values))
    except ArrowError as error:
        remark(f"{segment}, position {header.position}: {error}; such records are read as a digest of their batch")
    digest = blake2b(header.covered, digest_size=_DIGEST_BYTES).hexdigest()
    return "none", tuple(
        Record(offset=header.base_offset + number, value=f"batch {digest} #{number}".encode())
        for number in range(header.record_count)
    )


def _column(header: Header) -> tuple[int, TextColumn]:
    """Return where in the payload the Arrow message begins, and what it claims; raises ArrowError."""
    at = 0 if header.append_only else header.record_count
    if not 0 <= at <= len(header.payload):
        raise ArrowError(f"{len(header.payload)} bytes; expected {at} of change types and more")
    column = text_column(header.payload[at:])
    if column.rows != header.record_count:
        raise ArrowError(f"{column.rows} rows; expected {header.record_count}, the batch's records")
    return at, column


def _values(message: memoryview) -> list[bytes | None]:
    """Decode a message that was looked at before; raises ArrowError if it is not text through and through."""
    # Half of the commands read no log, and start in half the time without it.
    import pyarrow as pa

    try:
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), arrow_schema())
        batch.validate(full=True)
        values: list[bytes | None] = batch.column(0).cast(pa.binary()).to_pylist()
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise ArrowError(f"no column of text: {shown(str(error))}") from error
    return values


def _changed(header: Header, at: int, values: Sequence[bytes | None]) -> Iterator[Record]:
    """Yield the records with their change types; raises ArrowError for one that there is not."""
    changes = header.payload[:at]
    for number, value in enumerate(values):
        change = changes[number] if at else _APPEND
        if change not in _CHANGES:
            raise ArrowError(f"change type of record {number} is {change}; expected 0 to {_CHANGES[-1]}")
        headers = ((b"change", bytes((change,))),) if change != _APPEND else ()
        yield Record(offset=header.base_offset + number, value=value, headers=headers)
