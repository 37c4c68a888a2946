"""
One replica's log on files, in Kafka's layout: `topic-0/00000000000000000000.log`, `leader-epoch-checkpoint`.

Appends and truncations reach the page cache only; `flush` alone makes records durable.
A truncation below the recovery point on disk first lowers that point, durably: recovery trusts all records
before it, and new records may soon be there.
A truncation takes segments out from the last to the first: a crash in between leaves a shorter log, not one with
a gap. A new start is durable before segments below it are deleted. Files are unlinked beside the event loop
(`discards`), and opening deletes those that a crash left.
An epoch file written without a flush becomes durable before the records that its entries describe (KIP-101,
footnote to step 3).
Source:  Kafka, UnifiedLog and LocalLog; Kafka Replication Design V3, 4 (a disk error ends the broker).
Length:  all of the port; what can stand alone (reads, deletion, compaction, doubt) has a module of its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from targets.broker.core.log_port import (
    LATEST_FORMAT,
    NEVER_YET,
    AppendOrderError,
    Cleaned,
    DamagedError,
    File,
    LeoAfterCut,
    Moment,
)
from targets.broker.core.messages import NO_TOPIC_ID, Batch, TopicPartition
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log.batch import Stored, stamp
from targets.broker.log.compactor import Compactor
from targets.broker.log.discards import Discards
from targets.broker.log.doubt import whole
from targets.broker.log.older import as_messages
from targets.broker.log.options import APPEND_FILES_MAX, LogOptions
from targets.broker.log.reads import read
from targets.broker.log.segment import Segment, epoch_runs
from targets.broker.log.side_files import SideFiles
from targets.broker.log.stored import crc_of, first_offset_of
from targets.broker.log.together import side_by_side

_base_offset, _latest = attrgetter("base_offset"), attrgetter("latest")


class FileLog:
    """
    A LogPort on files; made by `create` or by recovery.

    Segments rise by base offset; there is at least one. Every record before recovery_point is durable.

    Raises:
        OSError: from the disk.
        LogInDoubtError: a change ended half way.
        AppendOrderError, DamagedError: see LogPort.
    """

    def __init__(
        self,
        *,
        tp: TopicPartition,
        directory: Path,
        segments: list[Segment],
        start_offset: int,
        recovery_point: int,
        options: LogOptions,
        new_names: bool,
        clean_to: int = 0,
        topic_id: int = NO_TOPIC_ID,
    ) -> None:
        assert segments, f"{directory}: no segment"
        self.tp = tp
        self.directory = directory
        self.deleted = False
        self.topic_id = topic_id
        self._segments = segments
        self._options = options
        self._start = start_offset
        self._end = max(segments[-1].next_offset, start_offset)
        self.recovery_point = min(recovery_point, self._end)
        self._beside = SideFiles(tp, directory, options, new_names=new_names)
        self._flushed: list[Segment] = []  # not reported yet
        self._compactor = Compactor(directory, options, min(clean_to, self._end))
        self._discards = Discards(directory, options.later)

    @staticmethod
    def create(tp: TopicPartition, directory: Path, options: LogOptions, *, start_offset: int = 0) -> FileLog:
        """Create an empty log; its directory must not exist yet."""
        with whole(tp, "a creation"):
            directory.mkdir()
            return FileLog(
                tp=tp,
                directory=directory,
                segments=[Segment(directory, start_offset, options.files, create=True)],
                start_offset=start_offset,
                recovery_point=start_offset,
                options=options,
                new_names=True,
            )

    @property
    def start_offset(self) -> int:
        """Return the first offset of the log."""
        return self._start

    @property
    def end_offset(self) -> int:
        """Return the log end offset (LEO); after a cut inside the last batch it may lie past that batch."""
        return self._end

    @property
    def moved_start(self) -> int | None:
        """Return the start offset if the first file does not say it, so that a checkpoint must keep it."""
        is_kept = self._start > self._segments[0].base_offset or self._discards.keep_names
        return self._start if is_kept else None

    @property
    def size_bytes(self) -> int:
        """Return the size of all segments in bytes."""
        return sum(segment.size for segment in self._segments)

    # --- append --------------------------------------------------------------------------------------------
    def append_as_leader(
        self, batches: Sequence[Batch], leader_epoch: int, message_format: int = LATEST_FORMAT
    ) -> tuple[int, int]:
        """
        Assign offsets and epoch to the batches and append them in this format: (first offset, new log end offset).

        Raises:
            FormatError: a batch does not fit into the format; nothing was written.
        """
        first = offset = self._end
        stored: list[Stored] = []
        older = message_format < LATEST_FORMAT
        for batch in batches:
            stored += as_messages(batch, offset) if older else [stamp(batch, offset, leader_epoch)]
            offset = stored[-1][0].next_offset
        self._append(stored)
        return first, self._end

    def append_as_follower(self, batches: Sequence[Batch]) -> tuple[int, int]:
        """
        Append the batches verbatim: (first offset, new log end offset); gaps before batches are accepted.

        Raises:
            AppendOrderError: a batch begins before the log's end; nothing was written.
        """
        first = first_offset_of(batches[0], self._end) if batches else self._end
        expected = self._end
        for batch in batches:
            if batch.base_offset < expected:
                raise AppendOrderError(
                    f"{self.tp}: batch {batch.base_offset}..{batch.last_offset}; "
                    f"expected its first offset at or past {expected}, where the log ends"
                )
            expected = batch.next_offset
        self._append([(batch, (batch.payload,)) for batch in batches])
        return first, self._end

    def _append(self, stored: Sequence[Stored]) -> None:
        """
        Append to the newest file, and to new ones; so many at most, as each has to wait for the disk.

        Then the last one takes what is left, except where offsets end what a file may hold.
        Source:  Kafka, UnifiedLog.append: it rolls at most once, and appends all to one file.
        """
        at, files, options = 0, 0, self._options
        with whole(self.tp, "an append"):
            while at < len(stored):
                at += self._segments[-1].append(stored[at:] if at else stored, options)
                self._end = max(self._end, self._segments[-1].next_offset)
                if at < len(stored):
                    self._add_segment(first_offset_of(stored[at][0], self._end))
                    files += 1
                    if files == APPEND_FILES_MAX:
                        options = options.without_limits()

    def _add_segment(self, base_offset: int) -> None:
        """
        Begin a new file, after the one before it was flushed.

        Else a power loss could keep the new file's name and not the records before it: a log that goes on where
        it has nothing.

        Source:  Kafka, UnifiedLog.roll, which flushes up to the new file's offset, in the background.
        """
        after = self._segments[-1] if self._segments else None
        if after is not None and after.dirty:
            after.flush()
            self._report_durable(after)
        self._segments.append(Segment(self.directory, base_offset, self._options.files, create=True, after=after))
        self._beside.change_names()

    def _take_out(self, first: int) -> None:
        """Remove the segments from that one on: their names are free at once, and their files go later."""
        gone, self._segments = self._segments[first:], self._segments[:first]
        if not gone:
            return
        for segment in gone:
            segment.close()
        self._discards.set_aside([segment.path.name for segment in reversed(gone)])
        self._beside.change_names()

    # --- read ----------------------------------------------------------------------------------------------
    def read(
        self, offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[Batch, ...]:
        """
        Read whole batches from the one that holds `offset`, within max_bytes.

        The first one is read however large it is, unless at_least_one is False. Batches that begin at or past
        end_offset are left out; () at the end. In a hole: the next batch.

        Raises:
            DamagedError: the first batch is no longer what was written; later ones end what is read.
        """
        return read(
            self._segments[self._segment_at(offset) :], offset, end_offset, max_bytes, at_least_one=at_least_one
        )

    def headers(self, offset: int) -> Iterator[Batch]:
        """Yield the batches from the one that holds `offset` on, each with its header as its payload."""
        for segment in self._segments[self._segment_at(offset) :]:
            yield from segment.headers(offset)

    def check(self, offset: int, max_bytes: int) -> tuple[int, int]:
        """Read batches as `read` does, to see that none is damaged: (offset to go on from, bytes read)."""
        batches = self.read(offset, self._end, max_bytes)
        return batches[-1].next_offset if batches else self._end, sum(batch.size for batch in batches)

    def mend(self, batch: Batch) -> bool:
        """Write a batch again, durably, where the same batch is damaged; return False if it is not the same."""
        segment = self._segments[self._segment_at(batch.base_offset)]
        try:
            entry = next(segment.index.since(batch.base_offset), None)
        except DamagedError:
            return False
        if entry is None or not entry.is_of(batch) or crc_of(batch.payload) != batch.crc:
            return False
        with whole(self.tp, "a repair"):
            segment.rewrite(entry, batch.payload)
            self._compactor.abandon()
            self._report_durable(segment)
        return True

    def position_of(self, offset: int) -> int:
        """Return how many bytes of the log lie before the first batch whose last offset is `offset` or later."""
        segment = self._segments[self._segment_at(offset)]
        return segment.log_position + segment.position_of(offset)

    def _segment_at(self, offset: int) -> int:
        """Return the index of the segment in which `offset` lies, or would lie; 0 before all of them."""
        return max(0, bisect_right(self._segments, offset, key=_base_offset) - 1)

    def files(self) -> tuple[File, ...]:
        """Return the files of the log, the oldest first."""
        ends = [segment.base_offset for segment in self._segments[1:]]
        return tuple(
            File(segment.base_offset, end, segment.size, segment.latest)
            for segment, end in zip(self._segments, [*ends, self._end], strict=True)
        )

    def roll(self) -> None:
        """Begin a new file at the log's end, unless the newest is empty."""
        if self._segments[-1].size:
            with whole(self.tp, "a new file"):
                self._add_segment(self._end)

    def first_offset_at(self, timestamp_ms: int) -> Moment:
        """Return the first batch whose greatest timestamp is not earlier; NEVER_YET when there is none."""
        at = bisect_left(self._segments, timestamp_ms, key=_latest)
        found = self._segments[at].index.at(timestamp_ms) if at < len(self._segments) else None
        return Moment(max(found.base_offset, self._start), found.latest) if found else NEVER_YET

    def epoch_runs(self, from_offset: int) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
        """Return the runs of batches of one epoch from an offset on, as Recovery has them: epochs and ends."""
        return epoch_runs(self._segments, from_offset)

    def configure(self, segment_bytes: int, segment_ms: int) -> None:
        """Begin new files at another size or age from now on; those that are there stay as they are."""
        self._options = replace(self._options, segment_bytes=segment_bytes, segment_ms=segment_ms)
        self._compactor.options = self._options

    # --- compaction ----------------------------------------------------------------------------------------
    def clean(self, upto: int, delay: TombstoneDelay, bytes_max: int) -> Cleaned:
        """Go on with a cleaning of the closed files that end at an offset or before, or begin one."""
        with whole(self.tp, "a cleaning"):
            done = self._compactor.clean(self._segments, upto, delay, bytes_max)
            if done.upto >= 0:
                self._options.after_cleaning(self.tp, done.upto)
            return done

    # --- truncate ------------------------------------------------------------------------------------------
    def truncate_to(self, offset: int, leo: LeoAfterCut) -> int:
        """
        Remove every batch whose last offset is `offset` or later; return the new log end offset.

        With TARGET the log ends at `offset`, even if a batch that straddles it is removed whole and leaves a hole;
        with PHYSICAL it ends where the last remaining batch ends, as it does if compaction removed what was behind
        that batch for the sake of records that go now.
        Source:  Kafka, LocalLog.truncateTo; KAFKA-6361.
        """
        if offset >= self._end:
            return self._end
        if offset < self._segments[0].base_offset:
            self.truncate_fully(offset)
            return self._end
        self._segments[self._segment_at(offset)].index.require(offset)
        with whole(self.tp, "a truncation"):
            self._options.before_cut(self.tp, offset)
            past = self._compactor.abandon(offset)
            if past:
                leo = LeoAfterCut.PHYSICAL
            self._take_out(bisect_right(self._segments, offset, key=_base_offset))
            active = self._segments[-1]
            durable = active.durable_bytes
            active.cut_from(offset)
            if active.durable_bytes < durable:
                self._report_durable(active)
            # Below its start all is deleted: a log that is cut there starts and ends at the offset.
            physical = max(active.next_offset, min(self._start, offset))
            self._end = offset if leo is LeoAfterCut.TARGET else physical
            self._start = min(self._start, self._end)
            self.recovery_point = min(self.recovery_point, self._end)
            if past:
                self._compactor.lower(self._end)
                self._options.after_cleaning(self.tp, self._end)
        return self._end

    def truncate_fully(self, offset: int) -> None:
        """Remove all batches; the log starts and ends at `offset`."""
        with whole(self.tp, "a truncation"):
            self._discards.finish()  # the start is about to be lowered, and their names may be needed
            self._options.before_cut(self.tp, min(offset, self._start))
            self._compactor.abandon(0)
            self._take_out(0)
            self._add_segment(offset)
            self._start = self._end = self.recovery_point = offset

    # --- the start -----------------------------------------------------------------------------------------
    def advance_start(self, offset: int) -> None:
        """
        Let the log start at an offset up to its end, durably, and delete the segments that hold nothing past it.

        Source:  Kafka, UnifiedLog.maybeIncrementLogStartOffset and deleteLogStartOffsetBreachedSegments. There the
                 new start becomes durable up to a minute later; here at once, so that what was deleted stays so.
        """
        assert offset <= self._end, f"{self.tp}: start {offset}; expected at most {self._end}, where the log ends"
        if offset <= self._start:
            return
        with whole(self.tp, "a move of the start"):
            self._options.before_start(self.tp, offset)
            self._compactor.abandon()
            self._start = offset
            self.recovery_point = max(self.recovery_point, offset)
            self._delete_below_start()

    def _delete_below_start(self) -> None:
        """Delete the segments that another one at or below the start follows; their files go later."""
        first = self._segment_at(self._start)
        gone, self._segments = self._segments[:first], self._segments[first:]
        for segment in gone:
            segment.close()
        self._discards.add(segment.path.name for segment in gone)

    def delete(self) -> None:
        """
        Delete the replica from the disk: its name is free at once; its files go once that is durable.

        Source:  Kafka, LogManager.asyncDelete: the next start removes what a crash in between left.
        """
        with whole(self.tp, "a deletion"):
            self.close()
            self.deleted = True
            self._beside.forget()
            self._discards.cancel()
            self._options.deletions.delete(self.directory, self.tp)
            self._options.after_deletion(self.tp)

    # --- durability ----------------------------------------------------------------------------------------
    def flush(self, upto: int | None = None) -> None:
        """
        Make the records before `upto` durable (all, when None), and the names of the files that hold them.

        Calls on_durable for each flushed segment; recovery_point rises to the first record that may be lost.
        """
        self._settle(upto, Segment.flush)
        self.report()

    def settle(self) -> None:
        """Make all records durable, as `flush` does, on any thread; who calls it reports it."""
        self._settle(None, Segment.flush_apart)

    def report(self) -> None:
        """Call on_durable for what has become durable."""
        self._beside.report()
        flushed, self._flushed = self._flushed, []
        for segment in flushed:
            self._report_durable(segment)

    def _settle(self, upto: int | None, sync: Callable[[Segment], None]) -> None:
        with whole(self.tp, "a flush"):
            self._beside.flush()
            dirty = [each for each in self._segments if each.dirty and (upto is None or each.base_offset < upto)]
            if len(dirty) > 1:  # after a crash, perhaps thousands
                sync = Segment.flush_apart
            side_by_side([partial(sync, segment) for segment in dirty])
            self._flushed += dirty
            self._beside.sync_names()
            left = next((segment.base_offset for segment in self._segments if segment.dirty), self._end)
            self.recovery_point = max(self.recovery_point, left)

    def write_epochs(self, entries: Sequence[tuple[int, int]], *, flush: bool) -> None:
        """Replace the epoch checkpoint file with (epoch, start offset) entries, durably when `flush`."""
        self._beside.write_epochs(entries, flush=flush)

    def adopt(self, topic_id: int) -> None:
        """Write down, durably, the id of the topic that this log belongs to, if any, and its files' names."""
        self.topic_id = topic_id
        self._beside.write_topic_id(topic_id)

    def close(self) -> None:
        """Close the files; nothing is flushed."""
        self._compactor.abandon()
        for segment in self._segments:
            segment.close()

    def _report_durable(self, segment: Segment) -> None:
        self._options.on_durable(f"{self.directory.name}/{segment.path.name}", segment.durable_bytes)
