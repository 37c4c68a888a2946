"""
The cleaner of a simulated log: of each key the newest record stays, in whole files, at once.

What it does to a real log's files, step by step and through crashes, is tested on files; here a file is replaced
whole and durably, as it is there.
Source:  targets/broker/log/cleaner.py, targets/broker/log/compactor.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from harness.keys import is_tombstone, key_of
from targets.broker.core.compaction import groups
from targets.broker.core.log_port import LATEST_FORMAT, Cleaned
from targets.broker.core.messages import NO_PRODUCER_ID, Batch
from targets.broker.core.tombstones import TombstoneDelay
from targets.simulator.broker.storage.records import content_of, with_only
from targets.simulator.broker.storage.segment import Segment, is_rotten

# Whose last batch is the log's: no producer has this id.
_ANYBODY: Final = -2
# Files, and the one that takes their place.
Replacing: TypeAlias = tuple[Sequence[Segment], Segment]


class Cleaner:
    """How far one log was cleaned, and whether a damaged batch forbids it."""

    def __init__(self) -> None:
        """Begin with a log of which nothing is known to be clean."""
        self._clean_to = 0
        self._damaged = False

    def resume(self) -> None:
        """Try again, whatever was damaged."""
        self._damaged = False

    def cut(self, offset: int) -> bool:
        """Note that the log is cut; return True if records below may be gone for the sake of others past it."""
        self._damaged = False
        past = self._clean_to > offset
        self.end(offset)
        return past

    def end(self, end: int) -> None:
        """Note where the log ends: what comes next there is not clean."""
        self._clean_to = min(self._clean_to, end)

    def clean(
        self, segments: Sequence[Segment], upto: int, delay: TombstoneDelay, bytes_max: int
    ) -> tuple[list[Replacing], Cleaned]:
        """Return what is to be replaced, and what to say of it; files are as large as bytes_max."""
        closed = [one for one, after in pairwise(segments) if after.base_offset <= upto]
        if self._damaged or not closed or segments[len(closed)].base_offset <= self._clean_to:
            return [], Cleaned()
        read = sum(segment.size for segment in closed)
        if any(map(is_rotten, _batches(closed))):
            self._damaged = True
            return [], Cleaned(read)
        end = segments[len(closed)].base_offset
        newest: dict[str, int] = {}
        for batch in _batches(closed):
            newest |= {key: offset for offset, key, _ in _keyed(batch)}
        old = closed[: delay.old_files(_latest(closed, self._clean_to))]
        staying = _Staying(newest, frozenset(_lasts(closed)), delay, frozenset(one.base_offset for one in old))
        found: list[Replacing] = []
        for group in groups(closed, bytes_max):
            new = staying.of(group)
            if len(group) > 1 or new.batches != group[0].batches:
                found.append((group, new))
        self._clean_to = end
        gone = sum(sum(segment.size for segment in old) - new.size for old, new in found)
        return found, Cleaned(read, upto=end, size=max(0, gone))


@dataclass(frozen=True, slots=True)
class _Staying:
    """
    What stays of a log's batches.

    Attributes:
        newest: key -> the offset of its newest record.
        lasts: the last offsets of the batches that stay, if only empty.
        old: the base offsets of the files that are old by their times.
    """

    newest: Mapping[str, int]
    lasts: frozenset[int]
    delay: TombstoneDelay
    old: frozenset[int]

    def of(self, group: Sequence[Segment]) -> Segment:
        """Return a file with what stays of some."""
        new = Segment(base_offset=group[0].base_offset, named=True)
        for segment in group:
            for batch in segment.batches:
                left = self._left(batch, in_old_file=segment.base_offset in self.old)
                if left is not None:
                    new.append(left)
        new.flush()
        new.gone_bytes = sum(segment.size + segment.gone_bytes for segment in group) - new.size
        return new

    def _left(self, batch: Batch, *, in_old_file: bool) -> Batch | None:
        """Return what stays of a batch: it, one with fewer records, or None."""
        content, keyed = content_of(batch.payload), tuple(_keyed(batch))
        has_horizon = content.magic >= LATEST_FORMAT
        over = self.delay.is_over(content.horizon_ms, in_old_file=in_old_file) if has_horizon else in_old_file
        gone = {offset for offset, key, deletes in keyed if self.newest[key] > offset or (deletes and over)}
        horizon_ms = content.horizon_ms
        if has_horizon and any(deletes and offset not in gone for offset, _, deletes in keyed):
            horizon_ms = self.delay.horizon_of(horizon_ms)
        kept = [delta for delta, _, _ in content.records if batch.base_offset + delta not in gone]
        if not kept and batch.last_offset not in self.lasts:
            return None
        return with_only(batch, kept, horizon_ms) if gone or horizon_ms != content.horizon_ms else batch


def _latest(segments: Sequence[Segment], clean_to: int) -> list[int]:
    """Return of each file that is clean the greatest timestamp up to its end."""
    found, latest = list[int](), -1
    for segment in segments:
        if segment.next_offset > clean_to:
            break
        latest = max(latest, *(content_of(batch.payload).timestamp_ms for batch in segment.batches), -1)
        found.append(latest)
    return found


def _lasts(segments: Sequence[Segment]) -> set[int]:
    """Return the last offsets of the batches that stay, if only empty: the last one, and each producer's."""
    lasts: dict[int, int] = {}
    for batch in _batches(segments):
        lasts[batch.producer_id] = lasts[_ANYBODY] = batch.last_offset
    lasts.pop(NO_PRODUCER_ID, None)
    return set(lasts.values())


def _keyed(batch: Batch) -> Iterator[tuple[int, str, bool]]:
    """Yield the offset and the key of each record that has one, and whether it is a tombstone."""
    for delta, _, value in content_of(batch.payload).records:
        key = key_of(value)
        if key is not None:
            yield batch.base_offset + delta, key, is_tombstone(value)


def _batches(segments: Sequence[Segment]) -> Iterator[Batch]:
    return (batch for segment in segments for batch in segment.batches)
