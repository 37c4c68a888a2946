"""
Losses that lie outside of what Kafka promises while its state is in ZooKeeper: known holes, each by its name.

Rules:   a hole is recognised by what happened, not by its harm: a loss that no hole accounts for stays a loss.
         Both are about a leader that lost the record with its power, came back, and was elected without it.
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
    Whether the losing leader came back from its power loss into an ISR that nobody could know it had left.

    Shapes:  outage is the power loss that took the record from it, after which it never copied it again.
    Nobody could know when the controller's office changed hands meanwhile, or when the write that let it into the
    ISR was still under way: Kafka leaves both open while it keeps its state in ZooKeeper (KIP-903, KIP-966).
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
    Whether the losing leader was the last that could be elected when its return was first decided about.

    Shapes:  excused says whether a node need not hold the record. Whoever else was in the ISR by then must be
             excused, or on its way out of it: down or without a session at some time since it joined. "By then" is
             the first leaderAndISR that was written after the losing leader had registered again; where the
             controllers tell what they saw, the first that was written by one that had seen that.
    Source:  KIP-966: the ISR has shrunk to one, that one loses what it had not flushed, and nobody else may lead.
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
    """From when on a leaderAndISR is about the losing leader's return; from the return on, if nobody told more."""
    since = outage.op.index if outage.back is None else outage.back
    for op, registered in events_of(ops, Registered):
        if op.process == outage.node and op.index > since:
            return _decided(ops, op.index, registered.czxid) or op.index
    return since


def _decided(ops: Sequence[Op], registered: int, czxid: int | None) -> int | None:
    """The index of the first leaderAndISR that was written by a controller that had seen the registration."""
    decisions = (elected for op, elected in events_of(ops, Elected) if op.index > registered)
    seen = (elected.epoch for elected in decisions if any(each == czxid for _, each in elected.saw or ()))
    epoch = next(seen, None)
    return next((op.index for op, state in events_of(ops, LeaderAndIsr) if state.epoch == epoch), None)
