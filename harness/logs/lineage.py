"""
Compute each replica's lineage, and every range of offsets in which replicas of one partition disagree.

A replica's lineage is the vector of (leader epoch, start offset, end offset) segments of its batches, with its
holes. Replicas are compared by content (a record's digest), because two histories can share one epoch, and logs
before KIP-101 have no epochs. The same content under another epoch is a disagreement of its own kind.

Offsets about which a replica has no evidence are never a disagreement: those before its log's start (retention),
those from its log's end on (it is behind), those that could not be read, and those that compaction may have
removed.

Source:  KIP-101; "Why does Kafka need the leader epoch?".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from harness.logs.replica import BatchSeen, ReplicaLog
from harness.model import ranges_of

SAMPLE_MAX: Final = 3


class DifferenceKind(StrEnum):
    """How replicas disagree: different records, a missing record, or the same record under another epoch."""

    CONTENT = "content"
    HOLE = "hole"
    EPOCH = "epoch"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSegment:
    """A range of offsets that one leader epoch wrote; epoch -1: batches without an epoch; None: a hole."""

    epoch: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """
    What one replica holds in a range of offsets.

    Attributes:
        group: Equal for the replicas of a difference that agree with each other; None for a hole.
        epochs: Leader epochs of the records, rising.
        sample: The first SAMPLE_MAX values as text.
        about: Of each of these records all but its value.
    """

    replica: str
    group: int | None
    epochs: tuple[int, ...] = ()
    sample: tuple[str | None, ...] = ()
    about: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A maximal range [first, end) of offsets in which the same replicas disagree in the same way."""

    kind: DifferenceKind
    first: int
    end: int
    holdings: tuple[Holding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A replica whose log ends before another's: it lacks the offsets [log_end_offset, furthest)."""

    replica: str
    log_end_offset: int
    furthest: int


class _Held(NamedTuple):
    """The record at an offset; a tuple, because millions are compared."""

    digest: str
    epoch: int
    value: str | None
    about: str


_Ranges: TypeAlias = tuple[tuple[int, int], ...]
_State: TypeAlias = _Held | DifferenceKind | None
_Pattern: TypeAlias = tuple[()] | tuple[DifferenceKind, tuple[tuple[str, int | None], ...]]


class Track:
    """A replica's segments so far, in file order; a batch that goes back begins a new segment."""

    def __init__(self) -> None:
        self.segments: list[LineageSegment] = []
        self._end: int | None = None

    def add(self, batch: BatchSeen, missing: Sequence[tuple[int, int]], *, start: int, cleaned_to: int) -> None:
        """
        Add the next batch.

        Args:
            missing: The log's holes, rising; at least those before the batch's end.
            start: The log's first offset.
            cleaned_to: As of a ReplicaLog.
        """
        if batch.end <= start:
            return
        first = max(batch.base, start)
        end = start if self._end is None else self._end
        # A hole may reach into a batch, but segments begin and end only at batches.
        for index in range(bisect_right(missing, end, key=itemgetter(1)), len(missing)):
            begin, stop = missing[index]
            if begin >= first:
                break
            self.segments.append(LineageSegment(epoch=None, start=max(begin, end), end=min(stop, first)))
        last = self.segments[-1] if self.segments else None
        if last and last.epoch == batch.epoch and (last.end == first or last.end < first <= cleaned_to):
            self.segments[-1] = LineageSegment(epoch=batch.epoch, start=last.start, end=batch.end)
        else:
            self.segments.append(LineageSegment(epoch=batch.epoch, start=first, end=batch.end))
        self._end = batch.end


def lineage(log: ReplicaLog) -> tuple[LineageSegment, ...]:
    """Return the replica's segments in file order; a batch that goes back begins a new segment."""
    track, missing = Track(), holes(log)
    for batch in log.batches:
        track.add(batch, missing, start=log.log_start_offset, cleaned_to=log.cleaned_to)
    return tuple(track.segments)


def holes(log: ReplicaLog) -> tuple[tuple[int, int], ...]:
    """
    Return the [first, end) ranges within the log that hold no record.

    Ranges that could not be read, and offsets that compaction may have removed, are not holes.
    """
    held = ranges_of(offset for batch in log.batches for offset, _, _ in batch.records)
    unread = ((first, log.log_end_offset if end is None else end) for first, end in log.unread)
    found: list[tuple[int, int]] = []
    end = max(log.log_start_offset, log.cleaned_to)
    for first, after in (*sorted((*held, *unread)), (log.log_end_offset, log.log_end_offset)):
        if first > end:
            found.append((end, first))
        end = max(end, after)
    return tuple(found)


def differences(logs: Mapping[str, ReplicaLog]) -> tuple[Difference, ...]:
    """
    Return the maximal ranges of offsets in which replicas of one partition disagree, by offset.

    A replica that only ends earlier does not disagree (see behind).

    Args:
        logs: By replica name.
    """
    replicas = {name: (_held(log), holes(log)) for name, log in logs.items()}
    tables = [held for held, _ in replicas.values()]
    found: list[Difference] = []
    pattern: _Pattern = ()
    first = end = 0
    for offset in sorted(set().union(*tables)):
        contents = [table.get(offset) for table in tables]
        # Fast path: at nearly every offset all replicas hold the same record.
        if contents.count(contents[0]) == len(contents):
            continue
        here = _pattern({name: _state(*replica, offset) for name, replica in replicas.items()})
        if here == pattern and offset == end:
            end = offset + 1
            continue
        if pattern:
            found.append(_difference(pattern, replicas, first, end))
        pattern, first, end = here, offset, offset + 1
    if pattern:
        found.append(_difference(pattern, replicas, first, end))
    return tuple(found)


def joined(found: Sequence[Difference], more: Sequence[Difference]) -> list[Difference]:
    """Return the differences of two neighbouring ranges of offsets; one that reaches over their border is one."""
    if not (found and more and _goes_on(found[-1], more[0])):
        return [*found, *more]
    last, first = found[-1], more[0]
    holdings = tuple(
        Holding(
            replica=one.replica,
            group=one.group,
            epochs=tuple(sorted({*one.epochs, *other.epochs})),
            sample=(*one.sample, *other.sample)[:SAMPLE_MAX],
            about=(*one.about, *other.about)[:SAMPLE_MAX],
        )
        for one, other in zip(last.holdings, first.holdings, strict=True)
    )
    whole = Difference(kind=last.kind, first=last.first, end=first.end, holdings=holdings)
    return [*found[:-1], whole, *more[1:]]


def _goes_on(one: Difference, other: Difference) -> bool:
    """Return True if the same replicas disagree in the same way, and no offset lies between."""
    groups = [[(holding.replica, holding.group) for holding in each.holdings] for each in (one, other)]
    return one.end == other.first and one.kind == other.kind and groups[0] == groups[1]


def behind(logs: Mapping[str, ReplicaLog]) -> tuple[Behind, ...]:
    """Return the replicas whose logs end before the furthest one, unless it is unknown where they end."""
    furthest = max((log.log_end_offset for log in logs.values()), default=0)
    return tuple(
        Behind(replica=name, log_end_offset=log.log_end_offset, furthest=furthest)
        for name, log in logs.items()
        if log.log_end_offset < furthest and not any(end is None for _, end in log.unread)
    )


def _held(log: ReplicaLog) -> dict[int, _Held]:
    """Return the record at each offset; if two batches have the same offset, join their digests."""
    found: dict[int, _Held] = {}
    for batch in log.batches:
        told = batch.about or ("",) * len(batch.records)
        for (offset, digest, value), about in zip(batch.records, told, strict=True):
            if offset < log.log_start_offset:
                continue
            twin = found.get(offset)
            both = digest if twin is None else f"{twin.digest}+{digest}"
            found[offset] = _Held(both, batch.epoch, value, about)
    return found


def _state(held: Mapping[int, _Held], missing: _Ranges, offset: int) -> _State:
    """Return the replica's record or hole at the offset; None if there is no evidence about it."""
    if offset in held:
        return held[offset]
    at = bisect_right(missing, offset, key=itemgetter(0)) - 1
    return DifferenceKind.HOLE if at >= 0 and offset < missing[at][1] else None


def _pattern(states: Mapping[str, _State]) -> _Pattern:
    """
    Return how replicas disagree, and which of them agree with each other.

    A record without an epoch agrees with one that has any: where epochs are beside the log, replicas forget them
    at different times.

    Returns:
        (kind, ((replica, group), ...)), or () if they do not disagree. Groups number the contents in order of
        appearance; None is a hole.
    """
    numbers: dict[tuple[str, int], int] = {}
    groups: list[tuple[str, int | None]] = []
    known = {
        state.digest: state.epoch for state in states.values() if isinstance(state, _Held) and state.epoch >= 0
    }
    for name, state in states.items():
        if isinstance(state, _Held):
            epoch = state.epoch if state.epoch >= 0 else known.get(state.digest, state.epoch)
            groups.append((name, numbers.setdefault((state.digest, epoch), len(numbers))))
        elif state is not None:
            groups.append((name, None))
    distinct = {group for _, group in groups}
    if len(distinct) < 2:
        return ()
    if len({digest for digest, _ in numbers}) > 1:
        return (DifferenceKind.CONTENT, tuple(groups))
    return (DifferenceKind.HOLE if None in distinct else DifferenceKind.EPOCH, tuple(groups))


def _difference(
    pattern: tuple[DifferenceKind, tuple[tuple[str, int | None], ...]],
    replicas: Mapping[str, tuple[Mapping[int, _Held], _Ranges]],
    first: int,
    end: int,
) -> Difference:
    """Collect what each replica holds in a range that has one pattern throughout."""
    kind, groups = pattern
    holdings: list[Holding] = []
    for name, group in groups:
        table, _ = replicas[name]
        has = [] if group is None else [table[offset] for offset in range(first, end)]
        holdings.append(
            Holding(
                replica=name,
                group=group,
                epochs=tuple(sorted({each.epoch for each in has})),
                sample=tuple(each.value for each in has[:SAMPLE_MAX]),
                about=tuple(each.about for each in has[:SAMPLE_MAX] if each.about),
            )
        )
    return Difference(kind=kind, first=first, end=end, holdings=tuple(holdings))
