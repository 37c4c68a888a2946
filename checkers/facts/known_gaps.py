"""
Losses that Kafka to 3.9 does not promise to prevent: its known gaps, by name.

A gap is recognised by what happened, not by the loss itself: a loss that no gap explains stays a loss. In both
gaps a leader lost the record in a power loss, restarted, and was elected without it.

Source:  KIP-903, stale ISR expansion; KIP-966, last replica standing; KIP-380.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from checkers.facts.copies import copies_of
from checkers.facts.elections import Takeover
from checkers.facts.isr import isr_states
from checkers.facts.outages import Outage, outages
from checkers.facts.pauses import paused_ns
from checkers.facts.sightings import fetches
from checkers.facts.silences import silences
from harness.effect import nature_of
from harness.events import (
    ControllerOffice,
    Elected,
    Follower,
    Injection,
    Member,
    Members,
    MetadataState,
    Recovered,
)
from harness.model import Op, OpType, events_of

# How long a new controller may take to read who is registered; it reports no decision before.
FIRST_READING_NS: Final = 100_000_000
# Above every offset.
_ANY: Final = 1 << 62


def returned_unseen(ops: Sequence[Op], node: str, outage: Outage, elected: int) -> bool:
    """
    Return True if a replica restarted after its power loss and no controller could know that it was away.

    That is the case if it never left the ISR and a new controller took office after the power loss, or just before
    it and still read who is registered; or if the write that added it to the ISR was still in flight when it lost
    power; or if it had come back from another absence just before, and no controller had read so. Kafka leaves
    these gaps open while it keeps its state in the metadata (KIP-903, KIP-966).

    Args:
        ops: the ops of one partition and the global ones.
        node: the replica.
        outage: the power loss that took the record from it; it never copied the record again.
        elected: the index of the election in which it counted as a member of the ISR.
    """
    office = any(
        office.active and (outage.begun < op.index or _still_reads(ops, op, outage))
        for op, office in events_of(ops, ControllerOffice)
        if op.index < elected
    )
    before: Sequence[str] = ()
    stayed = True
    for state in isr_states(ops):
        if state.op.index >= elected:
            break
        if state.op.index > outage.begun:
            joined = node in state.isr and before and node not in before
            if joined and joined_before_return(ops, node, state.op):
                return True
            stayed = stayed and node in state.isr
        before = state.isr
    return (office and stayed) or _came_and_went(ops, node, outage)


def _came_and_went(ops: Sequence[Op], node: str, outage: Outage) -> bool:
    """
    Return True if a replica was away, registered, and lost its power before a controller had to know of that.

    A controller then reads its next registration alone, and takes it for one that has just started.
    """
    theirs = [(op, each) for op, each in events_of(ops, Member) if op.process == node]
    before = [(op, each) for op, each in theirs if op.index < outage.begun]
    if not before or outage.op.time_ns - before[-1][0].time_ns > FIRST_READING_NS:
        return False
    came, registered = before[-1]
    last = before[-2][0].index if len(before) > 1 else -1
    away = any(last < op.index < came.index and node not in seen.nodes for op, seen in events_of(ops, Members))
    read = any(
        incarnation == registered.incarnation
        for _, decision in events_of(ops, Elected)
        for _, incarnation in decision.saw or ()
    )
    return away and not read


def undone_cut(ops: Sequence[Op], offset: int, node: str, until: int) -> Outage | None:
    """
    Return the power loss that undid a replica's cut, so that it led with a record again that it had cut.

    None if there is none, or if a controller could know that the replica was away, and should not have elected it.
    A client is shown that record: the high watermark was flushed when another record was there.

    Args:
        ops: the ops of one partition and the global ones.
        offset: the record's offset.
        node: the replica.
        until: the index of an op at which it led.
    """
    changes = [each for each in copies_of(ops).changes(offset).get(node, ()) if each.op.index < until]
    if not changes or not isinstance(changes[-1].op.event, Recovered):
        return None
    *before, back = changes
    away = [o for o in outages(ops) if o.node == node and o.power_lost and o.op.index < back.op.index]
    led = (s.op.index for s in isr_states(ops) if s.leader == node and back.op.index < s.op.index < until)
    elected = next(led, None)
    if not away or elected is None or all(each.origin != back.origin for each in before):
        return None
    return away[-1] if returned_unseen(ops, node, away[-1], elected) else None


def _still_reads(ops: Sequence[Op], office: Op, outage: Outage) -> bool:
    """
    Return True if a controller that had just taken office reported its first decision only after an outage.

    While it is paused it does not read.
    """
    went = outage.op.time_ns - office.time_ns
    paused = paused_ns(ops, office.process, office.time_ns, outage.op.time_ns)
    if not 0 <= went <= FIRST_READING_NS + paused or office.index > outage.begun:
        return False
    decided = (
        op.index for op, _ in events_of(ops, Elected) if op.process == office.process and op.index > office.index
    )
    return next(decided, -1) > outage.begun


def joined_before_return(ops: Sequence[Op], node: str, joined: Op, offset: int | None = None) -> bool:
    """
    Return True if a replica joined the ISR before it fetched again: the write was in flight when power went.

    Args:
        ops: the ops of one partition and the global ones.
        node: the replica.
        joined: the state in which it is in the ISR.
        offset: of a record that it has lost. If what the leader asks of the metadata is late, a fetch since that
            is not beyond that record has not let it in.
    """
    return fetched_since_return(ops, node, joined) <= (-1 if offset is None else offset)


def fetched_since_return(ops: Sequence[Op], node: str, joined: Op) -> int:
    """
    Return how far the fetches go that may have let a replica into the ISR since its power loss.

    Returns:
        -1 if the write was in flight when power went; a number above every offset if it need not have been. If
        what the leader asks of the metadata is late, the furthest fetch: of a record there or beyond, it was.
    """
    away = [each for each in outages(ops) if each.node == node and each.power_lost and each.begun < joined.index]
    if not away:
        return _ANY
    back = away[-1].back
    if back is None or joined.index < back:
        return -1
    # It restarted. A leader lets in who fetches from it, and a process fetches only once it was told from whom: a
    # fetch before that is of the process that lost its power.
    told = next((op.index for op, _ in events_of(ops, Follower) if op.process == node and op.index > back), None)
    since = [
        reached
        for (follower, _), (indexes, offsets) in fetches(ops).items()
        if follower == node and told is not None
        for reached in offsets[bisect_right(indexes, told) : bisect_left(indexes, joined.index)]
    ]
    if since and not _is_late(ops, joined, away[-1]):
        return _ANY
    return max(since, default=-1)


def _is_late(ops: Sequence[Op], joined: Op, outage: Outage) -> bool:
    """Return True if a leader's write that stands now may have been under way since before an outage."""
    writer = joined.event.leader if isinstance(joined.event, MetadataState) else None
    return any(
        each.node in (writer, "*") and each.since < outage.begun and each.until_ns >= outage.op.time_ns
        for each in silences(ops)
    )


def last_standing(ops: Sequence[Op], takeover: Takeover, outage: Outage, excused: Callable[[str], bool]) -> bool:
    """
    Return True if only the losing leader could be elected when a controller first decided about its return.

    Each other member of the ISR at that time must be excused, or not registered, or about to leave the ISR: down
    or without a session at some time since it joined. That time is the first state written after the losing
    leader registered again. If controllers report what they saw, it is the first state written by a
    controller that saw the new registration.

    Args:
        ops: the ops of one partition and the global ones.
        takeover: the losing leader.
        outage: the power loss that took the record from it.
        excused: returns True if a node need not hold the record.

    Source:  KIP-966: the ISR shrinks to one member, which loses its unflushed records; no other member may lead.
    """
    back = _back(ops, outage)
    joined: dict[str, int] = {}
    left: dict[str, int] = {}
    registered: Sequence[str | None] | None = None
    for op in ops:
        match op.event:
            case Members(nodes=nodes):
                registered = nodes
            case MetadataState() as state:
                if op.index >= back:
                    break
                joined = {member: joined.get(member, op.index) for member in map(str, state.isr)}
            case Injection(nodes=nodes) if (
                op.type is not OpType.INVOKE and nature_of(op).effect.leaves_the_cluster
            ):
                left.update(dict.fromkeys(nodes, op.index))
    # The leader may report the epoch of that decision before the watch shows its state.
    decided = any(state.op.index == back and state.epoch == takeover.epoch for state in isr_states(ops))
    if takeover.node not in joined or (takeover.op.index < back and not decided):
        return False
    others = [member for member in joined if member != takeover.node]
    # A leader may let in a follower whose session has ended already.
    absent = {*others} - {*registered} if registered is not None else set()
    return all(excused(each) or each in absent or left.get(each, -1) > joined[each] for each in others)


def returned_with_all(ops: Sequence[Op], node: str, outage: Outage) -> bool:
    """
    Return True if no other member of the ISR could lead when a controller first decided about a replica's return.

    It saw all of them return, or gone, at once. Then it writes that there is no leader and leaves the ISR as it
    is, since its last members are never removed, and the replica is among those that may lead next.

    Source:  KIP-966, before which the ISR keeps the last replicas, whatever they lost.
    """
    back = _back(ops, outage)
    decided = next((state for state in isr_states(ops) if state.op.index >= back), None)
    return decided is not None and decided.leader is None and node in decided.isr


def _back(ops: Sequence[Op], outage: Outage) -> int:
    """Return the index from which a state takes the losing leader's return into account."""
    since = outage.op.index if outage.back is None else outage.back
    for op, registered in events_of(ops, Member):
        if op.process == outage.node and op.index > since:
            return _decided(ops, outage.node, since, registered.incarnation) or op.index
    return since


def _decided(ops: Sequence[Op], node: str, since: int, incarnation: int | None) -> int | None:
    """
    Return the index of the first state by a controller that had seen a node's registration, if known.

    A controller may report its decision before the broker does that it is registered. And it reports none that it
    has written when it hears that it is deposed: such a state counts once the metadata has shown the registration.
    """
    decisions = (elected for op, elected in events_of(ops, Elected) if op.index > since)
    seen = (elected.epoch for elected in decisions if any(each == incarnation for _, each in elected.saw or ()))
    epoch = next(seen, None)
    shown = next((op.index for op, each in events_of(ops, Members) if op.index > since and node in each.nodes), 0)
    told = {elected.epoch for _, elected in events_of(ops, Elected)}
    for op, state in events_of(ops, MetadataState) if epoch is not None else ():
        if state.epoch == epoch or (op.index > shown > 0 and state.epoch not in told):
            return op.index
    return None
