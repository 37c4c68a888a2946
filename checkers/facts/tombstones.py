"""
From when on a tombstone may be gone: its delay is over then, which begins with the first cleaning that keeps it.

Under the older rule the delay counts from the times of files, which a history does not have: there, and where
clocks were wrong or a disk was slow, a tombstone may be gone as soon as a broker has compacted what it is in.
Source:  KIP-534; targets/broker/core/tombstones.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.facts.fact import fact
from checkers.facts.moments import margin_ns
from checkers.facts.view import setup_of
from harness.effect import Effect, nature_of
from harness.events import Injection, Installed, LogCleaned, Recovered
from harness.model import Op, events_of

NS_PER_MS: Final = 1_000_000
_AT_ONCE: Final = 0
# After which a broker cleans earlier or later than the history says.
_LATE: Final = frozenset({Effect.CLOCK_WRONG, Effect.DISK_SLOW})


def gone_from_ns(ops: Sequence[Op], offset: int) -> int | None:
    """Return from when on a tombstone at this offset may be gone, by the history's time; None: never here."""
    return min((ns for upto, ns in _over(ops) if upto > offset), default=None)


@fact
def _over(ops: Sequence[Op]) -> Sequence[tuple[int, int]]:
    """
    Return offsets before which tombstones may be gone, each with the time from which on they may.

    A broker that dies once the cleaned files have their names says nothing of them (checkers/facts/compacted.py):
    when it starts again, all that any broker compacted may have been cleaned.
    """
    setup = setup_of(ops)
    cleaned = [(op.time_ns, event.upto) for op, event in events_of(ops, LogCleaned)]
    if setup is None or setup.delete_retention_ms is None or not cleaned:
        return ()
    highest = max(upto for _, upto in cleaned)
    if not _by_horizon(ops):
        return ((highest, _AT_ONCE),)
    cleaned += [(op.time_ns, highest) for op, event in events_of(ops, Recovered) if not event.clean]
    # A horizon has whole milliseconds.
    delay_ns = (setup.delete_retention_ms - 1) * NS_PER_MS - margin_ns(ops)
    first: dict[int, int] = {}
    for time_ns, upto in sorted(cleaned):
        first.setdefault(upto, time_ns)
    return tuple((upto, time_ns + delay_ns) for upto, time_ns in first.items())


@fact
def has_horizons(ops: Sequence[Op]) -> bool:
    """Return True if a broker may have written into a batch when its tombstones may go."""
    setup = setup_of(ops)
    asked = setup is not None and setup.rules.get("tombstone_horizon") == "yes"
    return asked or next(iter(events_of(ops, Installed)), None) is not None


@fact
def _by_horizon(ops: Sequence[Op]) -> bool:
    """Return True if every broker had the rule all the time, its clock was right, and its disk was not slow."""
    setup = setup_of(ops)
    wrong = (op for op, _ in events_of(ops, Injection) if nature_of(op).effect in _LATE)
    right = next(iter(wrong), None) is None
    # The set-up has of the rules those that every node had all the time, whatever was installed.
    return right and setup is not None and setup.rules.get("tombstone_horizon") == "yes"
