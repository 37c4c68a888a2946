"""
Each replica's log at the end of the run, and the tails that it had and lost.

The scanner read the final log from the replica's own files. The lost tails are replayed from the broker's own
events (append, truncate, recovered); a target without such events has no lost tails.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.events import Append, Batch, Follower, Produce, Recovered, Snapshot, Truncate
from harness.model import Op, Source, events_of
from harness.report.reading import Reading, Span, of_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive records [first, end) of one epoch and one name (`m2`); the name is "" if unknown."""

    first: int
    end: int
    epoch: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Records [to, end) that a replica lost: the op, the reason, and the records as far as known."""

    op: Op
    to: int
    end: int
    reason: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """
    One replica of one partition at the end of the run.

    Attributes:
        snapshot: the op with which its files were read, None if they were not read.
        pieces: the records in its files, by offset.
        batches: (first, end, codec) of each batch with more than one record.
        high_watermark: the offset in its high watermark checkpoint.
        cuts: the tails that it lost, in order of time.
    """

    node: str
    snapshot: Op | None
    pieces: tuple[Piece, ...]
    batches: tuple[tuple[int, int, str], ...]
    start: int
    end: int
    high_watermark: int | None
    epochs: tuple[tuple[int, int], ...] | None
    problems: tuple[str, ...]
    cuts: tuple[Cut, ...]


def replicas_of(
    reading: Reading, topic: str, partition: int, cuts: Mapping[str, Sequence[Cut]]
) -> tuple[Replica, ...]:
    """
    Return every replica of the partition, in the order of the assignment, then other nodes that have files.

    Args:
        reading: the history.
        topic: the partition's topic.
        partition: the partition's number.
        cuts: the lost tails, as `replayed` returns them for the same partition.
    """
    ops = [op for op in reading.ops if of_partition(op, topic, partition)]
    snapshots = {op.process: (op, snapshot) for op, snapshot in events_of(ops, Snapshot)}
    batches: dict[str, list[Batch]] = {}
    for op, batch in events_of(ops, Batch):
        if batch.store:
            continue  # rules compare it with the log that is served
        batches.setdefault(op.process, []).append(batch)
    assigned = reading.setup.replicas if reading.setup else ()
    nodes = dict.fromkeys([*assigned, *snapshots, *batches, *cuts])
    return tuple(
        _replica(reading, node, snapshots.get(node), batches.get(node, []), tuple(cuts.get(node, ())))
        for node in nodes
    )


def _replica(
    reading: Reading,
    node: str,
    read: tuple[Op, Snapshot] | None,
    batches: Sequence[Batch],
    cuts: tuple[Cut, ...],
) -> Replica:
    pieces = merged(_stored(reading, batches))
    op, snapshot = read or (None, None)
    return Replica(
        node=node,
        snapshot=op,
        pieces=pieces,
        batches=tuple((b.base, b.last + 1, b.codec) for b in batches if b.last > b.base and _is_one(reading, b)),
        start=snapshot.log_start_offset if snapshot else pieces[0].first if pieces else 0,
        end=snapshot.log_end_offset if snapshot else pieces[-1].end if pieces else 0,
        high_watermark=snapshot.high_watermark if snapshot else None,
        epochs=snapshot.epochs if snapshot else None,
        problems=snapshot.problems if snapshot else (),
        cuts=cuts,
    )


def _is_one(reading: Reading, batch: Batch) -> bool:
    """Return False for what stands for many batches of an abridged run."""
    return reading.abridged is None or bool(batch.records)


def _stored(reading: Reading, batches: Iterable[Batch]) -> Iterable[Piece]:
    for batch in batches:
        for offset, _, value in batch.records:
            name = reading.record_names.get(str(value), str(value))
            yield Piece(first=offset, end=offset + 1, epoch=batch.epoch, name=name)
        if not batch.records:
            yield Piece(first=batch.base, end=batch.last + 1, epoch=batch.epoch, name="")


def merged(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Join consecutive pieces of one epoch and name; keep the order."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last and (last.end, last.epoch, last.name) == (piece.first, piece.epoch, piece.name):
            joined[-1] = replace(last, end=piece.end)
        else:
            joined.append(piece)
    return tuple(joined)


# --- replay of what the brokers reported -------------------------------------------------------------------


@dataclass(slots=True)
class _Log:
    """A replica's log according to its broker's events, and the leader that it follows."""

    pieces: list[Piece] = field(default_factory=list)
    end: int = 0
    leader: str = ""
    cuts: list[Cut] = field(default_factory=list)

    def tail(self, first: int, end: int) -> tuple[Piece, ...]:
        """Return the pieces within [first, end)."""
        found: list[Piece] = []
        for piece in reversed(self.pieces):
            if piece.end <= first:
                break
            if piece.first < end:
                found.append(replace(piece, first=max(piece.first, first), end=min(piece.end, end)))
        return tuple(reversed(found))

    def cut(self, op: Op, to: int, reason: str) -> None:
        """Remove the tail from `to` on, and record it as a cut."""
        self.cuts.append(Cut(op=op, to=to, end=self.end, reason=reason, pieces=self.tail(to, self.end)))
        self.pieces = list(self.tail(0, to))
        self.end = to

    def add(self, pieces: Iterable[Piece], end: int) -> None:
        """Append pieces; the log ends at `end`."""
        last = [self.pieces.pop()] if self.pieces else []
        self.pieces.extend(merged([*last, *pieces]))
        self.end = end


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Each node's lost tails in order of time, and the records of each append by its history index."""

    cuts: Mapping[str, Sequence[Cut]]
    appended: Mapping[int, tuple[Piece, ...]]


def replayed(reading: Reading, topic: str, partition: int) -> Replayed:
    """
    Replay the brokers' events about one partition.

    A tail that a power loss took is known when the broker reports the recovered log end. A tail that came back,
    because its truncation was not durable, is no longer a cut.
    """
    logs: dict[str, _Log] = {}
    appended: dict[int, tuple[Piece, ...]] = {}
    named = _Named(reading)
    for op in reading.ops:
        if op.source is not Source.BROKER or not of_partition(op, topic, partition):
            continue
        log = logs.setdefault(op.process, _Log())
        match op.event:
            case Follower(leader=leader):
                log.leader = reading.node_of(leader)
            case Append() as append:
                source = logs.get(log.leader, _Log())
                wrote = append.role == "leader"
                appended[op.index] = named.appended(op, append) if wrote else _copied(source, append)
                log.add(appended[op.index], append.end)
            case Truncate() as cut:
                _truncated(log, op, cut)
            case Recovered() as recovered:
                _recovered(log, op, recovered)
    return Replayed(cuts={node: log.cuts for node, log in logs.items() if log.cuts}, appended=appended)


def _copied(source: _Log, append: Append) -> tuple[Piece, ...]:
    """Return the records of a follower's append, with the names that they have in its leader's log."""
    copied = tuple(replace(piece, epoch=append.epoch) for piece in source.tail(append.base, append.end))
    return copied or (Piece(first=append.base, end=append.end, epoch=append.epoch, name=""),)


def _truncated(log: _Log, op: Op, cut: Truncate) -> None:
    """Cut at the new physical end: below `to` after a truncation inside a batch, 0 after a full truncation."""
    log.end = max(log.end, cut.start)
    left = 0 if cut.reason == "full" else min(cut.to, cut.end)
    if left < log.end:
        log.cut(op, left, cut.reason)
    log.end = cut.end


def _recovered(log: _Log, op: Op, recovered: Recovered) -> None:
    end = recovered.log_end_offset
    if end < log.end:
        log.cut(op, end, f"not on disk at restart ({recovered.reason})")
    elif log.cuts and end > log.end:
        back = log.cuts[-1]
        log.add([p for p in back.pieces if p.end <= end], end)
        if back.end <= end:
            log.cuts.pop()
    log.end = end


class _Named:
    """Names a leader's records after acknowledged produces that were invoked before and not yet matched."""

    def __init__(self, reading: Reading) -> None:
        self._waiting: dict[int, list[tuple[Span, str]]] = {}
        for span in reading.spans:
            match span.event:
                case Produce(offset=int(offset), name=name) if span.outcome == "ok":
                    self._waiting.setdefault(offset, []).append((span, name))
        self._offsets = sorted(self._waiting)

    def appended(self, op: Op, append: Append) -> tuple[Piece, ...]:
        """Return the records of a leader's append, with their names; an abridged run's may have millions."""
        first, end = (bisect_left(self._offsets, offset) for offset in (append.base, append.end))
        pieces: list[Piece] = []
        nameless = append.base
        for offset in self._offsets[first:end]:
            pieces += self._pieces(append, nameless, offset, "")
            pieces += self._pieces(append, offset, offset + 1, self._name(op, offset))
            nameless = offset + 1
        return merged([*pieces, *self._pieces(append, nameless, append.end, "")])

    def _pieces(self, append: Append, first: int, end: int, name: str) -> Iterable[Piece]:
        return [Piece(first=first, end=end, epoch=append.epoch, name=name)] if first < end else []

    def _name(self, op: Op, offset: int) -> str:
        waiting = self._waiting.get(offset, [])
        asked = next((each for each in waiting if each[0].first.index < op.index), None)
        if asked is None:
            return ""
        waiting.remove(asked)
        return asked[1]
