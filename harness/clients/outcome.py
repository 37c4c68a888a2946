"""What a client knows about a batch after its request: acknowledged, certainly not appended, or unknown."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import OpType


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a batch; base is None without an offset."""

    type: OpType
    base: int | None = None
    error: str = ""

    def offset(self, at: int) -> int | None:
        """Return the offset of the batch's record at this place, counted from 0; None if it is not known."""
        return None if self.base is None else self.base + at
