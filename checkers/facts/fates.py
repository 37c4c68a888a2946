"""
What became of every copy of a record: from the append of each copy to the event that ended it, and why.

Only a fault may end a copy: a power loss that took unflushed bytes with that record among them, or the harness,
which deleted files. Every other end is a bug of the system under test, except three: a truncation to follow a
leader that lacks the record moves the question to that leader; a move to other nodes, to those; and followers fall
back to their high watermarks while a cluster is upgraded from a version without epochs (checkers/facts/window.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from checkers.facts.copies import copies_of
from checkers.facts.durable import flushed
from checkers.facts.fact import fact, select
from checkers.facts.outages import Outage, outages
from checkers.facts.replica_log import Change
from checkers.facts.rot import rot_at
from checkers.facts.view import REASONS, at, moved_away
from checkers.facts.window import in_window
from harness.effect import Effect, nature_of
from harness.events import Append, Ended, Follower, Injection, Leader, Recovered, Started, Truncate
from harness.model import Op, OpType, Source, events_of


class Cause(StrEnum):
    """Why a copy ended."""

    POWER = "power"
    HARNESS = "harness"
    FOLLOWED = "followed"
    CUT = "cut"
    DURABLE = "durable"
    SHORT = "short"
    REWRITTEN = "rewritten"
    VANISHED = "vanished"
    MOVED = "moved"
    WINDOW = "window"


# The reason of a truncation that throws a damaged batch away.
CORRUPT = "corrupt"
# The ends that a fault explains, or what is allowed while a cluster is upgraded.
BY_FAULT = frozenset({Cause.POWER, Cause.HARNESS, Cause.WINDOW})


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """
    How a copy ended.

    Attributes:
        op: the event that ended it.
        cause: why.
        text: the end in words, after the node's name.
        proof: the fault that took it; or the flush that shows that it could not be lost.
        leader: the leader that the node followed, "" if none.
    """

    op: Op
    cause: Cause
    text: str
    proof: Op | None = None
    leader: str = ""

    @property
    def by_fault(self) -> bool:
        """Whether something that may end a copy did."""
        return self.cause in BY_FAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """
    One copy of a record: the node that held it, since when, and how it ended.

    Attributes:
        begun: the append, or the recovery that brought the copy back.
        end: None if the node still had it at the end of the history.
    """

    node: str
    begun: Op
    end: End | None

    def holds_at(self, index: int) -> bool:
        """Return True if the copy existed at that op."""
        return self.begun.index < index and (self.end is None or self.end.op.index >= index)


def fates_of(ops: Sequence[Op], offset: int, origin: int) -> Mapping[str, Sequence[Fate]]:
    """
    Return every copy of a record, by node, each node's in index order.

    Args:
        ops: the ops of one partition and the global ones.
        offset: the record's offset.
        origin: the index of the leader's append (checkers/facts/copies.py).
    """
    changes = copies_of(ops).changes(offset)
    found: dict[str, list[Fate]] = {}
    for node, theirs in changes.items():
        begun: Op | None = None
        for change in theirs:
            if begun is None and change.origin == origin:
                begun = change.op
            elif begun is not None and change.origin != origin:
                has_it = leader_holds(changes, change, origin)
                end = end_of(ops, change, offset, begun.index, has_it, origin=origin)
                found.setdefault(node, []).append(Fate(node=node, begun=begun, end=end))
                begun = None
        if begun is not None:
            found.setdefault(node, []).append(Fate(node=node, begun=begun, end=None))
    return found


def leader_holds(changes: Mapping[str, Sequence[Change]], change: Change, origin: int) -> bool:
    """Return True if the leader that a node followed had the record when the node lost it."""
    theirs = [each for each in changes.get(change.leader, ()) if each.op.index < change.op.index]
    return bool(theirs) and theirs[-1].origin == origin


def end_of(ops: Sequence[Op], change: Change, offset: int, begun: int, leader_has_it: bool, *, origin: int) -> End:
    """
    Return why a copy ended.

    Args:
        ops: the ops of one partition and the global ones.
        change: the change that ended the copy.
        offset: the record's offset.
        begun: the index of the op from which on the node had the copy.
        leader_has_it: whether the leader that the node followed had the record then.
        origin: the index of the leader's append of it.
    """
    op, leader = change.op, change.leader
    match op.event:
        case Truncate(reason=reason, to=to):
            why = REASONS.get(reason, reason)
            text = f"truncated it at {at(op)} to {why} ({to})"
            if leader and not leader_has_it:
                return End(op=op, cause=Cause.FOLLOWED, text=f"{text}, to follow {leader}", leader=leader)
            if in_window(ops, change, origin):
                text = f"{text}, as it may where epochs are not known yet"
                return End(op=op, cause=Cause.WINDOW, text=text, leader=leader)
            rot = rot_at(ops, op.process, to, op.index) if reason == CORRUPT else None
            if rot is not None:
                text = f"{text}, of which a byte was flipped at {at(rot.op)}"
                return End(op=op, cause=Cause.HARNESS, text=text, proof=rot.op, leader=leader)
            return End(op=op, cause=Cause.CUT, text=text, leader=leader)
        case Append(base=base):
            return End(op=op, cause=Cause.REWRITTEN, text=f"wrote over it at {at(op)}, from offset {base} on")
        case Recovered() | Started():
            return _lost_at_start(ops, change, offset, begun)
        case Leader() | Follower():
            return End(op=op, cause=Cause.VANISHED, text=f"reported a log without it at {at(op)}, with no reason")
        case _:
            text = f"deleted its replica at {at(op)}"
            moved = moved_away(ops, op.process, op.index)
            return End(op=op, cause=Cause.MOVED if moved else Cause.VANISHED, text=text)


def _lost_at_start(ops: Sequence[Op], change: Change, offset: int, begun: int) -> End:
    op, node = change.op, change.node
    taken = _deleted_by_harness(ops, node, begun, op.index)
    if taken is not None:
        return End(op=op, cause=Cause.HARNESS, text=f"lost it to {taken.f} at {at(taken)}", proof=taken)
    rot = rot_at(ops, node, op.event.log_end_offset, op.index) if isinstance(op.event, Recovered) else None
    if rot is not None:
        text = f"lost it as it cut its log at its start, where a byte was flipped at {at(rot.op)}"
        return End(op=op, cause=Cause.HARNESS, text=text, proof=rot.op)
    outage = _power_loss(ops, node, begun, op.index)
    if outage is None and (cut_off := _cut_off(ops, node, begun, op.index)) is not None:
        text = f"lost it in a step that a failed write cut off at {at(cut_off)}"
        return End(op=op, cause=Cause.HARNESS, text=text, proof=cut_off)
    if outage is None:
        return End(op=op, cause=Cause.SHORT, text=f"came back without it at {at(op)}, without a power loss")
    if outage.emptied is not None:
        text = f"lost it with its disk at {at(outage.emptied)}"
        return End(op=op, cause=Cause.POWER, text=text, proof=outage.op)
    proof = flushed(ops, node, offset, begun, outage.op.index)
    if proof is not None:
        text = f"came back without it at {at(op)}, though it was durable since {at(proof)}"
        return End(op=op, cause=Cause.DURABLE, text=text, proof=proof)
    how = "with its power" if outage.settles else "as its flush failed"
    text = f"lost it unflushed {how} at {at(outage.op)}"
    return End(op=op, cause=Cause.POWER, text=text, proof=outage.op)


def _power_loss(ops: Sequence[Op], node: str, begun: int, until: int) -> Outage | None:
    """
    Return the power loss that took a copy: none of the node's events since showed that its log still had it.

    Of several it is the last one, but for one that took the whole disk.
    """
    found: Outage | None = None
    for outage in reversed(outages(ops)):
        if outage.node != node or outage.op.index > until or not outage.power_lost:
            continue
        # Events that were sent before the power loss may arrive after it, but not after the next start.
        since = outage.op.index if outage.back is None else outage.back
        if (outage.back is not None and outage.back < begun) or _reported_log(ops, node, since, until):
            break
        if found is None or outage.emptied is not None:
            found = outage
        if found.emptied is not None:
            break
    return found


def _reported_log(ops: Sequence[Op], node: str, after: int, until: int) -> bool:
    told = _log_reports(ops).get(node, ())
    return bisect_right(told, after) < bisect_left(told, until)


@fact
def _log_reports(ops: Sequence[Op]) -> Mapping[str, Sequence[int]]:
    """Return the indexes of the ops in which each node said where its log ends."""
    found: dict[str, list[int]] = {}
    for op in select(ops, Source.BROKER, "recovered", "leader", "follower", "truncate", "append"):
        found.setdefault(op.process, []).append(op.index)
    return found


def _cut_off(ops: Sequence[Op], node: str, begun: int, until: int) -> Op | None:
    """Return the end of a follower by a failed write that may have come after a truncation, before its report."""
    for op, _ in reversed(list(events_of(ops, Ended))):
        if op.process == node and begun < op.index < until:
            told = [each.index for each, _ in events_of(ops, Follower) if each.process == node]
            led = [each.index for each, _ in events_of(ops, Leader) if each.process == node]
            obeyed = max((index for index in told if index < op.index), default=-1)
            return op if obeyed > max((index for index in led if index < op.index), default=-1) else None
    return None


def _deleted_by_harness(ops: Sequence[Op], node: str, begun: int, until: int) -> Op | None:
    cuts = _cuts_by_harness(ops)
    return next((op for op, nodes in cuts if begun < op.index < until and node in nodes), None)


@fact
def _cuts_by_harness(ops: Sequence[Op]) -> Sequence[tuple[Op, Sequence[str]]]:
    """Return each fault that deleted files of logs, with its nodes."""
    return [
        (op, fault.nodes)
        for op, fault in events_of(ops, Injection)
        if op.type is OpType.OK and nature_of(op).effect is Effect.LOG_CUT
    ]
