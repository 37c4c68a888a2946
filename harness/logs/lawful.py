"""
What the protocol allows of copies from different moments: a ruling on each difference, each lag and each note.

A record below a replica's high watermark is committed: every later leader has it, and no replica may ever hold
another one at its offset. What a replica has from its high watermark on is not: it truncates that when it next
follows a leader that has something else. So that two replicas differ at an offset is forbidden if both high
watermarks lie past it, and lawful if one of them does not.

A high watermark is as its checkpoint has it. That is written late and never early, so that a ruling of "forbidden"
is proved, and one of "lawful" says that these copies prove nothing. An unclean election, which an operator allows,
loses committed records by the protocol's own rules.

Source:  KIP-101, "Why does Kafka need the leader epoch?"; Kafka Replication Design V3, "high watermark".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from harness.logs.lineage import Behind, Difference, Holding
from harness.logs.soundness import Note

HighWatermarks = Mapping[str, int | None]


class Law(StrEnum):
    """Whether the protocol allows what was found."""

    LAWFUL = "lawful"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the protocol says of the offsets [first, end) of a finding, and why."""

    first: int
    end: int
    law: Law
    why: str


def of_difference(difference: Difference, high_watermarks: HighWatermarks) -> tuple[Ruling, ...]:
    """Return the rulings on a difference, by offset: forbidden, then unknown, then lawful, each if any."""
    pairs = [
        (one.replica, other.replica) for one, other in combinations(difference.holdings, 2) if _apart(one, other)
    ]
    forbidden, which = max(
        ((low, pair) for pair in pairs if (low := _both_committed(pair, high_watermarks)) is not None),
        default=(difference.first, ("", "")),
    )
    unknown = max((_perhaps(pair, difference.end, high_watermarks) for pair in pairs), default=difference.first)
    return tuple(_rulings(difference, forbidden, which, unknown, high_watermarks))


def of_behind(behind: Behind, high_watermarks: HighWatermarks) -> Ruling:
    """Return the ruling on a replica that ends before another: it is always lawful."""
    highest = max((mark for mark in high_watermarks.values() if mark is not None), default=0)
    why = "a follower may be behind"
    if behind.log_end_offset < highest:
        why = f"out of the in-sync replicas, or copied earlier: a high watermark is {highest}"
    return Ruling(first=behind.log_end_offset, end=behind.furthest, law=Law.LAWFUL, why=why)


def of_note(note: Note) -> Ruling:
    """Return the ruling on what a replica says against itself, or on a remark."""
    if note.after_crash:
        law, why = Law.UNKNOWN, "lawful only after a loss of unflushed writes, until the replica has recovered"
    elif note.kind is None:
        law, why = Law.LAWFUL, "no fault"
    else:
        law, why = Law.FORBIDDEN, "no protocol leaves this in one log"
    return Ruling(first=note.first, end=note.end, law=law, why=why)


def overall(rulings: Iterable[Ruling]) -> Law:
    """Return the worst of all: forbidden, else unknown, else lawful."""
    found = {ruling.law for ruling in rulings}
    return next((law for law in (Law.FORBIDDEN, Law.UNKNOWN) if law in found), Law.LAWFUL)


def _apart(one: Holding, other: Holding) -> bool:
    return one.group != other.group


def _both_committed(pair: tuple[str, str], high_watermarks: HighWatermarks) -> int | None:
    """Return the offset below which both are committed, None if that is not known."""
    low, high = (high_watermarks.get(name) for name in pair)
    return None if low is None or high is None else min(low, high)


def _perhaps(pair: tuple[str, str], end: int, high_watermarks: HighWatermarks) -> int:
    """Return the offset below which both may be committed, as a high watermark is not known; 0 if both are."""
    marks = [high_watermarks.get(name) for name in pair]
    if None not in marks:
        return 0
    return max((mark for mark in marks if mark is not None), default=end)


def _rulings(
    difference: Difference, forbidden: int, which: tuple[str, str], unknown: int, high_watermarks: HighWatermarks
) -> Iterator[Ruling]:
    at, end = difference.first, difference.end
    if (stop := min(forbidden, end)) > at:
        marks = " and ".join(f"{name}'s high watermark {high_watermarks[name]}" for name in which)
        yield Ruling(first=at, end=stop, law=Law.FORBIDDEN, why=f"committed on both sides: below {marks}")
        at = stop
    if (stop := min(unknown, end)) > at:
        missing = [each.replica for each in difference.holdings if high_watermarks.get(each.replica) is None]
        why = f"the high watermark of {', '.join(missing)} is not known"
        yield Ruling(first=at, end=stop, law=Law.UNKNOWN, why=why)
        at = stop
    if end > at:
        above = [
            f"{each.replica} at {mark}"
            for each in difference.holdings
            if (mark := high_watermarks.get(each.replica)) is not None and mark < end
        ]
        why = f"not committed from the high watermark on ({', '.join(above)}); truncated when it next follows"
        yield Ruling(first=at, end=end, law=Law.LAWFUL, why=why)
