"""
What is known to be committed at the offsets of one partition, in bounded memory.

The last offsets are known one by one. What lies below is summarised: for each block of offsets, how many are known
and the sum of their digests, so that a read of a whole block is compared with it. When there are too many blocks,
each two neighbours become one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# Offsets of a partition that are known one by one.
WINDOW_OFFSETS: Final = 8192
# Blocks of a partition below them, and the offsets of one block at first.
BLOCKS_MAX: Final = 1024
BLOCK_OFFSETS: Final = 64
# Digests are integers of so many bits.
_BITS: Final = 64
_MASK: Final = (1 << _BITS) - 1


class Known(NamedTuple):
    """
    The record at an offset.

    Attributes:
        digest: of its offset and value.
        op: the index of the op that said so.
        acked: an acknowledgement said so, else a read.
    """

    digest: int
    op: int
    acked: bool


class Block(NamedTuple):
    """The records of some consecutive offsets: how many are known, the sum of their digests, the last op."""

    number: int = 0
    total: int = 0
    op: int = -1

    def plus(self, other: Block) -> Block:
        """Return the records of both."""
        return Block(self.number + other.number, (self.total + other.total) & _MASK, max(self.op, other.op))


class Unlike(NamedTuple):
    """Offsets [first, end) at which a read differs from what was known, since that op; acked as in `Known`."""

    first: int
    end: int
    op: int
    acked: bool | None


@dataclass(slots=True, kw_only=True)
class KnownRecords:
    """
    The committed records of one partition; what a fault may have ended is forgotten.

    Attributes:
        touched: how many entries were read or written so far, for the test of its cost.
    """

    window: int = WINDOW_OFFSETS
    blocks_max: int = BLOCKS_MAX
    stride: int = BLOCK_OFFSETS
    touched: int = 0
    _single: dict[int, Known] = field(default_factory=dict)
    _blocks: dict[int, Block] = field(default_factory=dict)
    _floor: int = 0

    def __len__(self) -> int:
        return len(self._single) + len(self._blocks)

    def forget(self) -> None:
        """Forget all: a fault may have ended any of it."""
        self._single.clear()
        self._blocks.clear()
        self._floor = 0

    def at(self, offset: int) -> Known | None:
        """Return what is known at an offset, None if it is nothing, or summarised."""
        self.touched += 1
        return self._single.get(offset)

    def learn(self, offset: int, value: str, index: int, *, acked: bool) -> Known | None:
        """Note what was acknowledged or read at an offset; return what was known there before, if that differs."""
        before = self.at(offset)
        if before is None:
            self._put(offset, Known(_digest(offset, value), index, acked))
            return None
        return None if before.digest == _digest(offset, value) else before

    def compare(self, records: Sequence[tuple[int, str]]) -> Unlike | None:
        """Return where a read, whose offsets rise, first differs from what is known; None if it does not."""
        shown: dict[int, Block] = {}
        for offset, value in records:
            known, digest = self.at(offset), _digest(offset, value)
            if known is not None and known.digest != digest:
                return Unlike(offset, offset + 1, known.op, known.acked)
            if known is None and offset < self._floor:
                place = offset // self.stride
                shown[place] = shown.get(place, Block()).plus(Block(1, digest))
        for place, block in shown.items():
            summed = self._blocks.get(place)
            self.touched += 1
            if summed is not None and block.number == summed.number == self.stride and block.total != summed.total:
                return Unlike(place * self.stride, (place + 1) * self.stride, summed.op, None)
        return None

    def skipped(self, records: Sequence[tuple[int, str]], end: int) -> tuple[int, Known] | None:
        """Return the first known offset between the first that a read shows and `end` that it does not show."""
        if not records:
            return None
        if end - records[0][0] - len(records) > len(self._single):
            shown = {offset for offset, _ in records}
            self.touched += len(self._single)
            lacks = (o for o in self._single if records[0][0] < o < end and o not in shown)
            first = min(lacks, default=None)
            return None if first is None else (first, self._single[first])
        for offset in _gaps(records, end):
            known = self.at(offset)
            if known is not None:
                return offset, known
        return None

    def _put(self, offset: int, known: Known) -> None:
        if offset < self._floor:
            return  # it may be summarised already
        self._single[offset] = known
        if len(self._single) > self.window:
            oldest = next(iter(self._single))
            self._summarise(oldest, self._single.pop(oldest))

    def _summarise(self, offset: int, known: Known) -> None:
        self._floor = max(self._floor, offset + 1)
        place = offset // self.stride
        self._blocks[place] = self._blocks.get(place, Block()).plus(Block(1, known.digest, known.op))
        self.touched += 1
        while len(self._blocks) > self.blocks_max:
            self.stride *= 2
            finer, self._blocks = self._blocks, {}
            for at, block in finer.items():
                self._blocks[at // 2] = self._blocks.get(at // 2, Block()).plus(block)
            self.touched += len(finer)


def _digest(offset: int, value: str) -> int:
    return hash((offset, value)) & _MASK


def _gaps(records: Sequence[tuple[int, str]], end: int) -> Iterator[int]:
    """Yield the offsets between the records of a read, and above them up to its end, that it does not show."""
    after = records[0][0]
    for offset, _ in records:
        if offset > after:
            yield from range(after, offset)
        after = offset + 1
    yield from range(after, end)
