"""
Finish a cleaning that a crash left half done before the log is opened, ours or Apache Kafka's.

`.cleaned` files are deleted, with each `.swap` at or past the first of them. Any other `.swap` becomes the
segment in place of all segments that begin in its range: those are deleted first, durably, so that after a crash
in between the next start finds the `.swap` again.
Source:  Kafka, LogLoader.removeTempFilesAndCollectSwapFiles and Log.completeSwapOperations; KAFKA-6264.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from targets.broker.log import checkpoint
from targets.broker.log.batch import HEADER_BYTES, Damage
from targets.broker.log.segment import SEGMENT_SUFFIX, segment_name, segment_offsets
from targets.broker.log.stored import examine

SWAP: Final = f"{SEGMENT_SUFFIX}.swap"
CLEANED: Final = f"{SEGMENT_SUFFIX}.cleaned"


def end_cleanings(directory: Path) -> None:
    """Leave only segments; do not touch a directory without cleaning files."""
    swaps, cleaned = _bases(directory, SWAP), _bases(directory, CLEANED)
    if not swaps and not cleaned:
        return
    for base in cleaned:
        (directory / cleaning_name(base, CLEANED)).unlink()
    for base in swaps:
        path = directory / cleaning_name(base, SWAP)
        if cleaned and base >= cleaned[0]:
            path.unlink()
            continue
        end = max(_end_of(path), base + 1)
        for other in segment_offsets(directory):
            if base <= other < end:
                (directory / segment_name(other)).unlink()
        checkpoint.sync_directory(directory)
        path.rename(directory / segment_name(base))
    checkpoint.sync_directory(directory)


def _end_of(path: Path) -> int:
    """Return the offset after the last whole batch or entry of a file, 0 when there is none."""
    data = memoryview(path.read_bytes())
    position = end = 0
    while position < len(data):
        header = examine(data[position : position + HEADER_BYTES], len(data) - position)
        if isinstance(header, Damage):
            break
        end, position = header.last_offset + 1, position + header.size
    return end


def _bases(directory: Path, suffix: str) -> list[int]:
    return sorted(int(path.name.removesuffix(suffix)) for path in directory.glob(f"[0-9]*{suffix}"))


def cleaning_name(base: int, suffix: str) -> str:
    """Return the name of a file of a cleaning, whose segment begins at that offset."""
    return segment_name(base).removesuffix(SEGMENT_SUFFIX) + suffix
