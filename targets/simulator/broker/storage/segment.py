"""One file of a simulated log: its batches as written, and the part of them that a power loss leaves."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from random import Random
from typing import Final
from zlib import crc32

from targets.broker.core.log_port import OFFSETS_MAX
from targets.broker.core.messages import Batch

# What may follow the last batch of a file after a power loss, or a write that failed half way.
TORN: Final = "torn"
ZEROS: Final = "zeros"


@dataclass(slots=True, kw_only=True)
class Segment:
    """
    One file of batches.

    Attributes:
        durable: the batches that survive a power loss.
        named: the file's name survives too.
        damage: what follows the last batch after a power loss or a failed write (TORN, ZEROS), "" for nothing.
        damage_bytes: how many bytes the damage has.
        gone_bytes: what compaction has removed since the log was opened; positions behind it do not move.
    """

    base_offset: int
    batches: list[Batch] = field(default_factory=list)
    size: int = 0
    durable: tuple[Batch, ...] = ()
    named: bool = False
    damage: str = ""
    damage_bytes: int = 0
    gone_bytes: int = 0

    @property
    def next_offset(self) -> int:
        """Return the offset after the last batch, the base offset when there is none."""
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    def has_room(self, batch: Batch, size_max: int) -> bool:
        """Return True if the batch fits: by bytes (an empty segment takes any), and by its offsets' distance."""
        fits = not self.size or self.size + batch.size <= size_max
        return fits and batch.last_offset - self.base_offset <= OFFSETS_MAX

    def append(self, batch: Batch) -> None:
        """Append a batch."""
        self.batches.append(batch)
        self.size += batch.size

    def index_of(self, offset: int) -> int:
        """Return the index of the first batch whose last offset is `offset` or later."""
        return bisect_left(self.batches, offset, key=_last_offset)

    def cut_from(self, offset: int) -> None:
        """Remove every batch whose last offset is `offset` or later."""
        del self.batches[self.index_of(offset) :]
        self.size = sum(batch.size for batch in self.batches)

    def flush(self) -> None:
        """Make the file's contents durable."""
        self.durable = tuple(self.batches)

    def common(self) -> int:
        """Return how many batches, from the first on, equal the durable ones."""
        pairs = zip(self.batches, self.durable, strict=False)
        shorter = min(len(self.batches), len(self.durable))
        return next((i for i, (a, b) in enumerate(pairs) if a is not b), shorter)

    def lose_pages(self, chance: Random | None) -> None:
        """Lose what is not durable, or a random part of it; what is durable, and a cut of it, stays as it is."""
        common = self.common()
        survived = common if chance is None else chance.randint(common, len(self.batches))
        lost = self.batches[survived:]
        del self.batches[survived:]
        self.size = sum(batch.size for batch in self.batches)
        if lost and chance is not None:
            self.damage = chance.choice(("", TORN, ZEROS))
            self.damage_bytes = chance.randint(1, lost[0].size) if self.damage else 0


def _last_offset(batch: Batch) -> int:
    return batch.last_offset


def file_name(segment: Segment) -> str:
    """Return the name of a segment's file."""
    return f"{segment.base_offset:020d}.log"


def is_rotten(batch: Batch) -> bool:
    """Return True if the batch's bytes are not those that its checksum was made of."""
    return crc32(batch.payload) != batch.crc
