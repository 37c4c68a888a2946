"""
One segment: a file of record batches, and an index of their headers.

Writes go to the page cache and stay there until `flush`; the file's length is always the end of its last batch,
also after a cut.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from targets.broker.core.log_port import OFFSETS_MAX, Damaged
from targets.broker.core.messages import Batch, Payload
from targets.broker.core.sequences import Sequences
from targets.broker.log.batch import HEADER_BYTES, Damage, Header, Stored
from targets.broker.log.beneath import unlink
from targets.broker.log.checkpoint import sync_file
from targets.broker.log.index import Entry, Index, damaged
from targets.broker.log.names import segment_name
from targets.broker.log.open_files import OpenFiles
from targets.broker.log.options import LogOptions
from targets.broker.log.stored import (
    changed,
    crc_from,
    crc_of_pieces,
    examine,
    first_offset,
    max_timestamp_of,
    producer_of,
)

# The greatest timestamp of no batch at all, earlier than any.
_NEVER: Final = -(2**63) - 1
# The most pieces of one write.
_PIECES_MAX: Final = os.sysconf("SC_IOV_MAX")
# What is read at once of a batch whose checksum is computed: a file that is not ours may have one of 2 GB.
_READ_BYTES: Final = 1024 * 1024
# The leader epoch of a batch without one; what is below is no epoch.
_NO_EPOCH: Final = -1


class Segment:
    """
    A segment's file, which is open while it is among those that were used most recently.

    Attributes:
        base_offset: the number in the file's name, the lowest offset that the segment may hold.
        log_position: the size of all segments before it.

    The segments before one do not change while it is there.

    Raises:
        OSError: from the disk; the broker ends.
        DamagedError: a header that has to be read again has changed.
    """

    def __init__(
        self, directory: Path, base_offset: int, files: OpenFiles, *, create: bool, after: Segment | None = None
    ) -> None:
        self.base_offset = base_offset
        self.log_position: int = after.log_position + after.size if after else 0
        self._latest_before = after.latest if after else _NEVER
        self.path = directory / segment_name(base_offset)
        self._files = files
        self.size: int = os.fstat(files.create(self) if create else self._fd).st_size
        self.index = Index(self.name, self._read)
        self._first_time = _NEVER  # the greatest timestamp of the first batch
        # The length of the prefix that is known to be durable. Bytes found at opening may or may not be.
        self.durable_bytes = 0
        self.dirty = True

    @property
    def name(self) -> str:
        """Return the file's path, relative to the data directory."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def _fd(self) -> int:
        return self._files.descriptor(self)

    @property
    def latest(self) -> int:
        """Return the greatest timestamp of all batches of the log up to this segment's end."""
        return self.index.last.latest if self.index.last else self._latest_before

    @property
    def next_offset(self) -> int:
        """Return the offset after the last batch, the base offset when there is none."""
        return self.index.last.last_offset + 1 if self.index.last else self.base_offset

    def load(self, expected_offset: int, sequences: Sequences, *, check_crc: bool) -> Damage | None:
        """
        Index the batches in the file up to the first unsound one; return its damage.

        Batches past the damage stay in the file until `cut_to_entries`.

        Args:
            expected_offset: the lowest offset that the first batch may have.
            sequences: notes each batch.
        """
        self.index.clear()
        position, expected = 0, max(expected_offset, self.base_offset)
        while position < self.size:
            header = examine(os.pread(self._fd, HEADER_BYTES, position), self.size - position)
            if isinstance(header, Damage):
                return header
            if check_crc and self._crc_at(position, header) != header.crc:
                return Damage.CRC
            if header.leader_epoch < _NO_EPOCH:  # which no checksum covers
                return Damage.DISORDER
            if header.base_offset < expected or header.last_offset - self.base_offset > OFFSETS_MAX:
                return Damage.DISORDER
            if not position:
                self._first_time = header.max_timestamp
            self.index.add((Entry.of(header, position, expected, self.latest),))
            position += header.size
            end = header.last_offset + 1
            base = first_offset(header.magic, header.base_offset, expected)
            sequences.note(header.producer_id, header.producer_epoch, header.base_sequence, base, end)
            expected = end
        return None

    def append(self, stored: Sequence[Stored], options: LogOptions) -> int:
        """
        Append batches with as few writes as possible; return how many fitted.

        An empty segment takes any one batch. A batch that does not fit, and all after it, are for another segment.
        Source:  Kafka, LogSegment.shouldRoll: by size, by offsets, and by the time since its first batch.
        """
        pieces: list[Payload] = []
        entries: list[Entry] = []
        end, end_offset, latest = self.size, self.next_offset, self.latest
        for batch, its_pieces in stored:
            if not self._has_room(batch, end, options.segment_bytes):
                break
            if not end:
                self._first_time = max_timestamp_of(batch.payload)
            elif options.segment_ms and self._is_over(batch, options.segment_ms):
                break
            entries.append(Entry.of_batch(batch, end, end_offset, latest))
            end_offset, latest = batch.next_offset, entries[-1].latest
            pieces += its_pieces
            end += batch.size
        if entries:
            self._write(pieces)
            assert self.size == end, f"{self.size} bytes with what was written; the headers say {end}"
            self.index.add(entries)
        return len(entries)

    def _has_room(self, batch: Batch, end: int, size_max: int) -> bool:
        """Return True if the batch fits, by its bytes and by its offsets' distance from the base."""
        fits = not end or end + batch.size <= size_max
        return fits and batch.last_offset - self.base_offset <= OFFSETS_MAX

    def _is_over(self, batch: Batch, most_ms: int) -> bool:
        """Return True if a batch's time is too long after that of the segment's first one."""
        return self._first_time >= 0 and max_timestamp_of(batch.payload) - self._first_time > most_ms

    def _write(self, pieces: Sequence[Payload]) -> None:
        at, fd = self.size, self._fd
        for first in range(0, len(pieces), _PIECES_MAX):
            group = pieces[first : first + _PIECES_MAX]
            written = os.pwritev(fd, group, at)
            rest = memoryview(b"") if written == sum(map(len, group)) else memoryview(b"".join(group))[written:]
            at += written
            while rest:  # a short write: the disk is full, which the next write reports, or a signal came
                written = os.pwrite(fd, rest, at)
                rest, at = rest[written:], at + written
        self.size = at
        self.dirty = True

    def batches(self, entries: Sequence[Entry]) -> tuple[list[Batch], Damaged | None]:
        """
        Read the batches of entries that follow each other with one read, uncopied.

        Returns:
            The batches before the first one whose bytes have changed, and that one.
        """
        found: list[Batch] = []
        if not entries:
            return found, None
        start = entries[0].position
        view = memoryview(self._read(start, entries[-1].end - start))
        for entry in entries:
            payload = view[entry.position - start : entry.end - start]
            if text := changed(payload, entry.base_offset, entry.leader_epoch, entry.crc):
                return found, damaged(self.name, entry, text)
            found.append(_batch(entry, payload))
        return found, None

    def headers(self, offset: int) -> Iterator[Batch]:
        """Yield the batches from the first whose last offset is `offset` or later, each with its header alone."""
        for entry in self.index.since(offset):
            yield _batch(entry, self._read(entry.position, min(entry.size, HEADER_BYTES)))

    def rewrite(self, entry: Entry, payload: Payload) -> None:
        """Write the bytes of a batch once more in its place, and make the file durable."""
        rest, at = memoryview(payload), entry.position
        while rest:
            written = os.pwrite(self._fd, rest, at)
            rest, at = rest[written:], at + written
        self.flush()

    def position_of(self, offset: int) -> int:
        """Return the position of the first batch whose last offset is `offset` or later; the end without one."""
        first = next(self.index.since(offset), None)
        return first.position if first else self.size

    def cut_from(self, offset: int) -> None:
        """Remove every batch whose last offset is `offset` or later, and the file's bytes with them."""
        self.index.cut_from(offset)
        self.cut_to_entries()

    def cut_to_entries(self) -> int:
        """Cut the file to the end of its last indexed batch; return the number of bytes removed."""
        end = self.index.last.end if self.index.last else 0
        gone = self.size - end
        if gone:
            os.ftruncate(self._fd, end)
            self.size = end
            self.durable_bytes = min(self.durable_bytes, end)
            self.dirty = True
        return gone

    def flush(self) -> None:
        """Make the file's bytes and length durable; flushing the directory makes its name durable."""
        os.fsync(self._fd)
        self.trust()

    def flush_apart(self) -> None:
        """Do the same through a descriptor of its own, so that files may be flushed on several threads at once."""
        sync_file(self.path)
        self.trust()

    def trust(self) -> None:
        """Count the whole file as durable: it was flushed, or the shutdown was clean."""
        self.durable_bytes = self.size
        self.dirty = False

    def close(self) -> None:
        """Close the file without flushing it."""
        self._files.close(self)

    def remove(self) -> None:
        """Close the file and remove its name."""
        self.close()
        unlink(self.path)

    def _crc_at(self, position: int, header: Header) -> int:
        """Return the checksum of a batch's bytes, of which no more are read at once than need be."""
        first, end = position + crc_from(header.magic), position + header.size
        pieces = (self._read(at, min(_READ_BYTES, end - at)) for at in range(first, end, _READ_BYTES))
        return crc_of_pieces(header.magic, pieces)

    def _read(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) != size:
            text = f"{self.path.name}: {len(data)} bytes at {position}; expected {size}"
            raise OSError(errno.EIO, text)
        return data


def epoch_runs(
    segments: Iterable[Segment], from_offset: int
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """
    Return the batches from an offset on as runs of one epoch.

    Returns:
        (leader epoch, base offset of the first batch) of each, and the offset after the last batch of each.
    """
    changes: list[tuple[int, int]] = []
    ends: list[int] = []
    for segment in segments:
        for entry in segment.index.since(from_offset):
            if not changes or changes[-1][0] != entry.leader_epoch:
                changes.append((entry.leader_epoch, entry.base_offset))
                ends.append(0)
            ends[-1] = entry.last_offset + 1
    return tuple(changes), tuple(ends)


def _batch(entry: Entry, payload: Payload) -> Batch:
    """Return the batch of an entry, whose producer its bytes name."""
    producer_id, producer_epoch, base_sequence = producer_of(payload)
    return Batch(
        base_offset=entry.base_offset,
        last_offset=entry.last_offset,
        leader_epoch=entry.leader_epoch,
        crc=entry.crc,
        size=entry.size,
        payload=payload,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
