"""
From when on a tombstone may be gone: its delay is over then, which begins with the first cleaning that keeps it.

Under the older rule the delay counts from the times of files, which a history does not have: there, and where
clocks were wrong or a disk was slow, a tombstone may be gone as soon as a broker has compacted what it is in. What
its absence does to a replica that copies the log is another matter: that a deleted key comes back is excused by no
rule of the brokers (checkers/rules/compacted.py).
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
    if _by_horizon(ops):
        return promised_to_ns(ops, offset)
    setup = setup_of(ops)
    ever = setup is not None and setup.delete_retention_ms is not None
    return _AT_ONCE if ever and any(event.upto > offset for _, event in events_of(ops, LogCleaned)) else None


def promised_to_ns(ops: Sequence[Op], offset: int) -> int | None:
    """
    Return to when a tombstone at this offset has to stay, whatever rule the brokers have; None: for ever.

    It is what an operator is told of `delete.retention.ms`, and what the older rule breaks (KAFKA-4545).
    """
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
    if not _is_timed(ops):
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
    """Return True if every broker had the rule all the time, and the history says when it cleaned."""
    return _is_timed(ops) and _all_write_horizons(ops)


@fact
def _is_timed(ops: Sequence[Op]) -> bool:
    """Return True if all brokers had one rule all the time, their clocks were right, and no disk was slow."""
    wrong = (op for op, _ in events_of(ops, Injection) if nature_of(op).effect in _LATE)
    changed = next(iter(events_of(ops, Installed)), None)
    return next(iter(wrong), None) is None and (changed is None or _all_write_horizons(ops))


def _all_write_horizons(ops: Sequence[Op]) -> bool:
    # The set-up has of the rules those that every node had all the time, whatever was installed.
    setup = setup_of(ops)
    return setup is not None and setup.rules.get("tombstone_horizon") == "yes"
