"""
The cleaner of a simulated log: of each key the newest record stays, in whole files, at once.

What it does to a real log's files, step by step and through crashes, is tested on files; here a file is replaced
whole and durably, as it is there.
Source:  targets/broker/log/cleaner.py, targets/broker/log/compactor.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from harness.keys import key_of
from targets.broker.core.compaction import groups
from targets.broker.core.log_port import Cleaned
from targets.broker.core.messages import NO_PRODUCER_ID, Batch
from targets.simulator.records import content_of, with_only
from targets.simulator.segment import Segment, is_rotten

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

    def clean(self, segments: Sequence[Segment], upto: int, bytes_max: int) -> tuple[list[Replacing], Cleaned]:
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
            newest |= {key: offset for offset, key in _keyed(batch)}
        found: list[Replacing] = []
        staying = _staying(closed)
        for group in groups(closed, bytes_max):
            new = _cleaned(group, newest, staying)
            if len(group) > 1 or new.size < group[0].size:
                found.append((group, new))
        self._clean_to = end
        gone = sum(sum(segment.size for segment in old) - new.size for old, new in found)
        return found, Cleaned(read, upto=end, size=gone)


def _staying(segments: Sequence[Segment]) -> set[int]:
    """Return the last offsets of the batches that stay, if only empty: the last one, and each producer's."""
    lasts: dict[int, int] = {}
    for batch in _batches(segments):
        lasts[batch.producer_id] = lasts[_ANYBODY] = batch.last_offset
    lasts.pop(NO_PRODUCER_ID, None)
    return set(lasts.values())


def _cleaned(group: Sequence[Segment], newest: Mapping[str, int], staying: Collection[int]) -> Segment:
    """Return a file with what stays of some; the batches that end at `staying` stay, if only empty."""
    new = Segment(base_offset=group[0].base_offset, named=True)
    for batch in _batches(group):
        records = content_of(batch.payload).records
        gone = {offset for offset, key in _keyed(batch) if newest[key] > offset}
        kept = [delta for delta, _, _ in records if batch.base_offset + delta not in gone]
        if kept or batch.last_offset in staying:
            new.append(with_only(batch, kept) if gone else batch)
    new.flush()
    new.gone_bytes = sum(segment.size + segment.gone_bytes for segment in group) - new.size
    return new


def _keyed(batch: Batch) -> Iterator[tuple[int, str]]:
    """Yield the offset and the key of each record that has one."""
    for delta, _, value in content_of(batch.payload).records:
        key = key_of(value)
        if key is not None:
            yield batch.base_offset + delta, key


def _batches(segments: Sequence[Segment]) -> Iterator[Batch]:
    return (batch for segment in segments for batch in segment.batches)
