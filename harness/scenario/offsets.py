"""Where the records of a run lie: `end(m2)` and `start(m2)` as numbers, also before m2 is produced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.model import UsageError


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a group of records ends or starts: `end(m2)` is the offset after its last record."""

    side: str
    name: str

    def __str__(self) -> str:
        return f"{self.side}({self.name})"


# An offset as scenarios write it: a number, or where a group of records ends or starts.
Offset: TypeAlias = int | Mark


@dataclass(slots=True, kw_only=True)
class RecordOffsets:
    """
    Numbers of one run.

    Shapes:  counts are how many records each group has; offsets are those that were acknowledged, by group.
    """

    counts: Mapping[str, int]
    offsets: dict[str, list[int]] = field(default_factory=dict)

    def values(self, name: str) -> list[str]:
        """The values of a group of records: m2.0, m2.1, ..."""
        if name not in self.counts:
            raise UsageError(f"records {name!r}: expected a group of the head: {', '.join(self.counts)}")
        return [f"{name}.{number}" for number in range(self.counts[name])]

    def acknowledged(self, name: str, offsets: Sequence[int]) -> None:
        """Note where a group lies; nothing when nobody told, as with acks=0."""
        if offsets:
            self.offsets[name] = list(offsets)

    def expected(self, name: str, base: int) -> None:
        """Note where a group will lie that is under way."""
        self.offsets[name] = list(range(base, base + len(self.values(name))))

    def number(self, offset: Offset) -> int:
        """Return an offset as a number."""
        if isinstance(offset, int):
            return offset
        if offset.name in self.offsets:
            found = self.offsets[offset.name]
            return found[-1] + 1 if offset.side == "end" else found[0]
        # Not produced yet: where it will end follows from the draw, if it comes after all that is there.
        after = max((offsets[-1] + 1 for offsets in self.offsets.values()), default=0)
        return after + (len(self.values(offset.name)) if offset.side == "end" else 0)
