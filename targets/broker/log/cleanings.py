"""
Finish a cleaning that a crash left half done before the log is opened, ours or Apache Kafka's.

`.cleaned` files are deleted, with each `.swap` at or past the first of them. Any other `.swap` becomes the
segment in place of all segments that begin in its range: those are deleted first, durably, so that after a crash
in between the next start finds the `.swap` again.
Source:  Kafka, LogLoader.removeTempFilesAndCollectSwapFiles and Log.completeSwapOperations; KAFKA-6264.
"""

from __future__ import annotations

import os
from pathlib import Path

from targets.broker.log.batch import HEADER_BYTES, Damage
from targets.broker.log.beneath import Folder
from targets.broker.log.names import CLEANED, SEGMENT_SUFFIX, SWAP, offsets_in, segment_name
from targets.broker.log.stored import examine


def end_cleanings(directory: Path) -> None:
    """Leave only segments; do not touch a directory without cleaning files."""
    with Folder(directory) as folder:
        names = folder.names()
        swaps, cleaned = offsets_in(names, SWAP), offsets_in(names, CLEANED)
        if not swaps and not cleaned:
            return
        for base in cleaned:
            folder.unlink(segment_name(base, CLEANED))
        for base in swaps:
            swap = segment_name(base, SWAP)
            if cleaned and base >= cleaned[0]:
                folder.unlink(swap)
                continue
            end = max(_end_of(folder, swap), base + 1)
            for other in offsets_in(folder.names(), SEGMENT_SUFFIX):
                if base <= other < end:
                    folder.unlink(segment_name(other))
            folder.sync()
            folder.rename(swap, segment_name(base))
        folder.sync()


def _end_of(folder: Folder, name: str) -> int:
    """Return the offset after the last whole batch or entry of a file, 0 when there is none."""
    fd = folder.open(name)
    try:
        size = os.fstat(fd).st_size
        position = end = 0
        while position < size:
            header = examine(os.pread(fd, HEADER_BYTES, position), size - position)
            if isinstance(header, Damage):
                break
            end, position = header.last_offset + 1, position + header.size
        return end
    finally:
        os.close(fd)
