"""
Which replica held which record at any time, from the replayed appends, truncations and recoveries.

The origin of a record is the index of the op with which a leader appended it, or of the recovery that shows what
it had appended when it ended, before it could report that. A follower's copy has the origin of the record in its
leader's log. Origins distinguish two records at one offset without epochs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Final, TypeAlias

from checkers.facts.batch_epochs import BatchEpochs, Starts, starts_of
from checkers.facts.deleted import deleted_before
from checkers.facts.fact import fact, select
from checkers.facts.outages import starts_on_new_disks
from checkers.facts.replica_log import UNKNOWN, Change, Piece, Ranges, ReplicaLog
from checkers.facts.view import names_of
from harness.events import Append, Follower, Leader, LogStart, Recovered, Started, Stopped, Truncate
from harness.model import Op, Source

# A piece that a log lost, and the index of the op that shows it.
_Undone: TypeAlias = tuple[int, int, int, int]

_Step: TypeAlias = Append | LogStart | Truncate | Recovered | Leader | Follower | Started | Stopped


class Copies:
    """The replicas' logs over time: every change, in index order."""

    def __init__(self, ops: Sequence[Op], names: Mapping[int, str]) -> None:
        """
        Replay the events of a partition.

        Args:
            ops: the ops of one partition and the global ones.
            names: broker id -> node name.
        """
        self._steps: list[tuple[Op, _Step]] = [
            (op, event) for op in select(ops, Source.BROKER, *_REPLAYED) if isinstance(event := op.event, _Step)
        ]
        self.reported = any(op.f == "append" for op, _ in self._steps)
        self._wrote = [
            (op, step) for op, step in self._steps if isinstance(step, Append) and step.role == "leader"
        ]
        self.epochs = BatchEpochs(ops, self._wrote)
        self._wrote_at = [op.index for op, _ in self._wrote]
        self._wrote_to = Ranges((step.base, step.end) for _, step in self._wrote)
        self._wrote_twice = Ranges(_overlaps((step.base, step.end) for _, step in self._wrote))
        self._names = names
        self._logs: dict[str, ReplicaLog] = {}
        self._undone: dict[str, list[_Undone]] = {}
        self._led_from = _led_from(self._steps)
        self._leader_of: dict[str, str] = {}
        self._leads_in: dict[str, int] = {}
        # Whom each node's last process followed as it ended, and the epoch in which it led.
        self._followed: dict[str, str] = {}
        self._led_in: dict[str, int] = {}
        # Of which epochs each node's log was at its last recovery, below the offset at which it has changed since.
        self._recovered: dict[str, Starts] = {}
        # Where each node said last that its log starts: what is below is not looked for at a recovery.
        self._starts: dict[str, int] = {}
        self._deleted_to = deleted_before(ops)
        self._started: dict[str, Op] = {}
        self._on_new_disk = starts_on_new_disks(ops)
        self.in_order: list[Change] = []
        for place, (op, step) in enumerate(self._steps):
            self.in_order += self._apply(place, op, step)
        self._changed = Ranges((change.first, change.end) for change in self.in_order)
        self._asked: tuple[int, dict[str, list[Change]]] = (-1, {})

    def changes(self, offset: int) -> Mapping[str, Sequence[Change]]:
        """Return the changes at the offset in each node's log, in index order."""
        if self._asked[0] == offset:  # a loss is judged by many questions about one offset
            return self._asked[1]
        found: dict[str, list[Change]] = {}
        for place in self._changed.at(offset):
            change = self.in_order[place]
            found.setdefault(change.node, []).append(change)
        self._asked = (offset, found)
        return found

    def written(self, offset: int, after: int, until: int) -> tuple[list[Op], list[Op]]:
        """
        Return the leaders' appends that may have written a record acknowledged at that offset, in index order.

        Brokers' and clients' ops race to the collector. So those that lie between the two ops come first, and then
        each leader's first one after them.

        Args:
            offset: the acknowledged offset.
            after: the index of the record's invoke.
            until: the index of the record's ok.
        """
        first, end = (bisect_right(self._wrote_at, index) for index in (after, until))
        between = self._wrote_to.at(offset, first, end)
        # Of most offsets there is one append: no other is looked for among all later ones.
        later = self._wrote_to.at(offset, max(first, end)) if not between or self._wrote_twice.at(offset) else []
        earliest = {self._wrote[place][0].process: self._wrote[place][0] for place in reversed(later)}
        return [self._wrote[place][0] for place in between], sorted(earliest.values(), key=attrgetter("index"))

    # --- replay ----------------------------------------------------------------------------------------------
    def _apply(self, place: int, op: Op, step: _Step) -> list[Change]:
        log = self._logs.setdefault(op.process, ReplicaLog())
        match step:
            case Started():
                self._started[op.process] = op
                self._followed[op.process] = self._leader_of.get(op.process, "")
                self._leader_of[op.process] = ""
                self._led_in[op.process] = self._leads_in.pop(op.process, UNKNOWN)
                if op.index in self._on_new_disk:  # no recovery tells of a log that is not there
                    return self._remove(op, log, 0)
            case Append():
                return list(self._append(place, op, step, log))
            case LogStart():
                self._starts[op.process] = step.to
            case Truncate() | Stopped():
                end = 0 if isinstance(step, Stopped) else _end_after(step)
                if end < self._starts.get(op.process, 0):
                    del self._starts[op.process]  # the log begins anew
                return self._remove(op, log, end)
            case Recovered():
                return self._recover(op, step, log)
            case Leader() | Follower():
                leader = self._names.get(step.leader, "") if isinstance(step, Follower) else ""
                self._leader_of[op.process] = leader
                self._leads_in[op.process] = UNKNOWN if isinstance(step, Follower) else step.epoch
                if step.log_end_offset < log.end:
                    return self._remove(self._vanished_at(op), log, step.log_end_offset)
        return []

    def _vanished_at(self, op: Op) -> Op:
        """Return the op that shows why the log is shorter than its own events say: the last start, else the op."""
        started = self._started.get(op.process)
        last = next((c.op.index for c in reversed(self.in_order) if c.node == op.process), -1)
        return op if started is None or started.index < last else started

    def _append(self, place: int, op: Op, step: Append, log: ReplicaLog) -> Iterator[Change]:
        leader = self._leader_of.get(op.process, "")
        pieces = [(step.base, step.end, op.index)]
        if step.role != "leader":
            pieces = self._copied(place, step, leader)
        for piece in pieces:
            # A log that is written at an offset that it has already loses what it had from there on.
            for first, end, _ in log.put(piece):
                if end > piece[1]:
                    yield self._change(op, max(first, piece[1]), end, None)
            yield self._change(op, *piece)

    def _copied(self, place: int, step: Append, leader: str) -> list[Piece]:
        """Return the follower's new pieces, with the origins that its leader's log has there."""
        theirs = self._logs[leader].slice(step.base, step.end) if leader in self._logs else []
        # A late answer shows what the leader had when it sent it, not what it has got there since.
        theirs = [piece for piece in theirs if self.epochs.sent(step, *piece[1:])]
        found: list[Piece] = []
        first = step.base
        for start, stop, origin in (*theirs, (step.end, step.end, UNKNOWN)):
            if start > first:
                found += self._sent_before(place, step, leader, (first, start))
            found += [(start, stop, origin)] if start < stop else []
            first = stop
        return found

    def _sent_before(self, place: int, step: Append, leader: str, missing: tuple[int, int]) -> list[Piece]:
        """Return what a leader's log lacks as its follower's copy is reported: lost since, or reported later."""
        first, end = missing
        found: list[Piece] = []
        while first < end:
            before = found[-1][2] if found else self._logs[leader].at(first - 1) if leader in self._logs else None
            # What was written since below it shows that a piece was gone before its follower could ask for it.
            lost = (
                p
                for p in reversed(self._undone.get(leader, ()))
                if p[0] <= first < p[1]
                and (p[0] == first or before in (None, p[2]))
                # A batch of its own epoch shows that it sent all of it as the leader in that epoch.
                and p[3] > self._led_from.get((leader, step.epoch), -1)
            )
            gone = next((p for p in lost if self.epochs.sent(step, min(p[1], end), p[2])), None)
            if gone is None:
                return [*found, *self._later(place, leader, first, end)]
            found.append((first, min(gone[1], end), gone[2]))
            first = found[-1][1]
        return found

    def _later(self, place: int, leader: str, first: int, end: int) -> list[Piece]:
        """Return pieces of a leader's appends that reach the collector after its follower's copy of them."""
        here = bisect_right(self._wrote_at, self._steps[place][0].index)
        found: list[Piece] = []
        while first < end:
            later = (self._wrote[each] for each in self._wrote_to.at(first, here))
            op, wrote = next(((op, wrote) for op, wrote in later if op.process == leader), (None, None))
            stop = end if wrote is None else min(end, wrote.end)
            found.append((first, stop, UNKNOWN if op is None else op.index))
            first = stop
        return found

    def _remove(self, op: Op, log: ReplicaLog, to: int) -> list[Change]:
        removed = log.cut(to)
        self._undone.setdefault(op.process, []).extend((*piece, op.index) for piece in removed)
        return [self._change(op, first, end, None) for first, end, _ in removed]

    def _recover(self, op: Op, step: Recovered, log: ReplicaLog) -> list[Change]:
        to = min(step.log_end_offset, self._replaced_from(op, step, log))
        found = self._remove(op, log, to) if to < log.end else []
        if tail := self._old_tail(op, step, log):
            found += self._remove(op, log, tail[0][0])
            for each in tail:
                log.put(each)
                found.append(self._change(op, *each))
        # The power loss undid a truncation that was never flushed: the old tail is back.
        while log.end < step.log_end_offset:
            end = log.end
            undone = (p for p in reversed(self._undone.get(op.process, ())) if p[0] <= end < p[1])
            back = next((p for p in undone if self.epochs.fits_cleaned(op, step, end, p[2])), None)
            if back is None:
                break
            piece = (end, min(back[1], step.log_end_offset), back[2])
            log.put(piece)
            found.append(self._change(op, *piece))
        if log.end < step.log_end_offset:
            # The process ended within a step, after an append and before its report: a write of that step failed.
            for piece in self._unreported(op, step, log.end):
                log.put(piece)
                found.append(self._change(op, *piece))
        return found

    def _old_tail(self, op: Op, step: Recovered, log: ReplicaLog) -> list[Piece]:
        """Return what a cut had removed and is back in place of what was written since; [] if nothing is."""
        end = step.log_end_offset
        written = log.at(end - 1)
        if written is None or self.epochs.is_last(op, step, written):
            return []
        undone = self._undone.get(op.process, [])
        cut = next(
            (p[3] for p in reversed(undone) if p[0] < end <= p[1] and self.epochs.is_last(op, step, p[2])), None
        )
        return [(first, min(stop, end), origin) for first, stop, origin, at in undone if at == cut and first < end]

    def _unreported(self, op: Op, step: Recovered, first: int) -> list[Piece]:
        """Return what a process had written as it ended: as the leader, or its leader's records."""
        epoch = self._led_in.get(op.process, UNKNOWN)
        if epoch != UNKNOWN and epoch == self.epochs.recovered_at(step, first):
            self.epochs.note(op.index, epoch)
            return [(first, step.log_end_offset, op.index)]
        leader, found = self._followed.get(op.process, ""), list[Piece]()
        if leader in self._logs and not any(end > first for _, end, *_ in self._undone.get(leader, ())):
            found = self._logs[leader].slice(first, step.log_end_offset)
            if not all(self.epochs.fits_cleaned(op, step, start, origin) for start, _, origin in found):
                found = []
        known = found[-1][1] if found else first
        return [*found, (known, step.log_end_offset, UNKNOWN)] if known < step.log_end_offset else found

    def _replaced_from(self, op: Op, step: Recovered, log: ReplicaLog) -> int:
        """Return the first offset at which the recovered log has a record of another epoch; its end, if none."""
        node, starts = op.process, starts_of(step)
        before, self._recovered[node] = self._recovered.get(node, []), starts
        # What fitted at the recovery before, and has not changed since, still does where the epochs are the same.
        other = next((pair for pair in zip_longest(before, starts) if pair[0] != pair[1]), ())
        sure = min([log.changed_from, *(each[0] for each in other if each is not None)])
        start = self._starts.get(node, 0)
        if starts and start < starts[0][0] <= self._deleted_to:
            # A disk error may end a process once its log's start has moved, and before it says so.
            start = self._starts[node] = starts[0][0]
        pieces = log.pieces_from(sure) if start <= sure else log.slice(start, log.end)
        unfit = self.epochs.unfit_from(op, starts, pieces)
        log.changed_from = log.end if unfit is None else unfit
        return log.changed_from

    def _change(self, op: Op, first: int, end: int, origin: int | None) -> Change:
        leader = self._leader_of.get(op.process, "")
        return Change(node=op.process, first=first, end=end, origin=origin, op=op, leader=leader)


_REPLAYED: Final = ("append", "log-start", "truncate", "recovered", "leader", "follower", "started", "stopped")


def copied(ops: Sequence[Op], piece: Piece) -> Iterator[Change]:
    """Yield the changes by which nodes got records of the piece; a copy of unknown origin may be one."""
    first, end, origin = piece
    for each in (origin, UNKNOWN):
        for change in _by_origin(ops).get(each, ()):
            if change.first < end and first < change.end:
                yield change


@fact
def _by_origin(ops: Sequence[Op]) -> Mapping[int, Sequence[Change]]:
    found: dict[int, list[Change]] = {}
    for change in copies_of(ops).in_order:
        if change.origin is not None:
            found.setdefault(change.origin, []).append(change)
    return found


@fact
def copies_of(ops: Sequence[Op]) -> Copies:
    """Return the replicas' logs over time."""
    return Copies(ops, names_of(ops))


def _led_from(steps: Iterable[tuple[Op, _Step]]) -> Mapping[tuple[str, int], int]:
    """Return the index of the op with which each node began to lead in each epoch."""
    found: dict[tuple[str, int], int] = {}
    for op, step in steps:
        if isinstance(step, Leader):
            found.setdefault((op.process, step.epoch), op.index)
    return found


def _overlaps(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what of the [first, end) ranges is also in another one."""
    known = 0
    for first, end in sorted(ranges):
        if first < known:
            yield first, min(end, known)
        known = max(known, end)


def _end_after(step: Truncate) -> int:
    # A truncation inside a batch removes the whole batch; `end` is where the log then physically ends.
    return 0 if step.reason == "full" else min(step.to, step.end)
