"""
Compare the replicas of one partition window by window, in bounded memory, however large the logs are.

A window is a range of offsets that every replica has been read past. What lineage.py says of whole logs is said of
each window and joined; soundness.py sees batch by batch. Logs of fewer than LOG_WINDOW_RECORDS records are one
window. The result is that of whole logs, except for a batch that goes back over a window's beginning: it is
reported as disorder, and its records are not compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Final

from harness import limits
from harness.logs.graph import Fork, fork_points, graph_of
from harness.logs.lawful import Law, of_difference, of_note, overall
from harness.logs.lineage import Behind, Difference, LineageSegment, Track, behind, differences, holes, joined
from harness.logs.names import shown
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.logs.soundness import Checks, Note
from harness.logs.stream import Open, Reading, settled
from harness.model import VERDICT_OF, Kind, Verdict

# How much of a record's value is kept for the report.
VALUE_CHARACTERS_MAX: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """What is known of one replica; the log is without its batches."""

    log: ReplicaLog
    lineage: tuple[LineageSegment, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """
    The comparison of one partition.

    Attributes:
        replicas: By name, such as the directory.
        incomparable: Why replicas were not compared, or not to their end; "" if they were.
    """

    name: str
    replicas: Mapping[str, Replica]
    differences: tuple[Difference, ...]
    behind: tuple[Behind, ...]
    forks: tuple[Fork, ...]
    incomparable: str = ""

    @property
    def high_watermarks(self) -> dict[str, int | None]:
        """By replica, as their checkpoints have them; None where it is not known."""
        return {label: replica.log.high_watermark for label, replica in self.replicas.items()}

    @property
    def law(self) -> Law:
        """Whether the protocol allows all that was found, of copies from different moments."""
        marks = self.high_watermarks
        found = [ruling for difference in self.differences for ruling in of_difference(difference, marks)]
        found += [of_note(note) for replica in self.replicas.values() for note in replica.notes]
        return overall(found)

    @property
    def verdict(self) -> Verdict:
        """Invalid if replicas disagree or one contradicts itself; else unknown if one was not wholly read."""
        replicas = self.replicas.values()
        kinds = [note.kind for replica in replicas for note in replica.notes if note.kind is not None]
        kinds += [Kind.DIVERGED for _ in self.differences]
        kinds += [Kind.UNREADABLE for replica in replicas if replica.log.problems]
        kinds += [Kind.UNREADABLE] if self.incomparable else []
        return Verdict.merge(VERDICT_OF[kind] for kind in kinds)


def compare(name: str, replicas: Mapping[str, Open]) -> Comparison:
    """
    Read and compare the replicas of a partition; what cannot be read is a problem of its replica.

    Args:
        replicas: How each is opened, by their names.
    """

    def read() -> tuple[Comparison, str]:
        with ExitStack() as stack:
            streams = {
                label: _Stream(stack.enter_context(closing(opened()))) for label, opened in replicas.items()
            }
            return _compared(name, streams)

    found, unsettled = settled(read)
    if not unsettled:
        return found
    marked = {
        label: replace(each, log=replace(each.log, problems=(*each.log.problems, unsettled)))
        for label, each in found.replicas.items()
    }
    return replace(found, replicas=marked)


class _Stream:
    """One replica while it is read: the batches that wait to be compared, and the findings so far."""

    def __init__(self, reading: Reading) -> None:
        self.topic_id = reading.log().topic_id
        self.ended = False
        self._reading = reading
        self._batches = reading.batches(VALUE_CHARACTERS_MAX)
        # Why the log was not read to its end, "" if it was.
        self._given_up = ""
        self._pending: list[BatchSeen] = []
        # The batches whose segments the track does not have yet, without their records.
        self._untracked: deque[BatchSeen] = deque()
        self._track = Track()
        self._checks = Checks(reading.log().epochs)
        self._holes: list[tuple[int, int]] = []

    def fill(self, first: int | None) -> None:
        """Read on until a window's records wait; batches before `first` have missed their window."""
        waiting = sum(max(1, len(batch.records)) for batch in self._pending)
        start: int | None = None
        while not self.ended and waiting < limits.LOG_WINDOW_RECORDS:
            batch = next(self._batches, None)
            if batch is None:
                self.ended = True
                return
            if start is None:
                start = self.log().log_start_offset
            waiting += max(1, len(batch.records))
            self._checks.add(batch, start=start)
            self._untracked.append(replace(batch, records=(), about=()))
            if first is None or batch.end > first:
                self._pending.append(batch)
            found = max(len(self._track.segments), len(self._checks.order), len(self._holes))
            if found > limits.LOG_FINDINGS_MAX:
                self._given_up = f"more than {limits.LOG_FINDINGS_MAX} holes, changes of epoch or disorders"
                self.ended = True

    def log(self) -> ReplicaLog:
        """Return what is known of the log so far, without its batches."""
        log = self._reading.log()
        if not self._given_up:
            return log
        problem = f"{shown(f'{log.topic}-{log.partition}')}: {self._given_up}; the rest is not read"
        return replace(log, problems=(*log.problems, problem), unread=(*log.unread, (log.log_end_offset, None)))

    def window(self, first: int | None, end: int | None) -> ReplicaLog:
        """Return the log of the offsets [first, end), and forget what lies before its end."""
        whole = self.log()
        log = _slice(whole, first, end, tuple(_cut(self._pending, first, end)))
        missing = holes(log)
        if missing and self._holes and self._holes[-1][1] == missing[0][0]:
            missing = ((self._holes.pop()[0], missing[0][1]), *missing[1:])
        self._holes += missing
        self._pending = [] if end is None else [batch for batch in self._pending if batch.end > end]
        while self._untracked and (end is None or self._untracked[0].end <= end):
            batch = self._untracked.popleft()
            self._track.add(batch, self._holes, start=whole.log_start_offset, cleaned_to=whole.cleaned_to)
        return log

    def end(self) -> tuple[Replica, str]:
        """Return the replica, and why it may mix two states of its log, "" if it does not."""
        log = self.log()
        notes = self._checks.notes(log, self._holes)
        return Replica(log=log, lineage=tuple(self._track.segments), notes=notes), self._reading.unsettled()


def _slice(log: ReplicaLog, first: int | None, end: int | None, batches: tuple[BatchSeen, ...]) -> ReplicaLog:
    """Return the log of the offsets [first, end) with these batches; None is the log's own start or end."""
    start = log.log_start_offset if first is None else max(log.log_start_offset, first)
    stop = max(start, log.log_end_offset if end is None else min(end, log.log_end_offset))
    return ReplicaLog(
        topic=log.topic,
        partition=log.partition,
        log_start_offset=start,
        log_end_offset=stop,
        batches=batches,
        epochs=None,
        high_watermark=None,
        unread=tuple(unread for unread in log.unread if end is None or unread[0] < stop),
        cleaned_to=log.cleaned_to,
    )


def _cut(batches: Sequence[BatchSeen], first: int | None, end: int | None) -> list[BatchSeen]:
    """Return the parts of the batches that lie within the offsets [first, end)."""
    found: list[BatchSeen] = []
    for batch in batches:
        base = batch.base if first is None else max(batch.base, first)
        stop = batch.end if end is None else min(batch.end, end)
        if (base, stop) == (batch.base, batch.end):
            found.append(batch)
        elif base < stop:
            kept = [place for place, record in enumerate(batch.records) if base <= record[0] < stop]
            records = tuple(batch.records[place] for place in kept)
            about = tuple(batch.about[place] for place in kept) if batch.about else ()
            found.append(replace(batch, base=base, last=stop - 1, records=records, about=about))
    return found


def _compared(name: str, streams: Mapping[str, _Stream]) -> tuple[Comparison, str]:
    """Compare the replicas once; also return why the result may mix two states of a log."""
    incomparable = _apart(streams)
    comparing = not incomparable and len(streams) > 1
    found: list[Difference] = []
    first: int | None = None
    while True:
        for stream in streams.values():
            stream.fill(first)
        end = min((stream.log().log_end_offset for stream in streams.values() if not stream.ended), default=None)
        if end is None or first is None or end > first:
            windows = {label: stream.window(first, end) for label, stream in streams.items()}
            if comparing:
                found = joined(found, differences(windows))
            first = end
        if len(found) > limits.LOG_FINDINGS_MAX:
            del found[limits.LOG_FINDINGS_MAX :]
            comparing = False
            incomparable = f"from there on: more than {limits.LOG_FINDINGS_MAX} differences"
        if end is None:
            break
    ends = {label: stream.end() for label, stream in streams.items()}
    replicas = {label: replica for label, (replica, _) in ends.items()}
    logs = {} if _apart(streams) else {label: replica.log for label, replica in replicas.items()}
    vectors = {label: replicas[label].lineage for label in logs}
    compared = Comparison(
        name=name,
        replicas=replicas,
        differences=tuple(found),
        behind=behind(logs),
        forks=fork_points(graph_of(logs, vectors, found)) if len(logs) > 1 else (),
        incomparable=incomparable,
    )
    return compared, next((unsettled for _, unsettled in ends.values() if unsettled), "")


def _apart(streams: Mapping[str, _Stream]) -> str:
    """Return that the replicas are of two topics with one name, one of them deleted; "" if they are not."""
    ids = {label: stream.topic_id for label, stream in streams.items() if stream.topic_id is not None}
    if len(set(ids.values())) <= 1:
        return ""
    named = ", ".join(f"{label} has {shown(topic_id)}" for label, topic_id in ids.items())
    return f"these are different topics of one name, by their topic ids: {named}"
