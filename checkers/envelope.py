"""
Losses that lie outside of what Kafka promises while its state is in ZooKeeper: known holes, each by its name.

Rules:   a hole is recognised by what happened, not by its harm: a loss that no hole accounts for stays a loss.
         Both are about a leader that lost the record with its power, came back, and was elected without it.
Source:  KIP-903, stale ISR expansion; KIP-966, last replica standing; KIP-380.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from checkers.elections import Takeover
from checkers.outages import Outage
from checkers.view import zookeeper_states
from harness.effect import nature_of
from harness.model import Op, OpType, Source


def returned_unseen(ops: Sequence[Op], takeover: Takeover, outage: Outage) -> bool:
    """
    Whether the losing leader came back from its power loss into an ISR that nobody could know it had left.

    Shapes:  outage is the power loss that took the record from it, after which it never copied it again.
    Nobody could know when the controller's office changed hands meanwhile, or when the write that let it into the
    ISR was still under way: Kafka leaves both open while it keeps its state in ZooKeeper (KIP-903, KIP-966).
    """
    isr: Sequence[str] = ()
    for op in ops:
        if op.index >= takeover.elected:
            return False
        if (op.source, op.f) == (Source.ZOOKEEPER, "leaderAndISR"):
            joined = takeover.node in op.value["isr"] and takeover.node not in isr
            if joined and isr and op.index > outage.begun:
                return True
            isr = op.value["isr"]
        took_office = (op.source, op.f) == (Source.BROKER, "controller") and op.value["active"]
        if took_office and op.index > outage.begun:
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
        if (op.source, op.f) == (Source.ZOOKEEPER, "leaderAndISR"):
            if op.index >= back:
                break
            members = list(map(str, op.value["isr"]))
            joined = {member: joined.get(member, op.index) for member in members}
        elif (
            op.source is Source.NEMESIS and op.type is not OpType.INVOKE and nature_of(op).effect.leaves_zookeeper
        ):
            left.update(dict.fromkeys(map(str, op.value["nodes"]), op.index))
    if takeover.node not in joined or takeover.op.index < back:
        return False
    others = [member for member in joined if member != takeover.node]
    return all(excused(member) or left.get(member, -1) > joined[member] for member in others)


def _back(ops: Sequence[Op], outage: Outage) -> int:
    """From when on a leaderAndISR is about the losing leader's return; from the return on, if nobody told more."""
    since = outage.op.index if outage.back is None else outage.back
    told = (op for op in ops if (op.source, op.f, op.process) == (Source.BROKER, "registered", outage.node))
    registered = next((op for op in told if op.index > since), None)
    if registered is None:
        return since
    return _decided(ops, registered) or registered.index


def _decided(ops: Sequence[Op], registered: Op) -> int | None:
    """The index of the first leaderAndISR that was written by a controller that had seen the registration."""
    czxid = registered.value.get("czxid")
    seen = (op for op in ops if op.index > registered.index and (op.source, op.f) == (Source.BROKER, "elected"))
    epoch = next((op.value["epoch"] for op in seen if czxid in _seen(op)), None)
    return next((state.index for state in zookeeper_states(ops) if state.value["epoch"] == epoch), None)


def _seen(op: Op) -> list[int]:
    return [int(czxid) for _, czxid in op.value.get("saw", ())]
