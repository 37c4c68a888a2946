"""
Which nodes an acknowledgement with acks=all speaks for, by ZooKeeper and the fabric: those surely in the ISR.

ZooKeeper's watch may be late, so a node counts if it was in every state from before the request until after the
answer. A follower also counts, with its leader, if it was seen to fetch the record's offset in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.facts.acked import Acked, acked_records
from checkers.facts.fact import fact
from checkers.facts.isr import IsrState, isr_states
from checkers.facts.moments import margin_ns
from checkers.facts.sightings import sightings
from harness.events import Produce
from harness.model import Op, OpType, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Assured:
    """
    An acknowledgement with acks=all.

    Attributes:
        members: the nodes that had the record, if the acknowledgement is true.
        begun_ns: when it was asked for.
    """

    acked: Acked
    members: frozenset[str]
    begun_ns: int


@fact
def assured_records(ops: Sequence[Op]) -> list[Assured]:
    """Return every acknowledgement with acks=all and an offset, in the order of acknowledgement."""
    begun = {op.index: op.time_ns for op, _ in events_of(ops, Produce) if op.type is OpType.INVOKE}
    return [
        Assured(
            acked=acked,
            members=_members(ops, acked, begun.get(acked.invoked, acked.ok.time_ns)),
            begun_ns=begun.get(acked.invoked, acked.ok.time_ns),
        )
        for acked in acked_records(ops)
        if acked.by_all and acked.offset >= 0
    ]


def _members(ops: Sequence[Op], acked: Acked, begun_ns: int) -> frozenset[str]:
    margin = margin_ns(ops)
    during = _between(isr_states(ops), begun_ns - margin, acked.ok.time_ns + margin)
    always = frozenset.intersection(*(frozenset(state.isr) for state in during)) if during else frozenset()
    return always | _copied(ops, acked, _between(isr_states(ops), begun_ns - margin, acked.ok.time_ns))


def _copied(ops: Sequence[Op], acked: Acked, during: Sequence[IsrState]) -> frozenset[str]:
    """Return the followers in the ISR that copied the offset from the only leader of that time, and the leader."""
    leaders = {state.leader for state in during}
    leader = during[0].leader if during else None
    if leader is None or len(leaders) != 1:
        return frozenset()
    ends: dict[str, int] = {}
    found: set[str] = set()
    for sighting in sightings(ops):
        if sighting.op.index >= acked.index:
            break
        if sighting.leader == leader:
            passed = ends.get(sighting.node, 0) <= acked.offset < sighting.end
            if passed and sighting.fresh and sighting.op.index > acked.invoked:
                found |= {sighting.node, leader}
            ends[sighting.node] = sighting.end
    return frozenset(found) & frozenset(during[-1].isr)


def _between(states: Sequence[IsrState], since_ns: int, until_ns: int) -> list[IsrState]:
    """Return the states of that time, the one in force at its begin among them; [] if that one is not known."""
    first = max((place for place, state in enumerate(states) if state.op.time_ns <= since_ns), default=None)
    if first is None:
        # The first state of a run is seen before any client begins, if only just.
        first = 0
    return [state for state in states[first:] if state.op.time_ns <= until_ns]
