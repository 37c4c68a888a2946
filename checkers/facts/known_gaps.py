"""
Losses that Kafka does not promise to prevent while it keeps its state in ZooKeeper: its known gaps, by name.

A gap is recognised by what happened, not by the loss itself: a loss that no gap explains stays a loss. In both
gaps a leader lost the record in a power loss, restarted, and was elected without it.

Source:  KIP-903, stale ISR expansion; KIP-966, last replica standing; KIP-380.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from checkers.facts.elections import Takeover
from checkers.facts.outages import Outage
from harness.effect import nature_of
from harness.events import ControllerOffice, Elected, Injection, LeaderAndIsr, Registered
from harness.model import Op, OpType, events_of


def returned_unseen(ops: Sequence[Op], takeover: Takeover, outage: Outage) -> bool:
    """
    Return True if the losing leader restarted after its power loss and no controller could know that it was away.

    That is the case if a new controller took office after the power loss, or if the write that added the leader to
    the ISR was still in flight when it lost power. Kafka leaves both gaps open while it keeps its state in
    ZooKeeper (KIP-903, KIP-966).

    Args:
        ops: the ops of one partition and the global ones.
        takeover: the losing leader.
        outage: the power loss that took the record from it; it never copied the record again.
    """
    isr: Sequence[str | None] = ()
    for op in ops:
        if op.index >= takeover.elected:
            return False
        match op.event:
            case LeaderAndIsr() as state:
                joined = takeover.node in state.isr and takeover.node not in isr
                if joined and isr and op.index > outage.begun:
                    return True
                isr = state.isr
            case ControllerOffice(active=True) if op.index > outage.begun:
                return True
    return False


def last_standing(ops: Sequence[Op], takeover: Takeover, outage: Outage, excused: Callable[[str], bool]) -> bool:
    """
    Return True if only the losing leader could be elected when a controller first decided about its return.

    Each other member of the ISR at that time must be excused, or about to leave the ISR: down or without a session
    at some time since it joined. That time is the first leaderAndISR written after the losing leader registered
    again. If controllers report what they saw, it is the first leaderAndISR written by a controller that saw the
    new registration.

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
    for op in ops:
        match op.event:
            case LeaderAndIsr() as state:
                if op.index >= back:
                    break
                joined = {member: joined.get(member, op.index) for member in map(str, state.isr)}
            case Injection(nodes=nodes) if op.type is not OpType.INVOKE and nature_of(op).effect.leaves_zookeeper:
                left.update(dict.fromkeys(nodes, op.index))
    if takeover.node not in joined or takeover.op.index < back:
        return False
    others = [member for member in joined if member != takeover.node]
    return all(excused(member) or left.get(member, -1) > joined[member] for member in others)


def _back(ops: Sequence[Op], outage: Outage) -> int:
    """Return the index from which a leaderAndISR takes the losing leader's return into account."""
    since = outage.op.index if outage.back is None else outage.back
    for op, registered in events_of(ops, Registered):
        if op.process == outage.node and op.index > since:
            return _decided(ops, op.index, registered.czxid) or op.index
    return since


def _decided(ops: Sequence[Op], registered: int, czxid: int | None) -> int | None:
    """Return the index of the first leaderAndISR by a controller that had seen the registration, if known."""
    decisions = (elected for op, elected in events_of(ops, Elected) if op.index > registered)
    seen = (elected.epoch for elected in decisions if any(each == czxid for _, each in elected.saw or ()))
    epoch = next(seen, None)
    return next((op.index for op, state in events_of(ops, LeaderAndIsr) if state.epoch == epoch), None)
