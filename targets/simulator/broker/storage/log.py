"""
One replica's log in memory: its written contents, and the durable part of them.

Appends and truncations reach the page cache only; a flush alone makes records durable.
A power loss undoes a truncation that was not flushed: the old tail is back.
The log has a real log's files: segments, names in a directory, an epoch file that is replaced whole.
Source:  Kafka, UnifiedLog and LocalLog; docs/power-loss.md.
Length:  all of the port that the log on files has too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TypeAlias
from zlib import crc32

from harness.cluster.disk_error import DiskError
from targets.broker.core.log_port import (
    LATEST_FORMAT,
    NEVER_YET,
    AppendOrderError,
    Cleaned,
    Damaged,
    DamagedError,
    File,
    LeoAfterCut,
    Moment,
)
from targets.broker.core.messages import NO_TOPIC_ID, Batch, TopicPartition
from targets.broker.core.tombstones import TombstoneDelay
from targets.simulator.broker.storage.cleaner import Cleaner
from targets.simulator.broker.storage.records import content_of, placed_all
from targets.simulator.broker.storage.segment import TORN, Segment, file_name, is_rotten
from targets.simulator.engine.disk_errors import CHANGES, FLUSHES, READS, WRITES, DiskErrors

Entries: TypeAlias = tuple[tuple[int, int], ...]


class SimLog:
    """
    A LogPort on simulated files.

    Attributes:
        segments: rise by base offset, at least one while the log is open.
        removed: files whose names were removed from the directory in the page cache only.
        epochs: the epoch file, None when there is none.
        directory_durable: the directory's own name survives a power loss.
        changes: rises with every write.
        begun: how often it was begun anew, without a record.
        rotten, epochs_rotten: a byte of a batch, or of the epoch file as it is, was flipped.
        lost: the batches as they were of which a byte was flipped, and those that were cut with one.
        topic_id: as in partition.metadata, NO_TOPIC_ID without that file.
        kept_start: where the log starts at least, as in the checkpoint of the disk's log starts; always durable.
    """

    def __init__(
        self, tp: TopicPartition, segment_bytes: int, start_offset: int = 0, *, errors: DiskErrors | None = None
    ) -> None:
        self.tp = tp
        self._errors = errors or DiskErrors()
        self.segments = [Segment(base_offset=start_offset)]
        self.removed: list[Segment] = []
        self.epochs: Entries | None = None
        self.epochs_durable: Entries | None = None
        self.directory_durable = False
        self.deleted = False
        self.changes = self.begun = 0
        self.rotten = self.epochs_rotten = False
        self.lost: list[Batch] = []
        self.topic_id = NO_TOPIC_ID
        self.kept_start = 0
        self._bytes_deleted = 0  # below the start, since the log was opened
        self._cleaner = Cleaner()
        self._segment_bytes = segment_bytes
        self._start = self._end = start_offset

    def __repr__(self) -> str:
        return f"SimLog({self.tp}, {self._start}..{self._end})"

    @property
    def start_offset(self) -> int:
        """Return the first offset of the log."""
        return self._start

    @property
    def end_offset(self) -> int:
        """Return the log end offset (LEO); after a cut inside the last batch it may lie past that batch."""
        return self._end

    @property
    def batches(self) -> list[Batch]:
        """Return every batch, in order."""
        return [batch for segment in self.segments for batch in segment.batches]

    def reopen(self) -> None:
        """Set start and end from the segments, as opening does."""
        self._start = max(self.segments[0].base_offset, self.kept_start)
        self._end = max(self.segments[-1].next_offset, self._start)
        self._bytes_deleted = 0
        self._cleaner.resume()
        self._cleaner.end(self._end)
        for segment in self.segments:
            segment.gone_bytes = 0
        self.changes += 1

    # --- append and read -----------------------------------------------------------------------------------
    def append_as_leader(
        self, batches: Sequence[Batch], leader_epoch: int, message_format: int = LATEST_FORMAT
    ) -> tuple[int, int]:
        """Assign offsets and epoch to the batches and append them in this format; or raise FormatError."""
        first = self._end
        stored = placed_all(batches, first, leader_epoch, message_format)
        if self._errors.armed is not None and batches and self._errors.due(WRITES):
            self._append_part(stored[:1])
        for batch in stored:
            self._append(batch)
        return first, self._end

    def append_as_follower(self, batches: Sequence[Batch]) -> tuple[int, int]:
        """
        Append the batches verbatim.

        Raises:
            AppendOrderError: a batch begins before the log's end; nothing was written.
        """
        expected = self._end
        for batch in batches:
            if batch.base_offset < expected:
                raise AppendOrderError(
                    f"{self.tp}: batch {batch.base_offset}..{batch.last_offset}; "
                    f"expected its first offset at or past {expected}, where the log ends"
                )
            expected = batch.last_offset + 1
        if self._errors.armed is not None and batches and self._errors.due(WRITES):
            self._append_part(batches)
        for batch in batches:
            self._append(batch)
        return (batches[0].base_offset if batches else self._end), self._end

    def _append_part(self, batches: Sequence[Batch]) -> None:
        """Append as much as the disk takes, perhaps a part of a batch at the end if it is full, and fail."""
        chance = self._errors.chance if self._errors.armed is DiskError.FULL else None
        fitting = 0 if chance is None else chance.randint(0, len(batches) - 1)
        for batch in batches[:fitting]:
            self._append(batch)
        active = self.segments[-1]
        if chance is not None and active.has_room(batches[fitting], self._segment_bytes) and chance.random() < 0.5:
            active.damage, active.damage_bytes = TORN, chance.randint(1, batches[fitting].size - 1)
        self.changes += 1
        raise self._errors.error(f"an append to {self.tp}")

    def _append(self, batch: Batch) -> None:
        if not self.segments[-1].has_room(batch, self._segment_bytes):
            self._flush_file(self.segments[-1])  # as targets/broker/log/file_log.py, when a new file begins
            self.segments.append(Segment(base_offset=batch.base_offset))
        self.segments[-1].append(batch)
        self._end = batch.last_offset + 1
        self.changes += 1

    def read(
        self, offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[Batch, ...]:
        """Read whole batches from the one that holds `offset`, within max_bytes, or one larger one if allowed."""
        self._errors.check(READS, f"a read of {self.tp}")
        found: list[Batch] = []
        room = max_bytes
        for segment in self.segments:
            for batch in segment.batches[segment.index_of(offset) :]:
                full = batch.size > room and (found or not at_least_one)
                if full or batch.base_offset >= end_offset:
                    return tuple(found)
                if self.rotten and is_rotten(batch):
                    if found:
                        return tuple(found)
                    raise DamagedError(self._damaged(segment, batch))
                found.append(batch)
                room -= batch.size
        return tuple(found)

    def headers(self, offset: int) -> Iterator[Batch]:
        """Yield the batches from the one that holds `offset` on."""
        for segment in self.segments:
            yield from segment.batches[segment.index_of(offset) :]

    def check(self, offset: int, max_bytes: int) -> tuple[int, int]:
        """Read batches to see that none is damaged: (offset to go on from, bytes read)."""
        if not self.rotten:
            return self._end, 0
        batches = self.read(offset, self._end, max_bytes)
        return batches[-1].next_offset if batches else self._end, sum(batch.size for batch in batches)

    def mend(self, batch: Batch) -> bool:
        """Put a batch in the place of the same one, which is damaged; return False if it is not the same."""
        for segment in self.segments:
            at = segment.index_of(batch.base_offset)
            old = segment.batches[at] if at < len(segment.batches) else batch
            if old is not batch and replace(old, payload=batch.payload) == batch and not is_rotten(batch):
                segment.batches[at] = batch
                segment.durable = tuple(batch if each is old else each for each in segment.durable)
                self.lost = [each for each in self.lost if each != batch]
                self._cleaner.resume()
                self.changes += 1
                return True
        return False

    def _damaged(self, segment: Segment, batch: Batch) -> Damaged:
        at = segment.batches.index(batch)
        return Damaged(
            offset=batch.base_offset,
            end=batch.next_offset,
            path=f"{self.tp}/{file_name(segment)}",
            position=sum(each.size for each in segment.batches[:at]),
            what=f"checksum {crc32(batch.payload):#010x} of its bytes; expected {batch.crc:#010x}",
        )

    def position_of(self, offset: int) -> int:
        """Return how many bytes of the log lie before the first batch whose last offset is `offset` or later."""
        at = max(0, bisect_right(self.segments, offset, key=attrgetter("base_offset")) - 1)
        before = sum(segment.size + segment.gone_bytes for segment in self.segments[:at])
        batches = self.segments[at].batches[: self.segments[at].index_of(offset)]
        return self._bytes_deleted + before + sum(batch.size for batch in batches)

    def files(self) -> tuple[File, ...]:
        """Return the files of the log, the oldest first."""
        ends = [segment.base_offset for segment in self.segments[1:]]
        files, latest = [], -1
        for segment, end in zip(self.segments, [*ends, self._end], strict=True):
            times = (content_of(batch.payload).timestamp_ms for batch in segment.batches)
            latest = max(latest, *times, -1)
            files.append(File(segment.base_offset, end, segment.size, latest))
        return tuple(files)

    def roll(self) -> None:
        """Begin a new file at the log's end, unless the newest is empty."""
        if self.segments[-1].batches:
            self._flush_file(self.segments[-1])
            self.segments.append(Segment(base_offset=self._end))
            self.changes += 1

    @property
    def segment_bytes(self) -> int:
        """At which size a new file begins."""
        return self._segment_bytes

    def configure(self, segment_bytes: int, segment_ms: int) -> None:
        """Begin new files at another size from now on; of their age the simulator knows nothing."""
        del segment_ms
        self._segment_bytes = segment_bytes

    def clean(self, upto: int, delay: TombstoneDelay, bytes_max: int) -> Cleaned:
        """Clean the closed files that end at an offset or before, in one step."""
        del bytes_max
        replacing, done = self._cleaner.clean(self.segments, upto, delay, self._segment_bytes)
        if replacing:
            self._check(f"a cleaning of {self.tp}", flush=True)
            for old, new in replacing:
                at = self.segments.index(old[0])
                self.segments[at : at + len(old)] = [new]
            self._flush_names()
            self.changes += 1
        return done

    def first_offset_at(self, timestamp_ms: int) -> Moment:
        """Return the first batch whose greatest timestamp is not earlier; NEVER_YET when there is none."""
        times = ((b.base_offset, content_of(b.payload).timestamp_ms) for b in self.batches)
        late = (Moment(max(offset, self._start), time) for offset, time in times if time >= timestamp_ms)
        return next(late, NEVER_YET)

    def epoch_runs(self, from_offset: int = 0) -> tuple[Entries, tuple[int, ...]]:
        """Return the runs of batches of one epoch from an offset on, as Recovery has them: epochs and ends."""
        changes: list[tuple[int, int]] = []
        ends: list[int] = []
        for batch in self.batches:
            if batch.last_offset < from_offset:
                continue
            if not changes or changes[-1][0] != batch.leader_epoch:
                changes.append((batch.leader_epoch, batch.base_offset))
                ends.append(0)
            ends[-1] = batch.next_offset
        return tuple(changes), tuple(ends)

    # --- truncate ------------------------------------------------------------------------------------------
    def truncate_to(self, offset: int, leo: LeoAfterCut) -> int:
        """Remove every batch whose last offset is `offset` or later; return the new log end offset."""
        if offset >= self._end:
            return self._end
        self.lose(offset)
        if offset < self.segments[0].base_offset:
            self.truncate_fully(offset)
            return self._end
        self._errors.check(CHANGES, f"a truncation of {self.tp}")
        self.kept_start = min(self.kept_start, offset)
        while self.segments[-1].base_offset > offset:
            self.remove_last_segment()
        if self._cleaner.cut(offset):
            leo = LeoAfterCut.PHYSICAL
        active = self.segments[-1]
        active.cut_from(offset)
        active.gone_bytes = 0  # what follows now begins where it ends
        self._end = offset if leo is LeoAfterCut.TARGET else max(active.next_offset, min(self._start, offset))
        self._start = min(self._start, self._end)
        self._cleaner.end(self._end)
        self.changes += 1
        return self._end

    def truncate_fully(self, offset: int) -> None:
        """Remove all batches; the log starts and ends at `offset`."""
        self._errors.check(CHANGES, f"a truncation of {self.tp}")
        self.lose(0)
        self.kept_start = min(self.kept_start, offset)
        self._bytes_deleted = 0
        self._cleaner.cut(0)
        self.begun += 1
        while self.segments:
            self.remove_last_segment()
        self.segments.append(Segment(base_offset=offset))
        self._start = self._end = offset
        self.changes += 1

    # --- the start -----------------------------------------------------------------------------------------
    def advance_start(self, offset: int) -> None:
        """Let the log start at an offset up to its end, durably, and delete the files that are below it."""
        assert offset <= self._end, f"{self.tp}: start {offset}; expected at most {self._end}, where the log ends"
        if offset <= self._start:
            return
        self._check(f"the start of {self.tp}", flush=True)
        self._start = self.kept_start = offset
        self.changes += 1
        self._cleaner.resume()
        size = sum(segment.size + segment.gone_bytes for segment in self.segments)
        if self.delete_below_start():
            self._bytes_deleted += size - sum(segment.size + segment.gone_bytes for segment in self.segments)
            self._flush_names()

    def delete_below_start(self) -> bool:
        """Delete the files that another one at or below the start follows; return False if there are none."""
        first = max((i for i, s in enumerate(self.segments) if s.base_offset <= self.kept_start), default=0)
        del self.segments[:first]
        return first > 0

    def lose(self, offset: int) -> None:
        """Note what is about to be cut from an offset on, if a damaged batch is among it."""
        if self.rotten:
            gone = [batch for batch in self.batches if batch.last_offset >= offset]
            if any(map(is_rotten, gone)):
                self.lost += [batch for batch in gone if not is_rotten(batch)]

    def remove_last_segment(self) -> None:
        """Remove the newest file; a power loss restores it until the directory is flushed."""
        gone = self.segments.pop()
        if gone.named:
            self.removed.append(gone)

    def delete(self) -> None:
        """Delete the replica from the disk, durably."""
        self._errors.check(CHANGES, f"a deletion of {self.tp}")
        self.deleted = True
        self.changes += 1

    # --- durability ----------------------------------------------------------------------------------------
    def flush(self, upto: int | None = None) -> None:
        """Make the records before `upto` durable (all, when None), the names of their files, and the epochs."""
        for segment in self.segments:
            if upto is None or segment.base_offset < upto:
                self._flush_file(segment)
        self.epochs_durable = self.epochs
        self._flush_names()

    def _flush_file(self, segment: Segment) -> None:
        if self._errors.armed is not None and self._errors.due(FLUSHES):
            segment.lose_pages(self._errors.chance)
            self.changes += 1
            raise self._errors.error(f"a flush of {self.tp}")
        segment.flush()

    def write_epochs(self, entries: Sequence[tuple[int, int]], *, flush: bool) -> None:
        """Replace the epoch file, durably when `flush`."""
        self._check(f"the epochs of {self.tp}", flush=flush)
        self.epochs = tuple((epoch, start) for epoch, start in entries)
        self.epochs_rotten = False
        self.changes += 1
        if flush:
            self.epochs_durable = self.epochs
            self._flush_names()

    def adopt(self, topic_id: int) -> None:
        """Write down, durably, the id of the topic that the log belongs to."""
        self._check(f"the topic's id of {self.tp}", flush=True)
        self.topic_id = topic_id
        self._flush_names()

    def _check(self, what: str, *, flush: bool) -> None:
        """Fail if a file that is replaced whole cannot be written, or be made durable: the old one stays."""
        self._errors.check(WRITES, f"a write of {what}")
        if flush:
            self._errors.check(FLUSHES, f"a flush of {what}")

    def _flush_names(self) -> None:
        for segment in self.segments:
            segment.named = True
        self.removed.clear()
        self.directory_durable = True
