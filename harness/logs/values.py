"""
What a reader of logs may return, and what it is if it may not.

A value may be anything, of any type and length; it is only looked at.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from harness import limits
from harness.beneath import RefusedError, parts
from harness.logs.names import shown
from harness.logs.replica import BatchSeen, ReplicaLog

# Offsets have 64 bits; the names of segments have 20 digits, so that a damaged one may be larger.
_NUMBER_MAX: Final = 10**20


class NonsenseError(ValueError):
    """A value that no reader may return; the text says what it is."""


def characters_of(batch: BatchSeen) -> int:
    """
    Return the length of a batch's values and of what is said about its records; it may have millions of records.

    Raises:
        NonsenseError: It is no batch, or has something else than its types say.
    """
    if not isinstance(batch, BatchSeen):
        raise NonsenseError(what(batch))
    numbers = (batch.base, batch.last, batch.epoch, batch.magic, batch.crc, batch.position)
    if set(map(type, numbers)) != {int} or not -_NUMBER_MAX <= min(numbers) <= max(numbers) <= _NUMBER_MAX:
        raise NonsenseError(f"a batch whose numbers are {what(numbers)}")
    texts = (batch.codec, batch.segment, batch.problem, batch.unopened)
    if set(map(type, texts)) != {str}:
        raise NonsenseError(f"a batch at offset {batch.base} whose texts are {what(texts)}")
    records, about = batch.records, batch.about
    if not isinstance(records, tuple) or len(records) > limits.LOG_BATCH_RECORDS_MAX:
        most = limits.LOG_BATCH_RECORDS_MAX
        raise NonsenseError(f"a batch at offset {batch.base} with more than {most} records, or no tuple")
    if about and (len(about) != len(records) or not all(isinstance(text, str) for text in about)):
        raise NonsenseError(f"a batch at offset {batch.base} with other texts about its {len(records)} records")
    characters = sum(map(len, about))
    for record in records:
        if not isinstance(record, tuple) or len(record) != 3:
            raise NonsenseError(_no_record(batch, record))
        offset, digest, text = record
        if type(offset) is not int or not -_NUMBER_MAX <= offset <= _NUMBER_MAX or type(digest) is not str:
            raise NonsenseError(_no_record(batch, record))
        if text is not None:
            if type(text) is not str:
                raise NonsenseError(_no_record(batch, record))
            characters += len(text)
    return characters


def wrong_log(log: ReplicaLog, end: int | None) -> str:
    """Look at what is known of a log whose batches reach to `end` so far; None: there was none."""
    if not isinstance(log, ReplicaLog):
        return what(log)
    first, last = log.log_start_offset, log.log_end_offset
    if not all(map(is_number, (first, last, log.cleaned_to))):
        return f"a log from {what(first)} to {what(last)}, cleaned to {what(log.cleaned_to)}"
    if last < first or (end is not None and last < end):
        return f"a log from {first} to {last}, whose batches reach to {end}"
    if not (log.high_watermark is None or is_number(log.high_watermark)):
        return f"a high watermark {what(log.high_watermark)}"
    entries = log.epochs or ()
    if len(entries) > limits.EPOCHS_MAX or not all(len(e) == 2 and all(map(is_number, e)) for e in entries):
        return f"epochs {what(entries)}"
    spans = all(is_number(begin) and (stop is None or is_number(stop)) for begin, stop in log.unread)
    if not spans or not all(isinstance(text, str) for text in (*log.problems, *log.remarks)):
        return f"findings {what((log.unread, log.problems, log.remarks))}"
    # A reader of a damaged disk ends at LOG_FINDINGS_MAX of one kind, and may have as many of another.
    if max(len(log.unread), len(log.problems), len(log.remarks)) > 2 * limits.LOG_FINDINGS_MAX:
        return f"more than {2 * limits.LOG_FINDINGS_MAX} findings"
    return ""


def is_place(place: object) -> bool:
    """Return True for a (topic, partition)."""
    if not isinstance(place, tuple) or len(place) != 2:
        return False
    topic, partition = place
    return isinstance(topic, str) and is_number(partition) and partition >= 0


def is_path(path: object) -> bool:
    """Return True for a path that stays below a folder."""
    try:
        return isinstance(path, str) and bool(parts(path))
    except RefusedError:
        return False


def is_number(number: object) -> TypeGuard[int]:
    """Return True for a whole number that can be an offset, and can be printed."""
    return type(number) is int and -_NUMBER_MAX <= number <= _NUMBER_MAX


def what(found: object) -> str:
    """Return a value as text, cut if it is long."""
    try:
        return shown(repr(found))
    except Exception as error:
        return f"a {type(found).__name__} that cannot be shown ({type(error).__name__})"


def _no_record(batch: BatchSeen, record: object) -> str:
    return f"a record {what(record)} in the batch at offset {batch.base}"
