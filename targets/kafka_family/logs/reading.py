"""
Read the segments of one log into findings: batches, records, unreadable ranges, and remarks.

A damaged segment does not stop the reading: the batches before its damage and the other segments are read. Batches
are yielded one by one, so that a log that is larger than memory can be read.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import TypeVar

from harness import limits
from harness.beneath import Folder
from harness.logs.names import shown
from harness.logs.replica import BatchSeen
from targets.kafka_family.logs.batch import Header, Stop
from targets.kafka_family.logs.checkpoint import CheckpointError
from targets.kafka_family.logs.codec import CodecError, codec_name
from targets.kafka_family.logs.files import Listing
from targets.kafka_family.logs.message_set import OLD_MAGICS, headers, iterate
from targets.kafka_family.logs.records import RecordError, marker_text
from targets.kafka_family.logs.source import FileSource

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Findings:
    """
    What a scan has found so far.

    Attributes:
        locked: A running broker holds the data directory.
        start: The first segment's first offset.
        end: The end of the furthest sound batch so far, or the last segment's first offset if that is later.
        gone: A file vanished before it was read.
        torn: The last segment ends inside a batch.
    """

    locked: bool
    start: int = 0
    end: int = 0
    problems: list[str] = field(default_factory=list)
    unread: list[tuple[int, int | None]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    cleaned_to: int = 0
    gone: bool = False
    torn: bool = False

    def attempt(self, name: str, read: Callable[[], T]) -> T | None:
        """Return the reader's result; add a problem and return None if the file cannot be read."""
        try:
            return read()
        except CheckpointError as error:
            self.problems.append(str(error))
        except OSError as error:
            self.problems.append(f"{shown(name)}: {error.strerror}")
        return None

    @property
    def full(self) -> bool:
        """Whether so much is wrong that the rest of the log is not read."""
        return len(self.unread) >= limits.LOG_FINDINGS_MAX


def read_segments(
    found: Findings, folder: Folder, listed: Listing, value_characters_max: int | None
) -> Iterator[BatchSeen]:
    """
    Yield the batches of the segments, and of each `.swap` in place of those that it replaces, in file order.

    Args:
        value_characters_max: How much of a record's value is kept; None: all of it.
    """
    label = shown(folder.path.name)
    files = _with_swaps(found, folder, listed)
    if listed.cleaned_from is not None:
        found.cleaned_to = max(found.cleaned_to, listed.cleaned_from)
        found.remarks.append(f"{label}: a cleaning is not finished, or never was")
    if found.locked:
        found.remarks.append(f"{label}: a running broker holds it: the log may be longer by now")
    if not files:
        found.problems.append(f"{label}: no segment; expected at least one .log file")
    bases = sorted(files)
    found.start = found.end = bases[0] if bases else 0
    for base, following in zip_longest(bases, bases[1:]):
        if found.full:
            found.problems.append(
                f"{label}: more than {limits.LOG_FINDINGS_MAX} unreadable ranges; the rest is not read"
            )
            found.unread.append((found.end, None))
            break
        found.end = max(found.end, base)
        yield from _read_segment(found, folder, files[base], following, value_characters_max)
    if found.locked:
        found.unread.append((found.end, None))


def _with_swaps(found: Findings, folder: Folder, listed: Listing) -> dict[int, str]:
    """Return the files to read by first offset: each `.swap` in place of the segments that it replaces."""
    files = dict(listed.segments)
    bases = sorted(listed.segments)
    for first, name in listed.swaps.items():
        read_to = found.attempt(name, partial(_end_of, folder, name, first))
        if read_to is None and first in files:
            # The segments are read in its stead. Which of them are gone is unknown, so that a gap proves nothing.
            found.unread.append((first, None))
            continue
        end = first if read_to is None else read_to
        replaced = [
            other
            for other in bases[bisect_left(bases, first) : bisect_left(bases, max(end, first + 1))]
            if files.pop(other, "")
        ]
        files[first] = name
        after = bisect_left(bases, end)
        found.cleaned_to = bases[after] if after < len(bases) else end
        text = f"{name}: the result of a cleaning of offsets [{first}, {found.cleaned_to})"
        found.remarks.append(f"{text}, in place of {len(replaced)} segments that are still there")
    return files


def _end_of(folder: Folder, name: str, first: int) -> int:
    """Return the end of the furthest sound batch of a file."""
    with _opened(folder, name) as source:
        found = headers(source, next_offset=first)
        return max((each.last_offset + 1 for each in found if isinstance(each, Header)), default=first)


@contextmanager
def _opened(folder: Folder, name: str) -> Iterator[FileSource]:
    handle = folder.open(name)
    try:
        yield FileSource(handle)
    finally:
        os.close(handle)


def _read_segment(
    found: Findings, folder: Folder, name: str, following: int | None, value_characters_max: int | None
) -> Iterator[BatchSeen]:
    """Yield one segment's batches, and move the end to that of the furthest sound batch so far."""
    try:
        with _opened(folder, name) as source:
            for each in headers(source, next_offset=found.end):
                if isinstance(each, Stop):
                    _note_stop(found, name, each, source, following)
                    if found.full:
                        found.unread.append((found.end, following))
                        return
                    continue
                batch = _seen(each, name, value_characters_max)
                if batch.unopened:
                    found.problems.append(f"{name}, position {batch.position}: {batch.unopened}")
                    # The first offset of a compressed message set that cannot be read is unknown: take the end
                    # before it.
                    first = min(batch.base, found.end) if batch.magic in OLD_MAGICS else batch.base
                    found.unread.append((first, batch.end))
                found.end = max(found.end, batch.end)
                yield batch
                if found.full:
                    found.unread.append((found.end, following))
                    return
    except OSError as error:
        found.problems.append(f"{name}: {error.strerror}")
        found.gone = found.gone or isinstance(error, FileNotFoundError)
        found.unread.append((found.end, following))


def _note_stop(found: Findings, name: str, stop: Stop, source: FileSource, following: int | None) -> None:
    """Report a damaged batch, or the bytes after the last sound one; a running broker's zeros are no damage."""
    if stop.goes_on and stop.damaged is not None:
        base, end, _ = stop.damaged
        found.problems.append(f"{name}, {stop.text}")
        found.unread.append((base, end))
        found.end = max(found.end, end)
        return
    last, zeros = following is None, source.zeros_from(stop.position)
    if last and zeros and found.locked:
        text = "zero bytes behind the log's end, which its broker preallocated"
        found.remarks.append(f"{name}: {source.size - stop.position} {text}")
        return
    found.torn = found.torn or (last and stop.short and not zeros)
    found.problems.append(f"{name}, {stop.text}")
    found.unread.append((found.end, following))


def _seen(header: Header, segment: str, value_characters_max: int | None) -> BatchSeen:
    """Read a batch's records; return the batch without records if they cannot be read."""
    records: list[tuple[int, str, str | None]] = []
    about: list[str] = []
    unopened = ""
    try:
        for record in iterate(header):
            text = marker_text(record) if header.control else record.beginning(value_characters_max)
            records.append((record.offset, record.digest, text))
            if value_characters_max is not None:
                about.append(record.about(value_characters_max))
    except (CodecError, RecordError) as error:
        records.clear()
        about.clear()
        unopened = str(error)
    return BatchSeen(
        base=header.base_offset,
        last=header.last_offset,
        epoch=header.leader_epoch,
        magic=header.magic,
        crc=header.crc,
        codec=codec_name(header.codec_id),
        position=header.position,
        segment=segment,
        records=tuple(records),
        problem=header.problem,
        control=header.control,
        unopened=unopened,
        about=tuple(about),
        single=header.magic in OLD_MAGICS,
    )
