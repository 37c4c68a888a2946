"""
The index of a segment's batches: the latest headers in memory, of older ones every 64th, and the rest in the file.

So a log of any length costs memory for a few batches alone. Who reads at the end of the log, as clients and
followers mostly do, reads memory; who reads further back has the headers of 64 batches read from the file again.
Source:  Kafka, OffsetIndex: one entry for every index.interval.bytes, 4096, and a scan of headers from there.
"""

from __future__ import annotations

import errno
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

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
        OSError: from the disk, also if the file no longer holds the headers that it held.
    """

    def __init__(self, name: str, read: Callable[[int, int], bytes]) -> None:
        self._name = name
        self._read = read
        self._blocks: list[_Block] = []
        # The entries after the blocks; some, if there is a block.
        self._tail: list[Entry] = []
        # The block that was read last, by its index, and its entries.
        self._opened: tuple[int, list[Entry]] = (_NO_BLOCK, [])

    @property
    def last(self) -> Entry | None:
        """Return the last entry, None if there is none."""
        return self._tail[-1] if self._tail else None

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
        block = bisect_left(self._blocks, offset, key=_last_offset_of_block)
        if block == len(self._blocks):
            del self._tail[bisect_left(self._tail, offset, key=_last_offset) :]
        else:
            entries = self._entries(block)
            self._keep(self._blocks[:block], entries[: bisect_left(entries, offset, key=_last_offset)])
        if not self._tail and self._blocks:
            self._keep(self._blocks[:-1], self._entries(len(self._blocks) - 1))

    def since(self, offset: int) -> Iterator[Entry]:
        """Yield the entries from the first whose last offset is `offset` or later."""
        block = bisect_left(self._blocks, offset, key=_last_offset_of_block)
        at = bisect_left(self._entries(block), offset, key=_last_offset)
        return self._from(block, at)

    def at(self, timestamp_ms: int) -> Entry | None:
        """Return the first entry up to which there is a timestamp that is not earlier, None without one."""
        block = bisect_left(self._blocks, timestamp_ms, key=_latest_of_block)
        entries = self._entries(block)
        at = bisect_left(entries, timestamp_ms, key=_latest)
        return entries[at] if at < len(entries) else None

    def _from(self, block: int, at: int) -> Iterator[Entry]:
        while block <= len(self._blocks):
            entries = self._entries(block)
            yield from entries[at:] if at else entries
            block, at = block + 1, 0

    def _keep(self, blocks: list[_Block], tail: list[Entry]) -> None:
        self._blocks, self._tail, self._opened = blocks, tail, (_NO_BLOCK, [])

    def _entries(self, block: int) -> list[Entry]:
        """Return the entries of a block, or those after all blocks."""
        if block == len(self._blocks):
            return self._tail
        if self._opened[0] != block:
            self._opened = (block, self._open(self._blocks[block]))
        return self._opened[1]

    def _open(self, block: _Block) -> list[Entry]:
        start, end = block.first.position, block.last.end
        whole = memoryview(self._read(start, end - start)) if end - start <= _READ_BYTES_MAX else None
        entries = [block.first]
        while entries[-1].position < block.last.position:
            before = entries[-1]
            at = before.end
            head = self._read(at, min(HEADER_BYTES, end - at)) if whole is None else whole[at - start :]
            header = examine(head, end - at)
            if isinstance(header, Damage):
                raise self._changed(f"at byte {at}: {header}", "the header of a batch")
            entries.append(Entry.of(header, at, before.last_offset + 1, before.latest))
        if entries[-1] != block.last:
            raise self._changed(f"before byte {end}: {entries[-1]}", str(block.last))
        return entries

    def _changed(self, what: str, expected: str) -> OSError:
        return OSError(
            errno.EIO, f"{self._name} {what}; expected {expected}, which stood here: who changed the file?"
        )


def _last_offset(entry: Entry) -> int:
    return entry.last_offset


def _last_offset_of_block(block: _Block) -> int:
    return block.last.last_offset


def _latest(entry: Entry) -> int:
    return entry.latest


def _latest_of_block(block: _Block) -> int:
    return block.last.latest
