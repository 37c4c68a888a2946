"""
Bit rot of a simulated disk: a flipped byte of a batch or of a checkpoint, and what opening the disk does about it.

The byte changes in the page cache and on the medium, so that a power loss keeps it.
Source:  targets/broker/log/recovery.py, for what opening does: after an unclean end all checksums are looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from harness.bit_rot import DIGIT_BIT, RECORD_BIT, Flip, Where
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.segment import Segment, file_name, is_rotten

CRC: Final = "crc"
EPOCHS_FILE: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS_FILE: Final = "replication-offset-checkpoint"
# Both kinds of file begin with a line of one digit, the version, and then have the number of entries.
_COUNT_AT: Final = 2


def flip_batch(log: SimLog, where: Where) -> Flip | None:
    """Flip a bit of the last record of the middle sound batch, in the newest segment of that kind that has any."""
    segments = log.segments[-1:] if where is Where.ACTIVE else log.segments[:-1]
    for segment in reversed(segments):
        sound = [at for at, batch in enumerate(segment.batches) if not is_rotten(batch)]
        if sound:
            return _flip(log, segment, sound[len(sound) // 2])
    return None


def _flip(log: SimLog, segment: Segment, at: int) -> Flip:
    old = segment.batches[at]
    payload = bytearray(old.payload)
    payload[-1] ^= RECORD_BIT
    new = replace(old, payload=bytes(payload))
    segment.batches[at] = new
    segment.durable = tuple(new if batch is old else batch for batch in segment.durable)
    log.rotten = True
    log.lost.append(old)
    log.changes += 1
    return Flip(
        path=f"{log.tp}/{file_name(segment)}",
        position=sum(batch.size for batch in segment.batches[: at + 1]) - 1,
        before=bytes(old.payload)[-1],
        after=payload[-1],
        base=new.base_offset,
        last=new.last_offset,
    )


def flip_epochs(log: SimLog) -> Flip | None:
    """Flip a bit of the number of entries in the epoch checkpoint; None if it has no entries."""
    if not log.epochs or log.epochs_rotten:
        return None
    log.epochs_rotten = True
    log.changes += 1
    return _count_flipped(f"{log.tp}/{EPOCHS_FILE}", len(log.epochs))


def flip_high_watermarks(count: int) -> Flip:
    """Return the flip of a bit of the number of entries in the checkpoint of high watermarks."""
    return _count_flipped(HIGH_WATERMARKS_FILE, count)


def cut_rot(log: SimLog) -> int:
    """Cut a log at its first damaged batch, as recovery does; return the bytes removed."""
    for index, segment in enumerate(log.segments):
        at = next((at for at, batch in enumerate(segment.batches) if is_rotten(batch)), None)
        if at is None:
            continue
        log.lose(segment.batches[at].base_offset)
        gone = sum(batch.size for batch in segment.batches[at:])
        gone += sum(later.size + later.damage_bytes for later in log.segments[index + 1 :])
        while len(log.segments) > index + 1:
            log.remove_last_segment()
        _keep(segment, at)
        if not segment.batches and index:
            log.remove_last_segment()
        log.changes += 1
        return gone
    return 0


def unreadable(file: str) -> str:
    """Return the word with which a recovery says that a checkpoint could not be read."""
    return "epoch-checkpoint-unreadable" if file == EPOCHS_FILE else f"{file}-unreadable"


def problem(file: str, count: int) -> str:
    """Return what a reader of the files says of a checkpoint whose count was flipped."""
    return f"{file}: {chr(ord(str(count)[0]) ^ DIGIT_BIT) + str(count)[1:]!r}; expected a whole number"


def _keep(segment: Segment, count: int) -> None:
    del segment.batches[count:]
    segment.size = sum(batch.size for batch in segment.batches)
    segment.damage, segment.damage_bytes = "", 0


def _count_flipped(path: str, count: int) -> Flip:
    before = ord(str(count)[0])
    return Flip(path=path, position=_COUNT_AT, before=before, after=before ^ DIGIT_BIT)
