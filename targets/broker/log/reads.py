"""
Reads of batches across segments: within a number of bytes, and only as they were written.

What is to be read is chosen by the index, which has to read headers that are not in memory; then each segment is
read once.
Source:  Kafka, LocalLog.read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from targets.broker.core.log_port import Damaged, DamagedError
from targets.broker.core.messages import Batch
from targets.broker.log.index import Entry
from targets.broker.log.segment import Segment


def read(
    segments: Sequence[Segment], offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool
) -> tuple[Batch, ...]:
    """
    Read whole batches, as FileLog.read does.

    Args:
        segments: from the one that holds the offset on.

    Raises:
        OSError: from the disk.
        DamagedError: the first batch is no longer what was written; later ones end what is read.
    """
    found: list[Batch] = []
    for segment, chosen, unread in _chosen(segments, offset, end_offset, max_bytes, at_least_one=at_least_one):
        batches, changed = segment.batches(chosen)
        found += batches
        if wrong := changed or unread:
            if not found:
                raise DamagedError(wrong)
            break
    return tuple(found)


def _chosen(
    segments: Sequence[Segment], offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool
) -> Iterator[tuple[Segment, list[Entry], Damaged | None]]:
    """Yield the entries to read of each segment, and the batch whose header hides those behind it."""
    room, none_yet = max_bytes, at_least_one
    for segment in segments:
        chosen: list[Entry] = []
        try:
            for entry in segment.index.since(offset):
                if (entry.size > room and not none_yet) or entry.base_offset >= end_offset:
                    yield segment, chosen, None
                    return
                room -= entry.size
                none_yet = False
                chosen.append(entry)
        except DamagedError as error:
            yield segment, chosen, error.damaged
            return
        yield segment, chosen, None
