"""
What compaction may have removed: below an offset up to which a broker compacted, each record with a newer one.

A record without a key, and the newest of its key, may not be gone. What nobody saw is taken for removable, and so
is a record of a key of which another one was sent and seen nowhere, as that may have been the newer one.
Source:  Kafka, LogCleaner; harness/keys.py, which says how a value tells its key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from checkers.facts.fact import fact
from checkers.facts.polls import first_polls, shown_by_reads
from checkers.facts.sent import sent_values
from checkers.facts.view import final_logs
from harness.events import LogCleaned
from harness.keys import key_of
from harness.model import Op, events_of, ranges_of


class _Known(NamedTuple):
    """
    What is known of a partition's records.

    Attributes:
        values: the values that were seen at each offset.
        newest: key -> the highest offset at which one of its records was seen.
        doubtful: the keys of which a record was sent, may have been appended, and was seen nowhere.
    """

    values: Mapping[int, frozenset[str]]
    newest: Mapping[str, int]
    doubtful: frozenset[str]


@fact
def compacted_before(ops: Sequence[Op]) -> int:
    """Return the highest offset up to which a broker compacted the partition, 0 for none."""
    return max((event.upto for _, event in events_of(ops, LogCleaned)), default=0)


def may_be_removed(ops: Sequence[Op], offset: int, value: str) -> bool:
    """Return True if compaction may have removed this record from any log; offset -1: it is not known."""
    key = key_of(value) if offset < compacted_before(ops) else None
    if key is None:
        return False
    known = _known(ops)
    return known.newest.get(key, -1) > offset or key in known.doubtful


def may_be_gap(ops: Sequence[Op], offset: int) -> bool:
    """Return True if compaction may have removed whatever was at an offset."""
    if offset >= compacted_before(ops):
        return False
    return all(may_be_removed(ops, offset, value) for value in _known(ops).values.get(offset, ()))


def kept_of(ops: Sequence[Op], first: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges of offsets, from `first` to before `end`, at which compaction may have removed nothing."""
    below = min(end, max(first, compacted_before(ops)))
    known = _offsets(ops)
    some = known[bisect_left(known, first) : bisect_left(known, below)]
    kept = [*ranges_of(offset for offset in some if not may_be_gap(ops, offset))]
    if below == end:
        return kept
    if kept and kept[-1][1] == below:
        below = kept.pop()[0]
    return [*kept, (below, end)]


@fact
def _offsets(ops: Sequence[Op]) -> Sequence[int]:
    return sorted(_known(ops).values)


@fact
def _known(ops: Sequence[Op]) -> _Known:
    values: dict[int, set[str]] = {}
    newest: dict[str, int] = {}
    placed: set[str] = set()
    for offset, value in _seen(ops):
        values.setdefault(offset, set()).add(value)
        placed.add(value)
        key = key_of(value)
        if key is not None:
            newest[key] = max(offset, newest.get(key, -1))
    lost = (value for value, sent in sent_values(ops).items() if sent.appends_max and value not in placed)
    doubtful = frozenset(key for key in map(key_of, lost) if key is not None)
    return _Known({offset: frozenset(found) for offset, found in values.items()}, newest, doubtful)


def _seen(ops: Sequence[Op]) -> Iterator[tuple[int, str]]:
    """Yield where values were acknowledged, shown, or found at the end."""
    for value, sent in sent_values(ops).items():
        for offset in sent.acked:
            yield offset, value
    yield from first_polls(ops)
    yield from shown_by_reads(ops)
    for log in final_logs(ops).values():
        for offset, record in log.records.items():
            yield offset, record.value
