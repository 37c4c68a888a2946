"""The offsets of a run's records: `end(m2)` and `start(m2)` as numbers, even before m2 is produced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.keys import keyed
from harness.model import UsageError


@dataclass(frozen=True, slots=True)
class Mark:
    """The end or start of a group of records: `end(m2)` is the offset after its last record."""

    side: str
    name: str

    def __str__(self) -> str:
        return f"{self.side}({self.name})"


# An offset as scenarios write it: a number, or the end or start of a group of records.
Offset: TypeAlias = int | Mark


@dataclass(slots=True, kw_only=True)
class RecordOffsets:
    """
    The offsets of one run's records.

    Attributes:
        counts: group -> how many records it has.
        keys: of how many keys they are, 0 for none.
        tombstones: the groups whose records are tombstones.
        offsets: group -> the offsets of its records, acknowledged or expected.
    """

    counts: Mapping[str, int]
    keys: int = 0
    tombstones: Collection[str] = ()
    offsets: dict[str, list[int]] = field(default_factory=dict)

    def values(self, name: str) -> list[str]:
        """Return the values of a group of records: m2.0, m2.1, ...; with keys k1/m2.0, ..., as harness/keys.py."""
        if name not in self.counts:
            raise UsageError(f"records {name!r}: expected a group of the head: {', '.join(self.counts)}")
        share = 1.0 if name in self.tombstones else 0.0
        return [keyed(f"{name}.{number}", self.keys, share) for number in range(self.counts[name])]

    def acknowledged(self, name: str, offsets: Sequence[int]) -> None:
        """Record the acknowledged offsets of a group; do nothing if there are none, as with acks=0."""
        if offsets:
            self.offsets[name] = list(offsets)

    def expected(self, name: str, base: int) -> None:
        """Record the expected offsets, from `base` on, of a group that is under way."""
        self.offsets[name] = list(range(base, base + len(self.values(name))))

    def number(self, offset: Offset) -> int:
        """Return an offset as a number."""
        if isinstance(offset, int):
            return offset
        if offset.name in self.offsets:
            found = self.offsets[offset.name]
            return found[-1] + 1 if offset.side == "end" else found[0]
        # Not produced yet: its number of records is drawn already, and it is appended after all known records.
        after = max((offsets[-1] + 1 for offsets in self.offsets.values()), default=0)
        return after + (len(self.values(offset.name)) if offset.side == "end" else 0)
