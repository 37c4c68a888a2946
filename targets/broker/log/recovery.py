"""
Opening a log after any end of its broker: what is sound stays, the rest is cut, and the cut says why.

Rules:   after a clean shutdown nothing is checked but the shape of the headers; a log that fails even that
         is not believed to be clean.
         Otherwise every batch from the segment that holds the recovery point on must hold its CRC. The first
         that does not ends the log: its segment is cut there and later segments go.
         A truncation that a power loss undid leaves the old tail, whole and sound: it stays, and replication
         has to cut it again. A file that a later fsync left short just ends sooner.
Source:  Kafka, LogLoader and LogSegment.recover; KAFKA-10432, KAFKA-16541.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from targets.broker.core.log_port import Recovery
from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.batch import Damage
from targets.broker.log.cleanings import end_cleanings
from targets.broker.log.file_log import FileLog, LogOptions
from targets.broker.log.segment import Segment, segment_name, segment_offsets

CLEAN: Final = "clean"
BELOW_START: Final = "below-log-start"
EPOCHS_UNREADABLE: Final = "epoch-checkpoint-unreadable"

_LEFTOVERS: Final = (f"*{checkpoint.TEMPORARY_SUFFIX}", "*.deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """
    What the data directory's checkpoints say of one log, as far as they could be read.

    Shapes:  recovery_point None: unknown, so the whole log is scanned. notes name the files that could not be
             read; they join the Recovery's reason.
    """

    clean: bool
    recovery_point: int | None = None
    log_start: int = 0
    high_watermark: int = 0
    notes: tuple[str, ...] = ()


def open_log(tp: TopicPartition, directory: Path, known: Known, options: LogOptions) -> tuple[FileLog, Recovery]:
    """
    Open the log in a partition's directory and say what was found.

    Shapes:  Recovery.reason is "clean" or the damage's word, then "+" and a word for every checkpoint that
             could not be read. batch_epochs begin at the recovery point, at the log's start when the epoch
             checkpoint is missing or unreadable. high_watermark is as checkpointed, not clamped to the log.
    Raises:  OSError as the disk gives it.
    """
    for pattern in _LEFTOVERS:
        for path in directory.glob(pattern):
            path.unlink()
    end_cleanings(directory)
    loaded = _load(directory, known)
    segments, cut_bytes = loaded.segments, loaded.cut_bytes
    reason = loaded.damage.value if loaded.damage else CLEAN
    if not segments:
        segments = [Segment(directory, known.log_start, create=True)]
    file_epochs, epochs_note = _read_epochs(directory / checkpoint.EPOCHS_FILE)
    below_start = segments[-1].next_offset < known.log_start
    if below_start:
        reason, file_epochs = BELOW_START, ()
        cut_bytes += sum(segment.size for segment in segments)
        while segments:
            segments.pop().remove()
        segments = [Segment(directory, known.log_start, create=True)]
    log = FileLog(
        tp=tp,
        directory=directory,
        segments=segments,
        start_offset=max(segments[0].base_offset, known.log_start),
        recovery_point=segments[-1].next_offset if loaded.clean else loaded.recovery_point,
        options=options,
        new_names=not loaded.clean,
    )
    return log, Recovery(
        clean=loaded.clean,
        cut_bytes=cut_bytes,
        reason="+".join((reason, *epochs_note, *known.notes)),
        batch_epochs=log.epoch_changes(log.recovery_point if file_epochs else log.start_offset),
        file_epochs=file_epochs,
        high_watermark=known.high_watermark,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """Sound segments (none in a directory without any), and what went on the way to them."""

    segments: list[Segment]
    recovery_point: int
    cut_bytes: int = 0
    damage: Damage | None = None
    clean: bool = False


def _load(directory: Path, known: Known) -> _Loaded:
    recovery_point = known.recovery_point or 0
    if known.clean:
        segments, damage = _index(directory, check_from=None)
        if damage is None:
            for segment in segments:
                segment.trust()
            return _Loaded(segments=segments, recovery_point=recovery_point, clean=True)
        for segment in segments:
            segment.close()
        recovery_point = 0
    check_from = _segment_holding(segment_offsets(directory), recovery_point)
    segments, damage = _index(directory, check_from=check_from)
    return _Loaded(
        segments=segments,
        recovery_point=recovery_point,
        cut_bytes=_cut(directory, segments) if damage else 0,
        damage=damage,
    )


def _index(directory: Path, *, check_from: int | None) -> tuple[list[Segment], Damage | None]:
    """Open and index segments up to the first damage; CRCs are checked from base offset `check_from` on."""
    segments: list[Segment] = []
    for base in segment_offsets(directory):
        expected = segments[-1].next_offset if segments else 0
        segment = Segment(directory, base, create=False)
        segments.append(segment)
        if base < expected:
            # A segment that a truncation removed and a power loss brought back; nothing in it belongs here.
            return segments, Damage.DISORDER
        damage = segment.load(expected, check_crc=check_from is not None and base >= check_from)
        if damage:
            return segments, damage
    return segments, None


def _cut(directory: Path, segments: list[Segment]) -> int:
    """Cut the last of `segments` to what is sound in it and remove those after it; return the bytes gone."""
    gone = 0
    for base in reversed(segment_offsets(directory)):
        if base > segments[-1].base_offset:
            path = directory / segment_name(base)
            gone += path.stat().st_size
            path.unlink()
    damaged = segments[-1]
    gone += damaged.cut_to_entries()
    if not damaged.entries and len(segments) > 1:
        segments.pop().remove()
    return gone


def _segment_holding(bases: list[int], offset: int) -> int:
    """The base offset of the segment that holds `offset`, the first's when none does."""
    return max((base for base in bases if base <= offset), default=0)


def _read_epochs(path: Path) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    try:
        return checkpoint.read_epochs(path), ()
    except checkpoint.CheckpointError:
        return (), (EPOCHS_UNREADABLE,)
