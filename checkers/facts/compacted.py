"""
What compaction may have removed: below an offset up to which a broker compacted, each record with a newer one.

A record without a key may not be gone, nor the newest committed one of its key, unless it is a tombstone whose
delay is over. Where nobody saw a committed record, it may have been a newer one of any key, so that every record
below it with a key may be gone. Nor is it known what was there where a leader has appended twice, since a fault
had taken the first.
Source:  Kafka, LogCleaner; KAFKA-13194; harness/keys.py, which says how a value tells its key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from checkers.facts.acked import ACKS_ALL, Acked, acked_records, written_by
from checkers.facts.cleaned import compacted_before
from checkers.facts.committed import Commit, commit_of, commits_of
from checkers.facts.copies import copies_of
from checkers.facts.deleted import deleted_before
from checkers.facts.fact import fact
from checkers.facts.polls import first_polls, shown_by_reads
from checkers.facts.tombstones import gone_from_ns, has_horizons
from checkers.facts.view import final_logs
from harness.events import Append, Batch
from harness.keys import is_tombstone, key_of
from harness.model import Op, events_of, ranges_of


class _Known(NamedTuple):
    """
    What is known of a partition's committed records.

    Attributes:
        values: the values that were seen at each offset.
        newest: key -> the highest offset at which one of its records was seen.
        unseen: the highest offset of a committed record that was not seen, -1 for none.
    """

    values: Mapping[int, frozenset[str]]
    newest: Mapping[str, int]
    unseen: int


def may_be_removed(ops: Sequence[Op], offset: int, value: str, until_ns: int | None = None) -> bool:
    """
    Return True if compaction may have removed this record from any log; offset -1: it is not known.

    Args:
        until_ns: when it was gone, by the history's time; None: at the end.
    """
    key = key_of(value) if offset < compacted_before(ops) else None
    if key is None:
        return False
    if max(_known(ops).newest.get(key, -1), _known(ops).unseen) > offset:
        return True
    over_ns = gone_from_ns(ops, offset) if is_tombstone(value) else None
    return over_ns is not None and over_ns <= (ops[-1].time_ns if until_ns is None else until_ns)


def may_be_gap(ops: Sequence[Op], offset: int, until_ns: int | None = None) -> bool:
    """Return True if compaction may have removed whatever was at an offset, by that time."""
    if offset >= compacted_before(ops):
        return False
    if offset in _rewritten(ops):
        return True  # nobody knows which of them was there when a broker compacted
    return all(may_be_removed(ops, offset, value, until_ns) for value in _known(ops).values.get(offset, ()))


def may_have_a_horizon(ops: Sequence[Op], batch: Batch) -> bool:
    """Return True if compaction may have written into a batch when its tombstones may go: each log's own time."""
    if batch.base >= compacted_before(ops) or not has_horizons(ops):
        return False
    held = any(is_tombstone(value or "") for _, _, value in batch.records)
    return held or len(batch.records) <= batch.last - batch.base  # there was one


def newest_tombstones(ops: Sequence[Op]) -> Mapping[str, int]:
    """Return each key whose newest committed record is known to be a tombstone, with that one's offset."""
    known = _known(ops)
    return {
        key: offset
        for key, offset in known.newest.items()
        if offset > known.unseen and all(map(is_tombstone, known.values[offset])) and offset not in _rewritten(ops)
    }


def kept_of(ops: Sequence[Op], first: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges of offsets, from `first` to before `end`, where compaction may have removed nothing."""
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
def kept_commits(ops: Sequence[Op]) -> list[Commit]:
    """Return the commits without what was deleted or compacted at any time: nobody may ask for that."""
    gone, commits = deleted_before(ops), commits_of(ops)
    if gone:
        commits = [replace(each, first=max(each.first, gone)) for each in commits if each.end > gone]
    if not compacted_before(ops):
        return commits
    return [part for each in commits for part in _kept(ops, each)]


def _kept(ops: Sequence[Op], commit: Commit) -> Iterator[Commit]:
    """Yield the parts of a commit that compaction may not have removed."""
    for first, end in kept_of(ops, commit.first, commit.end):
        yield replace(commit, first=first, end=end)


@fact
def _rewritten(ops: Sequence[Op]) -> frozenset[int]:
    """Return the offsets at which leaders have appended more than once: a record there was lost, or cut."""
    times = Counter(
        offset
        for _, append in (events_of(ops, Append) if compacted_before(ops) else ())
        if append.role == "leader"
        for offset in range(append.base, append.end)
    )
    return frozenset(offset for offset, count in times.items() if count > 1)


@fact
def _offsets(ops: Sequence[Op]) -> Sequence[int]:
    return sorted(_known(ops).values)


@fact
def _known(ops: Sequence[Op]) -> _Known:
    values: dict[int, set[str]] = {}
    newest: dict[str, int] = {}
    for offset, value in _seen(ops) if compacted_before(ops) else ():
        values.setdefault(offset, set()).add(value)
        key = key_of(value)
        if key is not None:
            newest[key] = max(offset, newest.get(key, -1))
    unseen = (offset for each in commits_of(ops) for offset in range(each.first, each.end) if offset not in values)
    return _Known({at: frozenset(found) for at, found in values.items()}, newest, max(unseen, default=-1))


def _seen(ops: Sequence[Op]) -> Iterator[tuple[int, str]]:
    """Yield where committed values were acknowledged or shown, and what final logs hold."""
    for acked in acked_records(ops):
        if acked.offset >= 0 and (acked.record.acks == ACKS_ALL or _is_committed(ops, acked)):
            yield acked.offset, acked.value
    yield from first_polls(ops)
    yield from shown_by_reads(ops)
    for log in final_logs(ops).values():
        for offset, record in log.records.items():
            yield offset, record.value


def _is_committed(ops: Sequence[Op], acked: Acked) -> bool:
    """Return True if a high watermark passed an acknowledged record, or no broker tells of its own."""
    written = written_by(ops, acked)
    if written is None:
        return not copies_of(ops).reported
    return commit_of(ops, acked.offset, written.index) is not None
