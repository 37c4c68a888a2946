"""
Which replica held which record at an offset at any time, from the replayed appends, truncations and recoveries.

The origin of a record is the index of the op with which a leader appended it. A follower's copy has the origin of
the record in its leader's log. Origins distinguish two records at one offset without epochs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness.events import Append, Follower, Recovered, Truncate
from harness.model import Op, Source

UNKNOWN: Final = -1
_Step: TypeAlias = Append | Truncate | Recovered | Follower


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From this op on, the node's log has the record of that origin at the offset; None if it has no record."""

    origin: int | None
    op: Op


class Copies:
    """
    The replicas' copies at each offset over time.

    All offsets between two neighbouring borders of appends and truncations change alike, and are replayed once.

    Args:
        ops: the ops of one partition and the global ones.
        names: broker id -> node name.
    """

    def __init__(self, ops: Sequence[Op], names: Mapping[int, str]) -> None:
        self._steps: list[tuple[Op, _Step]] = [
            (op, op.event) for op in ops if op.source is Source.BROKER and isinstance(op.event, _Step)
        ]
        self._names = names
        self._borders = sorted({border for _, step in self._steps for border in _borders(step)})
        self._replayed: dict[int, dict[str, list[Change]]] = {}

    @property
    def reported(self) -> bool:
        """True if brokers reported their appends."""
        return any(isinstance(step, Append) for _, step in self._steps)

    def changes(self, offset: int) -> Mapping[str, Sequence[Change]]:
        """Return the changes at the offset in each node's log, in index order."""
        place = bisect_right(self._borders, offset)
        if place not in self._replayed:
            self._replayed[place] = self._replay(offset)
        return self._replayed[place]

    def last_change(self, node: str, offset: int, before: int) -> Change | None:
        """Return the last change at the offset in the node's log before that op; None if there was none."""
        changes = self.changes(offset).get(node, ())
        return next((change for change in reversed(changes) if change.op.index < before), None)

    def written(self, offset: int, after: int, until: int) -> Op | None:
        """
        Return the leader's append that wrote a record acknowledged at that offset, None if none was reported.

        Brokers' and clients' ops race to the collector. If no append lies between the two ops, the first append
        after them is returned.

        Args:
            offset: the acknowledged offset.
            after: the index of the record's invoke.
            until: the index of the record's ok.
        """
        wrote = [op for op, step in self._steps if _leader_wrote(step, offset) and op.index > after]
        between = [op for op in wrote if op.index < until]
        return between[-1] if between else next(iter(wrote), None)

    def _replay(self, offset: int) -> dict[str, list[Change]]:
        by_node: dict[str, list[Change]] = {}
        leader_of: dict[str, str] = {}
        for op, step in self._steps:
            changes = by_node.setdefault(op.process, [])
            now = changes[-1].origin if changes else None
            match step:
                case Follower(leader=leader):
                    leader_of[op.process] = self._names.get(leader, "")
                case Append(base=base, end=end, role=role):
                    if base <= offset < end:
                        origin = op.index
                        if role != "leader":
                            origin = self._copied(offset, op, leader_of.get(op.process, ""), by_node)
                        changes.append(Change(origin=origin, op=op))
                case Truncate() | Recovered():
                    if _end_after(step) <= offset and now is not None:
                        changes.append(Change(origin=None, op=op))
                    elif isinstance(step, Recovered) and step.log_end_offset > offset and now is None and changes:
                        # The power loss undid a truncation that was never flushed: the old tail is back.
                        changes.append(Change(origin=changes[-2].origin, op=op))
        return by_node

    def _copied(self, offset: int, copy: Op, leader: str, by_node: Mapping[str, Sequence[Change]]) -> int:
        theirs = by_node.get(leader, ())
        if theirs and theirs[-1].origin is not None:
            return theirs[-1].origin
        # The leader's own event may reach the collector after its follower's.
        later = ((op, step) for op, step in self._steps if op.index > copy.index and op.process == leader)
        wrote = next((op for op, step in later if _leader_wrote(step, offset)), None)
        return wrote.index if wrote else UNKNOWN


def _leader_wrote(step: _Step, offset: int) -> bool:
    return isinstance(step, Append) and step.role == "leader" and step.base <= offset < step.end


def _end_after(step: Truncate | Recovered) -> int:
    if isinstance(step, Recovered):
        return step.log_end_offset
    # A truncation inside a batch removes the whole batch; `end` is where the log then physically ends.
    return 0 if step.reason == "full" else min(step.to, step.end)


def _borders(step: _Step) -> tuple[int, ...]:
    match step:
        case Append():
            return step.base, step.end
        case Truncate() | Recovered():
            return (_end_after(step),)
        case _:
            return ()
