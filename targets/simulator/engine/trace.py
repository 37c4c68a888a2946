"""
A rolling hash of all events of a world, to compare two runs of one seed step by step.

    NONE  nothing is kept; no cost               EVENTS  each event, its time and node, and recorded ops
    FULL  every event and every effect of every core, whole
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
from itertools import zip_longest
from typing import Final

DIGEST_BYTES: Final = 16


class Detail(IntEnum):
    """How much of each step is hashed."""

    NONE = 0
    EVENTS = 1
    FULL = 2


class Trace:
    """
    Hash steps as text.

    Args:
        keep: also keep every step's text in `lines`, to find the first difference.
    """

    def __init__(self, detail: Detail = Detail.NONE, *, keep: bool = False) -> None:
        self.detail = detail
        self.lines: list[str] = []
        self._keep = keep
        self._hash = blake2b(digest_size=DIGEST_BYTES)

    def note(self, line: str) -> None:
        """Add a step."""
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self._keep:
            self.lines.append(line)

    @property
    def digest(self) -> str:
        """Return the hash of every step so far."""
        return self._hash.copy().hexdigest()


def first_difference(ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    """Return the first step in which two kept traces differ; None if they are equal."""
    for number, (a, b) in enumerate(zip_longest(ours, theirs)):
        if a != b:
            return f"step {number}:\n  {a or 'nothing'}\n  {b or 'nothing'}"
    return None
