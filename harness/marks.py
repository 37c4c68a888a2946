"""Where the records of a run lie: `end(m2)` and `start(m2)` as numbers, also before m2 is produced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.model import UsageError

_MARK: Final = re.compile(r"(?P<side>end|start)\((?P<name>\w+)\)")


@dataclass(slots=True, kw_only=True)
class Marks:
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

    def number(self, word: str) -> int:
        """Give a number as scenarios write it: `4`, `end(m1)`, `start(m2)`."""
        mark = _MARK.fullmatch(word)
        if mark is None:
            if word.isdecimal():
                return int(word)
            raise UsageError(f"number {word!r}; expected 4, end(m1) or start(m1)")
        name = mark["name"]
        if name in self.offsets:
            found = self.offsets[name]
            return found[-1] + 1 if mark["side"] == "end" else found[0]
        # Not produced yet: where it will end follows from the draw, if it comes after all that is there.
        after = max((offsets[-1] + 1 for offsets in self.offsets.values()), default=0)
        return after + (len(self.values(name)) if mark["side"] == "end" else 0)
