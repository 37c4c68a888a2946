"""
The index of a segment's batches: the latest headers in memory, of older ones every 64th, and the rest in the file.

So a log of any length costs memory for a few batches alone. Who reads at the end of the log, as clients and
followers mostly do, reads memory; who reads further back has the headers of 64 batches read from the file again.
Source:  Kafka, OffsetIndex: one entry for every index.interval.bytes, 4096, and a scan of headers from there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from targets.broker.core.log_port import Damaged, DamagedError
from targets.broker.core.messages import Batch
from targets.broker.log.batch import HEADER_BYTES, Damage, Header
from targets.broker.log.stored import examine, first_offset, first_offset_of, max_timestamp_of

BLOCK_BATCHES: Final = 64
# A block of no more bytes is read at once, a larger one header by header.
_READ_BYTES_MAX: Final = 64 * 1024
_NO_BLOCK: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    A batch's position in its segment, and its header's fields. last_offset is inclusive.

    Attributes:
        latest: the greatest timestamp of this batch and all before it in the log.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    position: int
    size: int
    latest: int

    @property
    def end(self) -> int:
        """Return the position after the batch's last byte."""
        return self.position + self.size

    def is_of(self, batch: Batch) -> bool:
        """Return True if a batch has the offsets, the epoch, the checksum and the size of this one."""
        ours = (self.base_offset, self.last_offset, self.leader_epoch, self.crc, self.size)
        return ours == (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc, batch.size)

    @staticmethod
    def of(header: Header, position: int, end_offset: int, latest: int) -> Entry:
        """Return the entry of a batch with that header, at that byte of the segment, after what ends there."""
        return Entry(
            base_offset=first_offset(header.magic, header.base_offset, end_offset),
            last_offset=header.last_offset,
            leader_epoch=header.leader_epoch,
            crc=header.crc,
            position=position,
            size=header.size,
            latest=max(latest, header.max_timestamp),
        )

    @staticmethod
    def of_batch(batch: Batch, position: int, end_offset: int, latest: int) -> Entry:
        """Return the entry of a whole batch, at that byte of the segment, after what ends there."""
        return Entry(
            base_offset=first_offset_of(batch, end_offset),
            last_offset=batch.last_offset,
            leader_epoch=batch.leader_epoch,
            crc=batch.crc,
            position=position,
            size=batch.size,
            latest=max(latest, max_timestamp_of(batch.payload)),
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """BLOCK_BATCHES batches that follow each other; those between the first and the last are in the file alone."""

    first: Entry
    last: Entry


class Index:
    """
    The entries of a segment's batches, in their order.

    Args:
        name: the segment's, for errors.
        read: returns exactly so many bytes at a position of the segment's file, or raises OSError.

    Raises:
        OSError: from the disk.
        DamagedError: the file no longer holds a header that it held; what comes before it is known.
    """

    def __init__(self, name: str, read: Callable[[int, int], bytes]) -> None:
        self._name = name
        self._read = read
        self._blocks: list[_Block] = []
        # The entries after the blocks.
        self._tail: list[Entry] = []
        # The block that was read last, by its index, and its entries.
        self._opened: tuple[int, list[Entry]] = (_NO_BLOCK, [])

    @property
    def last(self) -> Entry | None:
        """Return the last entry, None if there is none."""
        if self._tail:
            return self._tail[-1]
        return self._blocks[-1].last if self._blocks else None

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries that follow the last one."""
        self._tail += entries
        while len(self._tail) >= 2 * BLOCK_BATCHES:
            self._blocks.append(_Block(self._tail[0], self._tail[BLOCK_BATCHES - 1]))
            del self._tail[:BLOCK_BATCHES]

    def clear(self) -> None:
        """Remove all entries."""
        self._keep([], [])

    def cut_from(self, offset: int) -> None:
        """
        Remove the entries whose last offset is `offset` or later.

        The file must still hold what is removed: the entries before it in its block may have to be read.
        """
        block, kept = self._before(offset)
        if block == len(self._blocks):
            del self._tail[kept:]
        else:
            self._keep(self._blocks[:block], self._entries(block)[0][:kept])

    def require(self, offset: int) -> None:
        """Raise DamagedError if it cannot be told which entries end before an offset."""
        self._before(offset)

    def _before(self, offset: int) -> tuple[int, int]:
        """Return the first block with entries that end at `offset` or later, and how many others it has."""
        block = bisect_left(self._blocks, offset, key=_last_offset_of_block)
        entries, wrong = self._entries(block)
        if wrong is not None and wrong.offset < offset:
            raise DamagedError(wrong)
        return block, bisect_left(entries, offset, key=_last_offset)

    def since(self, offset: int) -> Iterator[Entry]:
        """Yield the entries from the first whose last offset is `offset` or later."""
        block = bisect_left(self._blocks, offset, key=_last_offset_of_block)
        at = bisect_left(self._entries(block)[0], offset, key=_last_offset)
        return self._from(block, at)

    def at(self, timestamp_ms: int) -> Entry | None:
        """Return the first entry up to which there is a timestamp that is not earlier, None without one."""
        block = bisect_left(self._blocks, timestamp_ms, key=_latest_of_block)
        entries, wrong = self._entries(block)
        at = bisect_left(entries, timestamp_ms, key=_latest)
        if at == len(entries) and wrong is not None:
            raise DamagedError(wrong)
        return entries[at] if at < len(entries) else None

    def _from(self, block: int, at: int) -> Iterator[Entry]:
        while block <= len(self._blocks):
            entries, wrong = self._entries(block)
            yield from entries[at:] if at else entries
            if wrong is not None:
                raise DamagedError(wrong)
            block, at = block + 1, 0

    def _keep(self, blocks: list[_Block], tail: list[Entry]) -> None:
        self._blocks, self._tail, self._opened = blocks, tail, (_NO_BLOCK, [])

    def _entries(self, block: int) -> tuple[list[Entry], Damaged | None]:
        """Return the entries of a block, or those after all blocks; up to the header that changed, if one did."""
        if block == len(self._blocks):
            return self._tail, None
        if self._opened[0] == block:
            return self._opened[1], None
        entries, wrong = self._open(self._blocks[block])
        if wrong is None:
            self._opened = (block, entries)
        return entries, wrong

    def _open(self, block: _Block) -> tuple[list[Entry], Damaged | None]:
        start, end = block.first.position, block.last.end
        whole = memoryview(self._read(start, end - start)) if end - start <= _READ_BYTES_MAX else None
        entries = [block.first]
        while entries[-1].position < block.last.position:
            before = entries[-1]
            at = before.end
            head = self._read(at, min(HEADER_BYTES, end - at)) if whole is None else whole[at - start :]
            header = examine(head, end - at)
            if isinstance(header, Damage) or header.base_offset <= before.last_offset:
                what = header.value if isinstance(header, Damage) else f"base offset {header.base_offset}"
                return entries, self._changed(before, f"{what} in place of its header")
            entries.append(Entry.of(header, at, before.last_offset + 1, before.latest))
        if entries[-1] != block.last:
            known = [entry for entry in entries if entry.end <= block.last.position]
            return known, self._changed(known[-1], f"{entries[-1]} in place of its header")
        return entries, None

    def _changed(self, before: Entry, what: str) -> Damaged:
        """Return the batch after an entry, whose header has changed; how long it is nobody knows."""
        at, offset = before.end, before.last_offset + 1
        return Damaged(offset=offset, end=offset + 1, path=self._name, position=at, what=what)


def damaged(path: str, entry: Entry, what: str) -> Damaged:
    """Return a batch whose header is known as damaged."""
    end = entry.last_offset + 1
    return Damaged(offset=entry.base_offset, end=end, path=path, position=entry.position, what=what)


def _last_offset(entry: Entry) -> int:
    return entry.last_offset


def _last_offset_of_block(block: _Block) -> int:
    return block.last.last_offset


def _latest(entry: Entry) -> int:
    return entry.latest


def _latest_of_block(block: _Block) -> int:
    return block.last.latest
