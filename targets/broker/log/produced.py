"""
A producer's batches: each agrees with itself, or is refused with a reason.

A batch says three times how many records it has: by its count, by its last offset and by the records themselves.
Offsets are assigned by the header alone, so a count that lies moves the log's end past records that nobody wrote.
Records are therefore walked, compressed ones too. Whatever a codec says is wrong is an INVALID_RECORD: the CRC
holds, so the producer sent it so, and would send the same again after the retriable CORRUPT_MESSAGE.
Source:  Kafka, LogValidator, ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords (the size).
"""

from __future__ import annotations

from typing import Final

from targets.broker.core.messages import Batch, ErrorCode, Payload
from targets.broker.limits import Limits
from targets.broker.log.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    TRANSACTIONAL,
    Damage,
    Header,
    Split,
    batch_of,
    crc_of,
    examine,
    refuse,
)
from targets.broker.log.compression import CodecError, TooLargeError, open_records
from targets.broker.log.records import RECORD_BYTES_MIN, HeavyError, RecordsError, check_records

_CODEC_MAX: Final = 4

# Work is counted in records walked; these take about as long as one, and a batch as long as so many.
_OPENED_BYTES: Final = 16
_BATCH_RECORDS: Final = 10

_DEFAULTS: Final = Limits()


def split_produced(data: Payload, *, limits: Limits = _DEFAULTS, work_max: int | None = None) -> Split:
    """
    Split a producer's bytes into batches, or report the first unsound one.

    Args:
        work_max: how much may be done in this call: records walked, and bytes opened / 16; None for any amount.

    Returns:
        (batches, NONE, "") or ((), error, text). Payloads are views into `data`, uncopied. The error is
        CORRUPT_MESSAGE for damaged bytes, UNSUPPORTED_FOR_MESSAGE_FORMAT for magic 0 and 1, MESSAGE_TOO_LARGE
        for a batch above the limit, INVALID_RECORD for a sound batch that no producer may send.

    Raises:
        HeavyError: it would be more than work_max; as far as headers say so, nothing has been done yet.
    """
    view = memoryview(data)
    found: list[tuple[int, Header]] = []
    position = work = 0
    while position < len(view):
        header = examine(view[position : position + HEADER_BYTES], len(view) - position)
        if isinstance(header, Damage):
            return refuse(header, view, position)
        if header.size > limits.message_bytes_max:
            text = f"batch at byte {position}: {header.size} bytes; expected at most {limits.message_bytes_max}"
            return (), ErrorCode.MESSAGE_TOO_LARGE, text
        if crc_of(view[position : position + header.size]) != header.crc:
            return refuse(Damage.CRC, view, position)
        fault = _fault_of(header, limits)
        if fault:
            return _invalid(position, fault)
        found.append((position, header))
        position += header.size
        work += _work_of(header)
        if work_max is not None and work > work_max:
            raise HeavyError(f"{work} records and more in {len(view)} bytes; {work_max} allowed at once")
    if not found:
        return (), ErrorCode.INVALID_RECORD, "records: 0 bytes; expected at least one record batch"
    return _walk(view, found, limits, None if work_max is None else work_max - work)


def _fault_of(header: Header, limits: Limits) -> str:
    """Return why a producer may not send a batch with this header, "" if it may."""
    if header.base_offset != 0:
        return f"base offset {header.base_offset}; expected 0 from a producer"
    if header.count < 1:
        return f"{header.count} records; expected at least one"
    if header.count != header.last_offset_delta + 1:
        return f"{header.count} records over {header.last_offset_delta + 1} offsets; expected as many"
    codec = header.attributes & CODEC_MASK
    if codec > _CODEC_MAX:
        return f"compression codec {codec}; expected at most {_CODEC_MAX}"
    if header.attributes & CONTROL:
        return "a control batch; expected none from a client"
    if header.attributes & TRANSACTIONAL:
        return "a transactional batch; expected none, this broker has no transactions"
    # So that a count that lies is not walked, and does not count as work.
    room = limits.batch_opened_bytes_max if codec else header.size - HEADER_BYTES
    if header.count * RECORD_BYTES_MIN > room:
        return f"{header.count} records in {room} bytes; expected at least {RECORD_BYTES_MIN} for each"
    return ""


def _work_of(header: Header) -> int:
    """Return how much work a batch is at least: a compressed one opens to no less than its own size, or nearly."""
    compressed = header.size if header.attributes & CODEC_MASK else 0
    return _BATCH_RECORDS + header.count + compressed // _OPENED_BYTES


def _walk(view: memoryview, found: list[tuple[int, Header]], limits: Limits, left: int | None) -> Split:
    """Walk all batches' records; `left` is the work that is allowed besides what their headers say."""
    batches: list[Batch] = []
    for position, header in found:
        payload = view[position : position + header.size]
        try:
            done = _check(payload[HEADER_BYTES:], header, limits, left)
        except (RecordsError, CodecError) as error:
            return _invalid(position, str(error))
        if left is not None:
            left -= done
        batches.append(batch_of(header, payload))
    return tuple(batches), ErrorCode.NONE, ""


def _check(records: memoryview, header: Header, limits: Limits, left: int | None) -> int:
    """Check one batch's records; return how much more work it was than its header said."""
    codec = header.attributes & CODEC_MASK
    if not codec:
        # A copy: single bytes are read faster from it than from a view.
        return check_records(bytes(records), header.count, left)
    bytes_max = limits.batch_opened_bytes_max
    room = bytes_max if left is None else min(bytes_max, len(records) + left * _OPENED_BYTES)
    try:
        opened = open_records(codec, records, room)
    except TooLargeError:
        if room < bytes_max:
            raise HeavyError(f"{len(records)} bytes open to more than {room}") from None
        raise CodecError(f"records open to more than {bytes_max} bytes; expected at most as many") from None
    done = max(0, len(opened) - len(records)) // _OPENED_BYTES
    return done + check_records(opened, header.count, None if left is None else left - done)


def _invalid(position: int, fault: str) -> Split:
    return (), ErrorCode.INVALID_RECORD, f"batch at byte {position}: {fault}"
