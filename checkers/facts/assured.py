"""
Which nodes an acknowledgement with acks=all speaks for, by the metadata and the fabric: those surely in the ISR.

The metadata's watch may be late, so a node counts if it was in every state from before the request until after the
answer. A follower also counts, with its leader, if it was seen to fetch the record's offset in between. Where the
metadata are polled, the first way shows nothing: a node may leave and return between two looks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from checkers.facts.acked import Acked, acked_records
from checkers.facts.fact import fact
from checkers.facts.isr import IsrState, isr_states
from checkers.facts.moments import is_polled, margin_ns
from checkers.facts.sightings import Sighting, sightings
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
    asked = {op.index: op.time_ns for op, _ in events_of(ops, Produce) if op.type is OpType.INVOKE}
    found = []
    for acked in acked_records(ops):
        if acked.by_all and acked.offset >= 0:
            begun = asked.get(acked.invoked, acked.ok.time_ns)
            found.append(Assured(acked=acked, members=_members(ops, acked, begun), begun_ns=begun))
    return found


def _members(ops: Sequence[Op], acked: Acked, begun_ns: int) -> frozenset[str]:
    margin, told = margin_ns(ops), acked.ok.time_ns
    around = _between(isr_states(ops), begun_ns - margin, told + margin)
    known = around and not is_polled(ops)
    always = frozenset.intersection(*(frozenset(state.isr) for state in around)) if known else frozenset()
    return always | _copied(ops, acked, around)


def _copied(ops: Sequence[Op], acked: Acked, around: Sequence[IsrState]) -> frozenset[str]:
    """Return the followers in the ISR that copied the offset from the leader that answered, and that leader."""
    before = [state for state in around if state.op.index < acked.index]
    copied: dict[str, set[str]] = {}
    steps = _steps(ops)
    for sighting, last in steps[bisect_right(steps, acked.invoked, key=_index) :]:
        if sighting.op.index >= acked.index:
            break
        if sighting.fresh and last <= acked.offset < sighting.end:
            copied.setdefault(sighting.leader, set()).add(sighting.node)
    # A leader that is not alone in its ISR answers once a follower has copied the record from it.
    certain = len({state.leader for state in before}) == 1 or all(len(state.isr) > 1 for state in around)
    if len(copied) != 1 or not certain or not before:
        return frozenset()
    ((leader, followers),) = copied.items()
    return frozenset({leader, *followers}) & frozenset(before[-1].isr)


@fact
def _steps(ops: Sequence[Op]) -> list[tuple[Sighting, int]]:
    """Return the ends of followers' logs, each with the one that was seen before on its link."""
    ends: dict[tuple[str, str], int] = {}
    found = []
    for sighting in sightings(ops):
        link = (sighting.node, sighting.leader)
        found.append((sighting, ends.get(link, 0)))
        ends[link] = sighting.end
    return found


def _between(states: Sequence[IsrState], since_ns: int, until_ns: int) -> list[IsrState]:
    """Return the states of that time, the one in force at its begin among them; [] if that one is not known."""
    first = max((place for place, state in enumerate(states) if state.op.time_ns <= since_ns), default=None)
    if first is None:
        # The first state of a run is seen before any client begins, if only just.
        first = 0
    return [state for state in states[first:] if state.op.time_ns <= until_ns]


def _index(step: tuple[Sighting, int]) -> int:
    return step[0].op.index
