"""
Opening a log after a clean or unclean end of its broker: sound batches stay, the rest is cut, with the reason.

After a clean shutdown only the shape of the headers is checked; a log that fails that check counts as unclean.
Otherwise the CRC of every batch is checked, from the segment that holds the recovery point. The first failure
ends the log: its segment is cut there and later segments are removed.
A truncation that a power loss undid leaves the old tail, whole and sound: it stays, and replication has to
truncate it again. A file that was not flushed in full is just shorter.
Source:  Kafka, LogLoader and LogSegment.recover; KAFKA-10432, KAFKA-16541.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from targets.broker.core.log_port import Recovery
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.sequences import Sequences
from targets.broker.log import checkpoint
from targets.broker.log.batch import Damage
from targets.broker.log.beneath import Folder
from targets.broker.log.cleanings import end_cleanings
from targets.broker.log.file_log import FileLog
from targets.broker.log.names import segment_name, segment_offsets
from targets.broker.log.options import LogOptions
from targets.broker.log.segment import Segment
from targets.broker.log.survey import is_leftover

CLEAN: Final = "clean"
BELOW_START: Final = "below-log-start"
EPOCHS_UNREADABLE: Final = "epoch-checkpoint-unreadable"
TOPIC_ID_UNREADABLE: Final = "partition-metadata-unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """
    The data directory's checkpoints of one log, as far as they could be read.

    Attributes:
        recovery_point: None if unknown: then the whole log is scanned.
        clean_to: how far the log was compacted.
        notes: the files that could not be read; they join the Recovery's reason.
    """

    clean: bool
    recovery_point: int | None = None
    log_start: int = 0
    high_watermark: int = 0
    clean_to: int = 0
    notes: tuple[str, ...] = ()


def open_log(tp: TopicPartition, directory: Path, known: Known, options: LogOptions) -> tuple[FileLog, Recovery]:
    """
    Open the log in a partition's directory and report what was found.

    Returns:
        The log, and a Recovery: its reason is "clean" or the damage's word, then "+" and a word for every
        checkpoint that could not be read. Its batch_epochs begin at the recovery point, or at the log's start
        when the epoch checkpoint is missing or unreadable. Its high_watermark is as checkpointed, not bounded
        by the log.

    Raises:
        RefusedError: a file is none of ours.
        OSError: from the disk.
    """
    with Folder(directory) as folder:
        for name in filter(is_leftover, folder.names()):
            folder.unlink(name)
    end_cleanings(directory)
    _delete_below(directory, known.log_start)
    loaded = _load(directory, known, options)
    sequences = loaded.sequences
    segments, cut_bytes = loaded.segments, loaded.cut_bytes
    reason = loaded.damage.value if loaded.damage else CLEAN
    if not segments:
        segments = [Segment(directory, known.log_start, options.files, create=True)]
    file_epochs, epochs_note = _read_epochs(directory / checkpoint.EPOCHS_FILE)
    topic_id, topic_note = _read_topic_id(directory / checkpoint.TOPIC_ID_FILE)
    below_start = segments[-1].next_offset < known.log_start
    if below_start:
        reason = BELOW_START
        if file_epochs:  # of records that are gone; the next start would believe them
            file_epochs = ()
            checkpoint.write_epochs(directory / checkpoint.EPOCHS_FILE, file_epochs, flush=True)
        cut_bytes += sum(segment.size for segment in segments)
        while segments:
            segments.pop().remove()
        segments = [Segment(directory, known.log_start, options.files, create=True)]
        sequences = Sequences(producers_max=options.producers_max)
    log = FileLog(
        tp=tp,
        directory=directory,
        segments=segments,
        start_offset=max(segments[0].base_offset, known.log_start),
        recovery_point=segments[-1].next_offset if loaded.clean else loaded.recovery_point,
        options=options,
        new_names=not loaded.clean,
        clean_to=known.clean_to,
        topic_id=topic_id,
    )
    batch_epochs, batch_ends = log.epoch_runs(log.recovery_point if file_epochs else log.start_offset)
    return log, Recovery(
        clean=loaded.clean,
        cut_bytes=cut_bytes,
        reason="+".join((reason, *epochs_note, *topic_note, *known.notes)),
        batch_epochs=batch_epochs,
        batch_ends=batch_ends,
        file_epochs=file_epochs,
        high_watermark=known.high_watermark,
        sequences=sequences,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """Sound segments (none in a directory without any), and what loading removed."""

    segments: list[Segment]
    sequences: Sequences
    recovery_point: int
    cut_bytes: int = 0
    damage: Damage | None = None
    clean: bool = False


def _delete_below(directory: Path, start: int) -> None:
    """Delete the segments that another one at or below the log's start follows: a crash left them."""
    bases = segment_offsets(directory)
    gone = [base for base, following in pairwise(bases) if following <= start]
    if not gone:
        return
    with Folder(directory) as folder:
        for base in gone:
            folder.unlink(segment_name(base))
        folder.sync()


def _load(directory: Path, known: Known, options: LogOptions) -> _Loaded:
    recovery_point = known.recovery_point or 0
    if known.clean:
        segments, sequences, damage = _index(directory, options, check_from=None)
        if damage is None:
            for segment in segments:
                segment.trust()
            return _Loaded(segments=segments, sequences=sequences, recovery_point=recovery_point, clean=True)
        for segment in segments:
            segment.close()
        recovery_point = 0
    check_from = _segment_holding(segment_offsets(directory), recovery_point)
    segments, sequences, damage = _index(directory, options, check_from=check_from)
    return _Loaded(
        segments=segments,
        sequences=sequences,
        recovery_point=recovery_point,
        cut_bytes=_cut(directory, segments) if damage else 0,
        damage=damage,
    )


def _index(
    directory: Path, options: LogOptions, *, check_from: int | None
) -> tuple[list[Segment], Sequences, Damage | None]:
    """Open and index segments up to the first damage; check CRCs from base offset `check_from` on."""
    segments: list[Segment] = []
    sequences = Sequences(producers_max=options.producers_max)
    for base in segment_offsets(directory):
        before = segments[-1] if segments else None
        expected = before.next_offset if before else 0
        segment = Segment(directory, base, options.files, create=False, after=before)
        segments.append(segment)
        if base < expected:
            # A truncation removed this segment and a power loss restored it; no record of it belongs here.
            return segments, sequences, Damage.DISORDER
        check_crc = check_from is not None and base >= check_from
        damage = segment.load(expected, sequences, check_crc=check_crc)
        if damage:
            return segments, sequences, damage
    return segments, sequences, None


def _cut(directory: Path, segments: list[Segment]) -> int:
    """Cut the last of `segments` after its sound part and remove later segments; return the bytes removed."""
    gone = 0
    with Folder(directory) as folder:
        for base in reversed(segment_offsets(directory)):
            if base > segments[-1].base_offset:
                name = segment_name(base)
                gone += folder.size(name)
                folder.unlink(name)
    damaged = segments[-1]
    gone += damaged.cut_to_entries()
    if damaged.index.last is None and len(segments) > 1:
        segments.pop().remove()
    return gone


def _segment_holding(bases: list[int], offset: int) -> int:
    """Return the base offset of the segment that holds `offset`, the first segment's if none does."""
    return max((base for base in bases if base <= offset), default=0)


def _read_epochs(path: Path) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    try:
        return checkpoint.read_epochs(path), ()
    except checkpoint.CheckpointError:
        return (), (EPOCHS_UNREADABLE,)


def _read_topic_id(path: Path) -> tuple[int, tuple[str, ...]]:
    """Read the topic's id; a log whose id cannot be read has none, and is given that of the next command."""
    try:
        return checkpoint.read_topic_id(path), ()
    except checkpoint.CheckpointError:
        return NO_TOPIC_ID, (TOPIC_ID_UNREADABLE,)
