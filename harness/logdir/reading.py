"""
Read the segments of one log into findings: batches, records, unreadable ranges, and remarks.

A damaged segment does not stop the reading: the batches before its damage and the other segments are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from harness.logdir.batch import Header, Walk
from harness.logdir.checkpoint import CheckpointError
from harness.logdir.codec import CodecError, codec_name
from harness.logdir.files import Listing
from harness.logdir.message_set import OLD_MAGICS, records_of, walk
from harness.logdir.records import RecordError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeen:
    """
    One batch as it is on the disk.

    Attributes:
        last: The last offset, inclusive.
        position: The batch's first byte in its segment.
        segment: The segment's file name.
        records: (offset, digest, value's text or None) of each record; () if they could not be read.
        problem: How the batch breaks the order of offsets; "" if it does not.
        control: True for a transaction marker, which no client wrote or reads; its value names its kind, such as
            `commit marker`.
        unopened: Why the records could not be read; "" if they could.
    """

    base: int
    last: int
    epoch: int
    magic: int
    crc: int
    codec: str
    position: int
    segment: str
    records: tuple[tuple[int, str, str | None], ...]
    problem: str = ""
    control: bool = False
    unopened: str = ""

    @property
    def end(self) -> int:
        """The offset after the batch's last one."""
        return self.last + 1


@dataclass(slots=True, kw_only=True)
class Findings:
    """
    What a scan has found so far.

    Attributes:
        locked: A running broker holds the data directory.
        gone: A file vanished before it was read.
        torn: The last segment ends inside a batch.
    """

    locked: bool
    batches: list[BatchSeen] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unread: list[tuple[int, int | None]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    cleaned_to: int = 0
    gone: bool = False
    torn: bool = False

    def attempt(self, read: Callable[[], T | None]) -> T | None:
        """Return the reader's result; add a problem and return None if the file cannot be read."""
        try:
            return read()
        except (CheckpointError, OSError) as error:
            self.problems.append(str(error))
            return None


def read_segments(found: Findings, directory: Path, listed: Listing) -> tuple[int, int]:
    """Read the segments, and each `.swap` in place of those that it replaces; return the log's start and end."""
    files = dict(listed.segments)
    for first, path in listed.swaps.items():
        swap = found.attempt(path.read_bytes) or b""
        end = max((header.last_offset + 1 for header in walk(swap, next_offset=first).headers), default=first)
        replaced = [other for other in files if first <= other < end or other == first]
        for other in replaced:
            del files[other]
        files[first] = path
        found.cleaned_to = min((other for other in listed.segments if other >= end), default=end)
        text = f"{path.name}: the result of a cleaning of offsets [{first}, {found.cleaned_to})"
        found.remarks.append(f"{text}, in place of {len(replaced)} segments that are still there")
    if listed.cleaned_from is not None:
        found.cleaned_to = max(found.cleaned_to, listed.cleaned_from)
        found.remarks.append(f"{directory.name}: a cleaning is not finished, or never was")
    if found.locked:
        found.remarks.append(f"{directory.name}: a running broker holds it: the log may be longer by now")
    if not files:
        found.problems.append(f"{directory.name}: no segment; expected at least one .log file")
    bases = sorted(files)
    end = bases[0] if bases else 0
    for base, following in zip_longest(bases, bases[1:]):
        end = _read_segment(found, files[base], max(end, base), following)
    if found.locked:
        found.unread.append((end, None))
    return bases[0] if bases else 0, end


def _read_segment(found: Findings, path: Path, next_offset: int, following: int | None) -> int:
    """Read one segment into the findings; return the end of the furthest sound batch so far."""
    data = found.attempt(path.read_bytes)
    if data is None:
        found.gone = found.gone or not path.exists()
        found.unread.append((next_offset, following))
        return next_offset
    walked = walk(data, next_offset=next_offset)
    end = next_offset
    for header in walked.headers:
        batch = _seen(header, path.name)
        found.batches.append(batch)
        if batch.unopened:
            found.problems.append(f"{path.name}, position {batch.position}: {batch.unopened}")
            # The first offset of a compressed message set that cannot be read is unknown: take the end before it.
            found.unread.append((min(batch.base, end) if batch.magic in OLD_MAGICS else batch.base, batch.end))
        end = max(end, batch.end)
    if walked.stopped:
        _note_stop(found, path, walked, data[walked.sound_bytes :], (end, following))
    return end


def _note_stop(found: Findings, path: Path, walked: Walk, rest: bytes, unread: tuple[int, int | None]) -> None:
    """Report the bytes after the last sound batch; zeros in a running broker's last segment are no damage."""
    last, zeros = unread[1] is None, not any(rest)
    if last and zeros and found.locked:
        text = "zero bytes behind the log's end, which its broker preallocated"
        found.remarks.append(f"{path.name}: {len(rest)} {text}")
        return
    found.torn = found.torn or (last and walked.short and not zeros)
    found.problems.append(f"{path.name}, {walked.stopped}")
    found.unread.append(unread)


def _seen(header: Header, segment: str) -> BatchSeen:
    """Read a batch's records; return the batch without records if they cannot be read."""
    records: tuple[tuple[int, str, str | None], ...] = ()
    unopened = ""
    try:
        found = records_of(header)
        texts = [r.marker_text if header.control else r.value_text for r in found]
        records = tuple((r.offset, r.digest, text) for r, text in zip(found, texts, strict=True))
    except (CodecError, RecordError) as error:
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
        records=records,
        problem=header.problem,
        control=header.control,
        unopened=unopened,
    )
