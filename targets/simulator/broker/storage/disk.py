"""
A node's disk: its replicas' logs and the high watermark checkpoint; power loss, and opening after it.

Without randomness a power loss takes everything that was not flushed: appends, names, truncations, epoch files; as
FS_IOC_SHUTDOWN does. With randomness any part of it may have become durable by itself: some batches, a torn one,
zeros; a truncation or its undoing; a name or none.
The high watermark checkpoint is flushed by every write; that flushes nothing else.
Opening trusts only sound batches; after a clean shutdown, which has flushed all, it trusts the epoch file too.
Source:  docs/power-loss.md; Kafka, LogLoader; targets/broker/log/recovery.py for the same on files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Final, TypeAlias
from zlib import crc32

from harness.bit_rot import Flip, Where
from harness.logs.replica import BatchSeen, ReplicaLog
from targets.broker.core.log_port import LATEST_FORMAT, Recovery
from targets.broker.core.messages import NO_TOPIC_ID, Batch, TopicPartition
from targets.broker.core.sequences import Sequences
from targets.simulator.broker.storage import rot
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import content_of
from targets.simulator.broker.storage.segment import TORN, ZEROS, Segment, file_name, is_rotten
from targets.simulator.engine.disk_errors import FLUSHES, WRITES, DiskErrors

SEGMENT_BYTES: Final = 64 * 1024 * 1024
CLEAN: Final = "clean"
BELOW_START: Final = "below-log-start"
HIGH_WATERMARKS_FILE: Final = "replication-offset-checkpoint"
EPOCHS_FILE: Final = "leader-epoch-checkpoint"
CLEAN_MARKER: Final = ".kafka_cleanshutdown"
TOPIC_ID_FILE: Final = "partition.metadata"
Epochs: TypeAlias = tuple[tuple[int, int], ...]
TOPIC_ID_FILE_BYTES: Final = len("version: 0\ntopic_id: \n") + 22


class SimDisk:
    """
    The disk port of one node, which outlives its process.

    Args:
        on_durable: called with (path, length) for each flush of the node; None: not called.
        errors: those that the disk is to report.
        clean: the marker of a clean shutdown is there; opening takes it away.
        notes: one for each checkpoint of the whole disk that could not be read when it was opened last.
        high_watermarks_rotten: a byte of the checkpoint as it is was flipped.
    """

    def __init__(self, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.logs: dict[TopicPartition, SimLog] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.on_durable: Callable[[str, int], None] | None = None
        self.errors = DiskErrors()
        self.clean = False
        self.notes: tuple[str, ...] = ()
        self.high_watermarks_rotten = False
        self.segment_bytes = segment_bytes
        self._seen: dict[TopicPartition, tuple[SimLog, int, int | None, ReplicaLog]] = {}

    # --- while the node runs -------------------------------------------------------------------------------
    def create(self, tp: TopicPartition, topic_id: int = NO_TOPIC_ID) -> SimLog:
        """Create an empty log; a deleted one of that name leaves no high watermark."""
        if tp in self.high_watermarks:
            self.write_high_watermarks((of, at) for of, at in self.high_watermarks.items() if of != tp)
        self.errors.check(WRITES, f"the creation of {tp}")
        log = self.logs[tp] = SimLog(tp, self.segment_bytes, errors=self.errors)
        if topic_id != NO_TOPIC_ID:
            log.adopt(topic_id)
            if self.on_durable is not None:
                self.on_durable(f"{tp}/{TOPIC_ID_FILE}", TOPIC_ID_FILE_BYTES)
        return log

    def write_high_watermarks(self, high_watermarks: Iterable[tuple[TopicPartition, int]]) -> None:
        """Replace the high watermark checkpoint, durably."""
        self.errors.check(WRITES, f"a write of {HIGH_WATERMARKS_FILE}")
        self.errors.check(FLUSHES, f"a flush of {HIGH_WATERMARKS_FILE}")
        self.high_watermarks = dict(high_watermarks)
        self.high_watermarks_rotten = False
        if self.on_durable is not None:
            self.on_durable(HIGH_WATERMARKS_FILE, sum(len(f"{tp}") + 4 for tp in self.high_watermarks))

    def flush_log(self, tp: TopicPartition, upto: int) -> bool:
        """Make a log durable; False if it no longer exists."""
        log = self.logs.get(tp)
        if log is None or log.deleted:
            return False
        log.flush(upto)
        if self.on_durable is not None:
            for segment in log.segments:
                self.on_durable(f"{tp}/{file_name(segment)}", segment.size)
        return True

    def close_cleanly(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Make everything durable, and leave the marker of a clean shutdown last."""
        for tp, log in sorted(self.logs.items()):
            if not log.deleted:
                self.flush_log(tp, log.end_offset + 1)
        self.write_high_watermarks(high_watermarks.items())
        self.clean = True
        if self.on_durable is not None:
            self.on_durable(CLEAN_MARKER, 0)

    # --- from outside --------------------------------------------------------------------------------------
    def sync(self) -> int:
        """Make the whole disk durable; return how many batches were not."""
        self._forget_deleted()
        late = sum(len(s.batches) - s.common() for log in self.logs.values() for s in log.segments)
        for log in self.logs.values():
            log.flush()
        return late

    def unflushed(self) -> tuple[str, ...]:
        """Return the files of logs whose batches are not those that are durable, each with its log's changes."""
        self._forget_deleted()
        return tuple(
            f"{tp}/{file_name(segment)}, change {log.changes},"
            for tp, log in sorted(self.logs.items())
            for segment in log.segments
            if segment.durable != tuple(segment.batches)
        )

    def lose_power(self, chance: Random | None, *, torn: bool = False) -> str:
        """
        Lose what was not flushed: all of it, or a random part; return what was lost.

        Args:
            torn: names and sizes become durable, and a log that loses batches ends in a torn one, or in zeros.
        """
        self._forget_deleted()
        before = {tp: len(log.batches) for tp, log in self.logs.items()}
        for tp, log in list(self.logs.items()):
            if not (log.directory_durable or torn or (chance is not None and chance.random() < 0.5)):
                del self.logs[tp]
                continue
            log.directory_durable = True
            if chance is None:
                _lose_all(log)
            elif torn:
                _lose_pages(log, chance, (TORN, ZEROS), log.epochs, least=1)
            else:
                _lose_some(log, chance)
            log.changes += 1
        after = {tp: len(log.batches) for tp, log in self.logs.items()}
        undone = sum(before.get(tp, 0) != after.get(tp, 0) for tp in sorted(before.keys() | after.keys()))
        damaged = sum(segment.damage_bytes for log in self.logs.values() for segment in log.segments)
        tail = f", {damaged} bytes torn or zeros" if torn else ""
        return f"{sum(before.values())} batches became {sum(after.values())}, {undone} logs changed{tail}"

    def empty(self) -> int:
        """Become a new disk, with nothing on it; return how many logs the old one had."""
        self._forget_deleted()
        lost = len(self.logs)
        self.logs.clear()
        self.high_watermarks = {}
        self.high_watermarks_rotten = self.clean = False
        self._seen.clear()
        return lost

    def delete_active_segment(self, topic: str, partition: int) -> str | None:
        """Remove a log's newest file, as an operator's `rm`; return its name, None when there is no log."""
        log = self.logs.get(TopicPartition(topic, partition))
        if log is None or log.deleted or not log.segments:
            return None
        gone = log.segments.pop()
        log.removed.clear()
        log.changes += 1
        return file_name(gone)

    def flip(self, topic: str, partition: int, where: Where) -> Flip | None:
        """Flip a byte of a log, or of its checkpoint; None if there is no batch there."""
        log = self.logs.get(TopicPartition(topic, partition))
        if log is None or log.deleted:
            return None
        if where is not Where.CHECKPOINT:
            return rot.flip_batch(log, where)
        if (
            (flipped := rot.flip_epochs(log)) is not None
            or not self.high_watermarks
            or self.high_watermarks_rotten
        ):
            return flipped
        self.high_watermarks_rotten = True
        return rot.flip_high_watermarks(len(self.high_watermarks))

    def _forget_deleted(self) -> None:
        for tp in [tp for tp, log in self.logs.items() if log.deleted]:
            del self.logs[tp]

    # --- opening -------------------------------------------------------------------------------------------
    def open(self) -> tuple[tuple[SimLog, Recovery], ...]:
        """Open and recover every log: sound batches stay, the rest is cut, with the reason; take the marker."""
        self._forget_deleted()
        clean, self.clean = self.clean, False
        self.notes = ()
        if self.high_watermarks_rotten:
            text = rot.problem(HIGH_WATERMARKS_FILE, len(self.high_watermarks))
            self.notes = (f"{rot.unreadable(HIGH_WATERMARKS_FILE)}: {text}",)
            self.high_watermarks = {}
        return tuple((log, self._recover(log, clean=clean)) for _, log in sorted(self.logs.items()))

    def _recover(self, log: SimLog, *, clean: bool) -> Recovery:
        log.configure(self.segment_bytes, 0)  # what its topic has of its own is read later
        log.delete_below_start()
        reason, cut_bytes = _cut_damage(log)
        if log.rotten and not clean and (rot_bytes := rot.cut_rot(log)):
            reason, cut_bytes = rot.CRC, cut_bytes + rot_bytes
        if log.epochs_rotten:
            log.epochs, log.epochs_rotten = None, False
            reason = f"{reason}+{rot.unreadable(rot.EPOCHS_FILE)}"
        if self.high_watermarks_rotten:
            reason = f"{reason}+{rot.unreadable(HIGH_WATERMARKS_FILE)}"
        if not log.segments:
            log.segments.append(Segment(base_offset=log.kept_start))
        if log.segments[-1].next_offset < log.kept_start:
            reason = BELOW_START
            if log.epochs:
                log.epochs = log.epochs_durable = ()
            cut_bytes += sum(segment.size for segment in log.segments)
            while log.segments:
                log.remove_last_segment()
            log.segments.append(Segment(base_offset=log.kept_start))
        log.reopen()
        # After a clean shutdown the recovery point is the log's end, and the epoch file is trusted.
        runs = ((), ()) if clean and log.epochs else log.epoch_runs(0 if log.epochs else log.start_offset)
        return Recovery(
            clean=clean,
            cut_bytes=cut_bytes,
            reason=reason,
            batch_epochs=runs[0],
            batch_ends=runs[1],
            file_epochs=log.epochs or (),
            high_watermark=self.high_watermarks.get(log.tp, 0),
            sequences=Sequences.of(log.batches),
        )

    # --- reading the files ---------------------------------------------------------------------------------
    def replica_log(self, topic: str, partition: int) -> ReplicaLog | None:
        """Return a log as its files hold it; None while there is none."""
        tp = TopicPartition(topic, partition)
        log = self.logs.get(tp)
        if log is None or log.deleted:
            return None
        high_watermark = self.high_watermarks.get(tp)
        seen = self._seen.get(tp)
        if seen is None or seen[0] is not log or seen[1:3] != (log.changes, high_watermark):
            seen = self._seen[tp] = (log, log.changes, high_watermark, scan(log, high_watermark))
        if self.high_watermarks_rotten:
            text = rot.problem(HIGH_WATERMARKS_FILE, len(self.high_watermarks))
            return replace(seen[3], high_watermark=None, problems=(*seen[3].problems, text))
        return seen[3]


def scan(log: SimLog, high_watermark: int | None) -> ReplicaLog:
    """Read a log as the log reader reads a real one's files."""
    found: list[BatchSeen] = []
    problems: list[str] = []
    unread: list[tuple[int, int | None]] = []
    end = log.segments[0].base_offset if log.segments else 0
    start = max(log.kept_start, end)
    for index, segment in enumerate(log.segments):
        end, position = max(end, segment.base_offset), 0
        for batch in segment.batches:
            if is_rotten(batch):
                text = f"batch's CRC-32C is {batch.crc:#010x}, its bytes have {crc32(batch.payload):#010x}"
                problems.append(f"{file_name(segment)}, position {position}: {text}")
                unread.append((batch.base_offset, batch.next_offset))
                position += batch.size
                end = max(end, batch.next_offset)
                continue
            content = content_of(batch.payload)
            problem = ""
            if batch.base_offset < end:
                problem = f"base offset is {batch.base_offset}; expected {end} or later"
            found.append(
                BatchSeen(
                    base=batch.base_offset,
                    last=batch.last_offset,
                    epoch=batch.leader_epoch,
                    magic=content.magic,
                    crc=batch.crc,
                    codec=content.codec,
                    position=position,
                    segment=file_name(segment),
                    records=tuple(
                        (batch.base_offset + delta, digest, value) for delta, digest, value in content.records
                    ),
                    problem=problem,
                    single=content.magic < LATEST_FORMAT,
                )
            )
            position += batch.size
            end = max(end, batch.last_offset + 1)
        if segment.damage:
            following = _following(log, index)
            problems.append(f"{file_name(segment)}, position {position}: {segment.damage}")
            unread.append((end, following))
    epochs = log.epochs
    if log.epochs_rotten:
        epochs = None
        problems.append(rot.problem(rot.EPOCHS_FILE, len(log.epochs or ())))
    if not log.segments:
        problems.append(f"{log.tp}: no segment; expected at least one .log file")
    return ReplicaLog(
        topic=log.tp.topic,
        partition=log.tp.partition,
        log_start_offset=start,
        log_end_offset=max(start, end),
        batches=tuple(found),
        epochs=epochs,
        high_watermark=high_watermark,
        problems=tuple(problems),
        unread=tuple(unread),
    )


def _following(log: SimLog, index: int) -> int | None:
    """Return the first offset of the segment after one, None if it is the last."""
    return log.segments[index + 1].base_offset if index + 1 < len(log.segments) else None


def _lose_all(log: SimLog) -> None:
    kept = [segment for segment in (*log.segments, *log.removed) if segment.named]
    for segment in kept:
        _become(segment, segment.durable)
    _settle(log, kept, log.epochs_durable)


def _lose_some(log: SimLog, chance: Random) -> None:
    """Lose a random part: names and sizes become durable in order, up to some moment; data in any order."""
    epochs = log.epochs if chance.random() < 0.5 else log.epochs_durable
    if chance.random() < 0.5:
        gone = chance.randint(0, len(log.removed))
        del log.removed[:gone]
        _lose_all(log)
        _settle(log, log.segments, epochs)
        return
    _lose_pages(log, chance, ("", TORN, ZEROS), epochs)


def _lose_pages(
    log: SimLog, chance: Random, damages: tuple[str, ...], epochs: Epochs | None, *, least: int = 0
) -> None:
    """Lose at least so many of each file's unflushed batches, and leave one of these kinds of damage there."""
    for segment in log.segments:
        common = segment.common()
        survived = chance.randint(common, max(common, len(segment.batches) - least))
        lost = segment.batches[survived:]
        _become(segment, tuple(segment.batches[:survived]))
        if lost:
            segment.damage = chance.choice(damages)
            segment.damage_bytes = chance.randint(1, lost[0].size) if segment.damage else 0
    _settle(log, log.segments, epochs)


def _become(segment: Segment, batches: tuple[Batch, ...]) -> None:
    segment.batches, segment.durable = list(batches), batches
    segment.size = sum(batch.size for batch in batches)
    segment.named = True


def _settle(log: SimLog, segments: list[Segment], epochs: tuple[tuple[int, int], ...] | None) -> None:
    log.segments = sorted(segments, key=lambda segment: segment.base_offset)
    log.removed.clear()
    log.epochs = log.epochs_durable = epochs


def _cut_damage(log: SimLog) -> tuple[str, int]:
    """Cut a log at its first damage; return the damage and the number of bytes removed."""
    for index, segment in enumerate(log.segments):
        if segment.damage:
            reason = segment.damage
            gone = segment.damage_bytes + sum(
                later.size + later.damage_bytes for later in log.segments[index + 1 :]
            )
            segment.damage, segment.damage_bytes = "", 0
            while len(log.segments) > index + 1:
                log.remove_last_segment()
            if not segment.batches and index:
                log.remove_last_segment()
            return reason, gone
    return CLEAN, 0
