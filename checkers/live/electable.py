"""
Members of the ISR that lose or lack what a leader's high watermark has passed, op by op, by what brokers report.

Records have origins as in checkers/facts/copies.py, so that no record is taken for another at its offset. Of each
log only the last pieces are remembered. Only what was appended since the last fault that may end copies counts, as
a lawful loss of an older record looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from checkers.facts.moments import Said
from checkers.facts.replica_log import UNKNOWN, Piece, ReplicaLog
from harness.events import (
    Append,
    Follower,
    HighWatermark,
    Leader,
    MetadataState,
    Recovered,
    Stopped,
    Truncate,
)
from harness.model import Op

# Pieces of a log that are remembered; each append of a leader is one.
PIECES_MAX: Final = 256
# The origin of a copy whose leader's append is recorded later: on real machines events of two processes race.
AWAITED: Final = -2


class Gone(NamedTuple):
    """Committed offsets [first, end) that a member of the ISR has no more, or never had, and what shows it."""

    node: str
    first: int
    end: int
    joined: bool
    proof: tuple[int, ...]


class RecentLog(ReplicaLog):
    """
    The last pieces of a log.

    Attributes:
        floor: what lies below is forgotten.
    """

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self.floor = 0

    def put(self, piece: Piece) -> list[Piece]:
        """Write the piece; forget half of the pieces when there are too many."""
        removed = super().put(piece)
        if len(self.pieces) > PIECES_MAX:
            del self.pieces[: PIECES_MAX // 2]
            self.floor = self.pieces[0][0]
        return removed

    def resolve(self, appended: Piece) -> None:
        """Give what was copied of an append, and recorded before it, its origin."""
        first, end, origin = appended
        place = len(self.pieces)
        while place and self.pieces[place - 1][1] > first:
            place -= 1
            start, stop, held = self.pieces[place]
            if held == AWAITED and first <= start and stop <= end:
                self.pieces[place] = start, stop, origin


@dataclass(slots=True, kw_only=True)
class Electable:
    """
    The committed records of one partition, the replicas' logs, and who may be elected.

    Attributes:
        low: no offset below it counts.
    """

    low: int = 0
    _logs: dict[str, RecentLog] = field(default_factory=dict)
    _follows: dict[str, str] = field(default_factory=dict)
    _leads: set[str] = field(default_factory=set)
    _obeyed: dict[str, bool] = field(default_factory=dict)
    _committed: RecentLog = field(default_factory=RecentLog)
    _by: int = -1
    _epoch: int = -1
    _isr: frozenset[str | None] = frozenset()
    _state: int = -1

    def __len__(self) -> int:
        return len(self._committed.pieces) + sum(len(log.pieces) for log in self._logs.values())

    def forget(self) -> None:
        """Count nothing that any log has now: a fault may have ended any of it."""
        self.low = max([self.low, self._committed.end, *(log.end for log in self._logs.values())])
        self._committed = RecentLog()

    def deleted(self, before: int) -> None:
        """Count nothing below an offset before which records are deleted on purpose: nobody may ask for it."""
        self.low = max(self.low, before)

    def step(self, op: Op, event: Said, names: dict[int, str]) -> Gone | None:
        """Follow a broker's event; return what a member of the ISR truncated of what was committed."""
        node = op.process
        log = self._logs.get(node)
        if log is None:
            log = self._logs[node] = RecentLog()
        match event:
            case Append():
                for piece in self._written(op, event):
                    log.put(piece)
                if event.role == "leader":
                    self._resolve(node, (event.base, event.end, op.index))
            case HighWatermark(to=to) if node in self._leads:
                self._commit(log, to, op)
            case Truncate():
                removed = log.cut(0 if event.reason == "full" else min(event.to, event.end))
                return self._taken(op, removed)
            case Leader() | Follower():
                self._follows[node] = names.get(event.leader, "") if isinstance(event, Follower) else ""
                self._obeyed[node] = event.epoch <= self._epoch and node in self._isr
                (self._leads.add if isinstance(event, Leader) else self._leads.discard)(node)
                log.cut(event.log_end_offset)
            case Recovered(log_end_offset=end):
                log.cut(end)
                log.put((log.end, end, UNKNOWN))
            case Stopped():
                log.cut(0)
        return None

    def start(self, node: str) -> None:
        """Follow the start of a node's process: it leads and follows nobody yet."""
        self._leads.discard(node)
        self._follows[node] = ""

    def state(self, op: Op, state: MetadataState, *, exact: bool) -> Gone | None:
        """
        Follow a state in the metadata; return what a new member of the ISR lacks of what was committed.

        Args:
            op: the state's op.
            state: the state.
            exact: brokers' events and states are recorded in their true order, as in a simulated run.
        """
        known, first = self._isr, self._state < 0
        self._isr, self._epoch, self._state = frozenset(state.isr), state.epoch, op.index
        leader = self._logs.get(state.leader or "")
        if not exact or first or leader is None:
            return None
        for node in sorted(str(each) for each in self._isr - known if each != state.leader):
            log = self._logs.get(node) or RecentLog()
            for start, stop, origin in self._committed.pieces:
                piece = max(start, log.floor, leader.floor, self.low), stop, origin
                for lacks, until in log.lacks(piece) if piece[0] < stop else ():
                    if not leader.lacks((lacks, until, origin)):
                        return Gone(node, lacks, until, joined=True, proof=(self._by, op.index))
        return None

    def _written(self, op: Op, step: Append) -> Iterator[Piece]:
        """Yield what an append wrote; a follower's copies have the origins that its leader's log has there."""
        if step.role == "leader":
            yield step.base, step.end, op.index
            return
        theirs, first = self._logs.get(self._follows.get(op.process, "")), step.base
        for start, stop, origin in theirs.slice(step.base, step.end) if theirs is not None else ():
            if start > first:
                yield first, start, UNKNOWN
            yield start, stop, origin
            first = stop
        if first < step.end:
            yield first, step.end, AWAITED if theirs is None or theirs.end <= first else UNKNOWN

    def _resolve(self, leader: str, appended: Piece) -> None:
        for node, follows in self._follows.items():
            if follows == leader and node in self._logs:
                self._logs[node].resolve(appended)

    def _commit(self, log: RecentLog, to: int, op: Op) -> None:
        passed = log.slice(max(self._committed.end, self.low), to)
        for piece in passed:
            if piece[2] >= 0:
                self._committed.put(piece)
                self._by = op.index

    def _taken(self, op: Op, removed: list[Piece]) -> Gone | None:
        node = op.process
        if node not in self._isr or not self._obeyed.get(node, False):
            return None
        follows = self._follows.get(node, "")
        leader = self._logs.get(follows)
        for first, end, origin in removed:
            for start, stop, committed in self._committed.slice(max(first, self.low), end):
                # If its leader lacks the record too, the question is how that one lost it.
                held = not follows or (leader is not None and leader.at(start) == origin)
                if origin == committed and held:
                    return Gone(node, start, stop, joined=False, proof=(self._by, self._state, op.index))
        return None
