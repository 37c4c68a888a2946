"""
Read the segments of one log into findings: batches, records, unreadable ranges, and remarks.

harness/logs/segments.py reads them in order; here is what Kafka's format adds: the files of cleanings, and the
records of a batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial

from harness.beneath import Folder
from harness.logs.names import shown
from harness.logs.replica import BatchSeen
from harness.logs.segments import Findings, Pieces, read_in_order
from harness.logs.source import opened
from targets.kafka_family.logs.batch import Header
from targets.kafka_family.logs.codec import CodecError, codec_name
from targets.kafka_family.logs.files import Listing
from targets.kafka_family.logs.message_set import OLD_MAGICS, headers, iterate
from targets.kafka_family.logs.records import RecordError, marker_text


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
    seen = partial(_seen, value_characters_max=value_characters_max)
    log = Pieces(name=folder.path.name, folder=folder, segments=files, walk=headers)
    yield from read_in_order(found, log, seen)
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
    with opened(folder, name) as source:
        found = headers(source, first)
        return max((each.last_offset + 1 for each in found if isinstance(each, Header)), default=first)


def _seen(header: Header, segment: str, *, value_characters_max: int | None) -> BatchSeen:
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
