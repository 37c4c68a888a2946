"""
What an acknowledgement promises where a majority of a group has what is committed, and which faults end that.

The acknowledgement says that some majority had the record, and not which one. So the record may lawfully be lost
once faults may have taken it from so many members that those without it can be a majority. Every doubt is an
excuse: a fault counts from the request on, for it may have come after the copy; a power loss counts unless a flush
is proven in between; and where members came or went beside a fault, who left took the record along.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from checkers.facts.durable import flushed
from checkers.facts.fact import fact
from checkers.facts.outages import outages
from checkers.facts.proof import Excuse
from checkers.facts.rot import may_be_flipped
from checkers.facts.view import at, setup_of, traits
from harness.effect import LOSSY, Effect, nature_of
from harness.events import Assigned, Cut, Delay, Hold, Injection, MetadataState
from harness.model import Op, OpType, events_of
from harness.target.traits import Commit, Promise

# What each fault does to a member; where a disk is promised, the first ones take nothing.
_UNFLUSHED: Final = {
    Effect.POWER_LOST: "lost its unflushed bytes with its power",
    Effect.PAGES_LOST: "lost its unflushed bytes as a flush failed",
    Effect.DISK_GONE: "lost its unflushed bytes with its disk, which came back",
}
_TAKES: Final = _UNFLUSHED | {
    Effect.LOG_CUT: "had files of its log deleted",
    Effect.DISK_LOST: "lost its disk",
    Effect.BIT_ROT: "had a byte of its files flipped",
}
_BEFELL: Final = {
    Effect.POWER_LOST: "lost its power",
    Effect.PAGES_LOST: "had a flush fail",
    Effect.DISK_GONE: "lost its disk for a while",
}
# Beside these alone a group is whole, and hands over what it holds to those that join it.
_HARMLESS: Final = frozenset({Effect.NONE, Effect.MOVED_AWAY, Effect.LEADER_MOVED})


# The offset of what is promised, if it is not known, or if it is no record.
NOT_KNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """
    A record that a group had acknowledged, or that a reader was shown.

    Attributes:
        offset: NOT_KNOWN if it is not known.
        asked: the index of the op that asked for it.
        told: the index of the op that says that a majority had it.
        until: the index of the op before which it must have been lost; None for the end.
    """

    offset: int
    asked: int
    told: int
    until: int | None = None

    def within(self, begun: int, ended: int) -> bool:
        """Return True if something that lasted between two ops may have happened after it was asked for."""
        return ended > self.asked and (self.until is None or begun < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    What faults left of a promise.

    Attributes:
        members: the group that promised it.
        lawful: whether those that may lack the record can be a majority of the group.
        excuses: what took it from members, or may have.
        kept: what happened to each other member, in words, without its name.
    """

    members: tuple[str, ...]
    lawful: bool
    excuses: tuple[Excuse, ...]
    kept: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Robbery:
    """A fault that may have taken records from a node: it began with one op, and was told of by another."""

    node: str
    effect: Effect
    begun: int
    op: Op


def is_quorum(ops: Sequence[Op]) -> bool:
    """Return True if a majority of a group has what is committed: there is no ISR, and no min ISR."""
    return traits(ops).commit is Commit.QUORUM


def majority_of(members: Sequence[str]) -> int:
    """Return how many members are a majority."""
    return len(members) // 2 + 1


def standing_of(ops: Sequence[Op], promised: Promised) -> Standing:
    """
    Return what faults left of a promise.

    Of N members, a majority had the record; those that were robbed may all be of it. The loss is lawful iff
    N - max(0, majority - robbed) >= majority. Where the group changed beside a fault, that counts for each group
    that it was since, and who left is robbed.
    """
    first, *later = _groups(ops, promised)
    groups = [first, *(later if later and _is_disturbed(ops) else ())]
    members = tuple(dict.fromkeys(chain.from_iterable(group for group, _ in groups)))
    robbed = {node: excuse for node in members if (excuse := _robbed(ops, promised, node)) is not None}
    excuses = [*robbed.values()]
    if len(groups) > 1:
        changes = [*_changes(groups)]
        excuses += [each for each in changes if each.member not in robbed]
        robbed |= {each.member: each for each in changes}
    had = min(max(0, majority_of(group) - len(robbed.keys() & {*group})) for group, _ in groups)
    return Standing(
        members=first[0],
        lawful=any(len(group) - had >= majority_of(group) for group, _ in groups),
        excuses=tuple(excuses),
        kept=tuple((node, _kept(ops, promised, node)) for node in members if node not in robbed),
    )


def befell(ops: Sequence[Op], promised: Promised, node: str) -> str:
    """Return what happened to a node since a record was asked for, in words without its name."""
    robbed = _robbed(ops, promised, node)
    return _kept(ops, promised, node) if robbed is None else robbed.text


# --- who is in the group -------------------------------------------------------------------------------------
def _groups(ops: Sequence[Op], promised: Promised) -> list[tuple[tuple[str, ...], Op | None]]:
    """Return the group when the record was asked for, and each other one since, with the op that shows it."""
    setup = setup_of(ops)
    current: tuple[str, ...] = setup.replicas if setup is not None else ()
    shown: Op | None = None
    later: list[tuple[tuple[str, ...], Op | None]] = []
    for op, members in _memberships(ops):
        if op.index < promised.asked:
            current, shown = members, op
        elif promised.within(op.index, op.index) and {*members} != {*(later[-1][0] if later else current)}:
            later.append((members, op))
    return [(current, shown), *later]


@fact
def _memberships(ops: Sequence[Op]) -> list[tuple[Op, tuple[str, ...]]]:
    """Return who was in the group, or was to be, each time that it was seen."""
    found = [(op, tuple(map(str, state.isr))) for op, state in events_of(ops, MetadataState)]
    found += [(op, tuple(map(str, event.replicas))) for op, event in events_of(ops, Assigned)]
    return sorted((each for each in found if each[1]), key=lambda each: each[0].index)


def _changes(groups: Sequence[tuple[tuple[str, ...], Op | None]]) -> Iterator[Excuse]:
    """Yield, for each change of the group, who left it; and that it grew, if nobody did."""
    (before, _), *later = groups
    for members, op in later:
        assert op is not None, "an op shows each later group"
        left = [node for node in before if node not in members]
        for node in left:
            yield Excuse(member=node, text=f"left the group at {at(op)}", op=op)
        if not left:
            yield Excuse(member="the group", text=f"became {' '.join(members)} at {at(op)}", op=op)
        before = members


@fact
def _is_disturbed(ops: Sequence[Op]) -> bool:
    """Return True if a fault may have kept a member behind the others, so that they could not hand over all."""
    faults = (op for op, _ in events_of(ops, Injection) if op.type is not OpType.FAIL)
    on_links = any(True for kind in (Cut, Hold, Delay) for _ in events_of(ops, kind))
    return on_links or any(nature_of(op).effect not in _HARMLESS for op in faults)


# --- what faults take ----------------------------------------------------------------------------------------
@fact
def robberies(ops: Sequence[Op]) -> list[Robbery]:
    """Return every fault that took records from a node, or may have: one whose end is not known counts."""
    asked: dict[tuple[str, tuple[str, ...]], Op] = {}
    found: list[Robbery] = []
    for op, fault in events_of(ops, Injection):
        effect, key = nature_of(op).effect, (fault.name, fault.nodes)
        if effect not in LOSSY:
            continue
        if op.type is OpType.INVOKE:
            asked[key] = op
            continue
        begun = asked.pop(key, op)
        if op.type is not OpType.FAIL:
            found += [Robbery(node=node, effect=effect, begun=begun.index, op=op) for node in fault.nodes]
    for (_, nodes), op in asked.items():
        found += [Robbery(node=node, effect=nature_of(op).effect, begun=op.index, op=op) for node in nodes]
    return sorted(found, key=lambda each: each.op.index)


def _robbed(ops: Sequence[Op], promised: Promised, node: str) -> Excuse | None:
    """Return what may have taken the record from a member since it was asked for, None if nothing may."""
    for each in robberies(ops):
        if each.node == node and promised.within(each.begun, _end(ops, each)) and _takes(ops, each, promised):
            return Excuse(member=node, text=f"{_TAKES[each.effect]} at {at(each.op)}", op=each.op)
    return None


def _end(ops: Sequence[Op], robbery: Robbery) -> int:
    """Return the index until which a fault may have taken something: one that was not told of, to the end."""
    return ops[-1].index + 1 if robbery.op.type is OpType.INVOKE else robbery.op.index


def _takes(ops: Sequence[Op], robbery: Robbery, promised: Promised) -> bool:
    if robbery.effect in _UNFLUSHED:
        return traits(ops).promise is Promise.MEMORY and _flush(ops, robbery, promised) is None
    return robbery.effect is not Effect.BIT_ROT or may_be_flipped(robbery.op, promised.offset)


def _flush(ops: Sequence[Op], robbery: Robbery, promised: Promised) -> Op | None:
    """Return the flush that had made durable what the node had when the record was acknowledged, None for none."""
    return flushed(ops, robbery.node, promised.offset, promised.told, robbery.begun)


def _kept(ops: Sequence[Op], promised: Promised, node: str) -> str:
    """Return what happened to a member that still must have the record, if it ever had it."""
    for each in robberies(ops):
        if each.node != node or each.effect not in _UNFLUSHED or not promised.within(each.begun, each.op.index):
            continue
        said, done = f"{_BEFELL[each.effect]} at {at(each.op)}", _flush(ops, each, promised)
        if done is not None:
            return f"{said}, and had flushed what it had at {at(done)}"
        return f"{said}, which takes nothing that is on its disk"
    for outage in outages(ops):
        if outage.node == node and promised.within(outage.begun, outage.op.index):
            return f"was down from {at(outage.op)} on, and kept its files"
    return "lost nothing"
