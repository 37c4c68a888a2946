"""
Cleaning of a log's files, in steps that read a bounded number of bytes each.

A cleaning first reads the closed files that were not cleaned yet, and learns the newest offset of each key. Then
it writes neighbouring files again, as many as fit into one, without the records that have a newer one.
Of files that hold nothing any more one stays, empty: their neighbour takes it in with the next cleaning.
A file is written as `.cleaned`, flushed, and renamed `.swap`, durably: from then on recovery finishes what a
crash interrupts. The files that it replaces are removed, it takes the first one's name, and that is made durable.
How far a log was cleaned is written down when a cleaning has ended, and a start goes on from there: where the last
batch of each producer is, which stays, it reads in the headers of what is clean.
A file with a damaged batch is not cleaned, nor any other of its log, until the batch is mended or the log is cut.
Source:  Kafka, LogCleaner, Cleaner.doClean, groupSegmentsBySize, LogCleanerManager (cleaner-offset-checkpoint),
         UnifiedLog.replaceSegments; KAFKA-6264.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final

from targets.broker.core.compaction import groups
from targets.broker.core.log_port import Cleaned, DamagedError
from targets.broker.core.messages import Batch
from targets.broker.core.sequences import Sequences
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import checkpoint
from targets.broker.log.batch import HEADER_BYTES
from targets.broker.log.beneath import open_file, rename, unlink
from targets.broker.log.cleaner import Newest, clean
from targets.broker.log.names import CLEANED, SWAP, segment_name
from targets.broker.log.options import LogOptions
from targets.broker.log.reads import read
from targets.broker.log.segment import Segment

# Read at once; a larger batch is read alone.
_CHUNK_BYTES: Final = 64 * 1024
# What a file counts for beside its bytes: opening, replacing and removing one takes as long as reading so many.
_FILE_BYTES: Final = 4 * 1024
# Keys of one cleaning: with more, it ends after the file that has brought so many.
_KEYS_MAX: Final = 1_000_000


class Compactor:
    """
    The cleaning of one log, and how far that log is clean.

    Attributes:
        options: the log's settings; new ones hold from the next cleaning on.

    Raises:
        OSError: from the disk.
    """

    def __init__(self, directory: Path, options: LogOptions, clean_to: int = 0) -> None:
        self._directory = directory
        self.options = options
        self._clean_to = clean_to
        # Of the producers of the part that is clean, the base offset of the last batch there, which stays; None:
        # it is to be read.
        self._last_batches: dict[int, int] | None = None
        self._damaged = False
        self._work: Iterator[int] | None = None
        self._end = self._gone = 0

    def clean(self, segments: list[Segment], upto: int, delay: TombstoneDelay, bytes_max: int) -> Cleaned:
        """Do a step, as LogPort.clean says; files are replaced in the list."""
        if self._work is None:
            closed = [one for one, after in pairwise(segments) if after.base_offset <= upto]
            if self._damaged or not closed or segments[len(closed)].base_offset <= self._clean_to:
                return Cleaned()
            self._end, self._gone = segments[len(closed)].base_offset, 0
            self._work = self._cleaning(segments, closed, delay)
        return self._step(bytes_max)

    def abandon(self, offset: int | None = None) -> bool:
        """
        Drop a cleaning that is under way.

        Args:
            offset: where the log is about to be cut, None if it is not.

        Returns:
            True if records below it may have been removed for the sake of others at or past it. What is left
            there is clean.
        """
        self._damaged = False
        past = offset is not None and self._clean_to > offset
        if past:
            assert offset is not None, "past no offset"
            self._clean_to, self._last_batches = offset, None
        if self._work is not None:
            self._work.close()  # type: ignore[attr-defined]
            self._work = None
        return past

    def lower(self, end: int) -> None:
        """Note where the log ends since it was cut: what comes next there is not clean."""
        self._clean_to = min(self._clean_to, end)

    def _step(self, bytes_max: int) -> Cleaned:
        assert self._work is not None, "a step of no cleaning"
        done = 0
        try:
            for read_bytes in self._work:
                done += read_bytes
                if done >= bytes_max:
                    return Cleaned(done, more=True)
        except DamagedError:
            self._damaged, self._work = True, None
            return Cleaned(done)
        self._work, self._clean_to = None, self._end
        return Cleaned(done, upto=self._end, size=max(0, self._gone))

    # --- one cleaning --------------------------------------------------------------------------------------
    def _cleaning(self, segments: list[Segment], closed: list[Segment], delay: TombstoneDelay) -> Iterator[int]:
        """Clean files; yield how many bytes were read, and what each file counts for."""
        cleaned = [segment for segment in closed if segment.next_offset <= self._clean_to]
        if self._last_batches is None:
            passed = Newest()
            for segment in cleaned:
                yield _pass_over(segment, passed)
            self._last_batches = passed.last_batches
        newest = Newest(last_batches=dict(self._last_batches))
        for place, segment in enumerate(closed[len(cleaned) :], start=len(cleaned) + 1):
            for batches in _batches(segment):
                for batch in batches:
                    newest.learn(batch.payload)
                yield sum(batch.size for batch in batches)
            yield _FILE_BYTES
            if len(newest.offsets) >= _KEYS_MAX:
                self._end = segments[place].base_offset
                del closed[place:]
                break
        old = cleaned[: delay.old_files([segment.latest for segment in cleaned])]
        last = max((segment.index.last.last_offset for segment in closed if segment.index.last), default=-1)
        writing = _Writing(newest, delay, frozenset(old), last)
        for group in groups(closed, self.options.segment_bytes):
            path = self._directory / segment_name(group[0].base_offset, CLEANED)
            made = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                with open(made, "wb", buffering=0) as file:
                    yield from writing.write(file, group)
                    os.fsync(file.fileno())
                if len(group) > 1 or writing.changed:
                    self._replace(segments, group, path)
            finally:
                unlink(path, missing_ok=True)
            yield _FILE_BYTES * len(group)
        self._last_batches = newest.last_batches

    def _replace(self, segments: list[Segment], group: Sequence[Segment], cleaned: Path) -> None:
        """Put a cleaned file in the place of those that it was made of."""
        first, place = group[0], segments.index(group[0])
        swap = rename(cleaned, cleaned.with_name(segment_name(first.base_offset, SWAP)))
        checkpoint.sync_directory(self._directory)
        before = sum(segment.size for segment in group)
        for segment in reversed(group[1:]):
            segment.remove()
        first.close()
        rename(swap, first.path)
        checkpoint.sync_directory(self._directory)
        after = segments[place - 1] if place else None
        new = Segment(self._directory, first.base_offset, self.options.files, create=False, after=after)
        wrong = new.load(first.base_offset, Sequences(), check_crc=False)
        assert wrong is None, f"{new.name}: {wrong} in what was just written"
        new.log_position = first.log_position  # positions of what is behind it do not move
        new.trust()
        segments[place : place + len(group)] = [new]
        self.options.on_durable(new.name, new.durable_bytes)
        self._gone += before - new.size


def _pass_over(segment: Segment, newest: Newest) -> int:
    """Learn of a clean file where each producer's last batch is; return what that counts for, in bytes."""
    count = 0
    for batch in segment.headers(segment.base_offset):
        newest.pass_over(batch.payload)
        count += 1
    return _FILE_BYTES + count * HEADER_BYTES


@dataclass(slots=True)
class _Writing:
    """
    What decides which records stay.

    Attributes:
        old: the files that are old by their times.
        last: the last offset of the last batch that is cleaned.
        changed: whether the file that was written last differs from what it was made of.
    """

    newest: Newest
    delay: TombstoneDelay
    old: frozenset[Segment]
    last: int
    changed: bool = False

    def write(self, file: BinaryIO, group: Sequence[Segment]) -> Iterator[int]:
        """Write what stays of some files to one; yield how many bytes were read."""
        self.changed = False
        for segment in group:
            for batches in _batches(segment):
                for batch in batches:
                    kept = clean(
                        batch.payload,
                        self.newest,
                        self.delay,
                        in_old_file=segment in self.old,
                        is_last=batch.last_offset == self.last,
                    )
                    self.changed |= kept is not batch.payload
                    if kept is not None:
                        file.write(kept)
                yield sum(batch.size for batch in batches)


def _batches(segment: Segment) -> Iterator[tuple[Batch, ...]]:
    """Yield a file's batches, some at a time."""
    offset, end = segment.base_offset, segment.next_offset
    while batches := read([segment], offset, end, _CHUNK_BYTES, at_least_one=True):
        yield batches
        offset = batches[-1].next_offset
