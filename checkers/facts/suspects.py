"""
Which promised records some replica may have been seen without, by no fault: a sieve before the proof.

`Keepers` (checkers/facts/keepers.py) follows all replicas through the history for one record. A run of an hour has
a hundred thousand records, so it is asked only about those for which this sieve lets a doubt through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from checkers.facts.assured import Assured, assured_records
from checkers.facts.durable import flushings
from checkers.facts.fact import fact
from checkers.facts.isr import IsrState
from checkers.facts.refuters import Ints
from checkers.facts.seen import Away, Back, Deleted, Lead, Seen, order, timeline
from checkers.facts.sightings import Sighting, last_answer
from harness.model import Op

# Above every offset.
_ANY: Final = 1 << 62
# (index, first, end): at that op a replica was seen that may owe the offsets from `first` on, `end` exclusive.
_Doubt: TypeAlias = tuple[int, int, int]


@dataclass(slots=True)
class _Replica:
    """
    What one replica may owe, at most.

    Attributes:
        owes: the offset below which it may have to have records.
        flushed: the same at its last flush: what of it no loss of power takes.
        hurt: whether a fault took something of it; until then it may owe all that is promised, if it is in an ISR.
        seen: what was seen of its log since its process started.
    """

    owes: int = 0
    flushed: int = 0
    hurt: bool = False
    seen: list[Sighting] = field(default_factory=list)


class _Sieve:
    """What the replicas may owe, as the history goes on, and the doubts so far."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.doubts: list[_Doubt] = []
        self._ops = ops
        self._replicas: dict[str, _Replica] = {}
        self._promised = 0

    def take(self, step: Assured | str | Seen) -> None:
        """Follow an acknowledgement, the flush of a node, or what was seen."""
        if isinstance(step, str):
            self._of(step).flushed = self._of(step).owes
        elif isinstance(step, Assured):
            self._promised = max(self._promised, step.acked.offset + 1)
            for node in step.members:
                self._of(node).owes = max(self._of(node).owes, step.acked.offset + 1)
        else:
            self._see(step)

    def _of(self, node: str) -> _Replica:
        return self._replicas.setdefault(node, _Replica())

    def _see(self, seen: Seen) -> None:
        match seen.event:
            case Lead(state=state, alone=True):
                for node in state.isr:
                    replica = self._of(node)
                    if not replica.hurt:
                        replica.owes = max(replica.owes, self._promised)
                    if node in state.joined:
                        self._join(replica, state)
            case Away(node=node, power_lost=True):
                self._of(node).owes, self._of(node).hurt = self._of(node).flushed, True
            case Deleted(node=node):
                self._replicas[node] = _Replica(hurt=True, seen=self._of(node).seen)
            case Back(node=node):
                self._of(node).seen = []
            case Sighting() as sighting:
                replica = self._of(sighting.node)
                if sighting.end < replica.owes:
                    self.doubts.append((seen.place, sighting.end, replica.owes))
                replica.owes = max(replica.owes, sighting.end)
                replica.seen.append(sighting)

    def _join(self, replica: _Replica, state: IsrState) -> None:
        """Doubt what a fetch lacked that was not answered when its follower joined the ISR."""
        for sighting in reversed(replica.seen):
            answered = last_answer(self._ops, (sighting.node, sighting.leader), state.op.index)
            if answered is None or sighting.op.index <= answered:
                break
            self.doubts.append((sighting.op.index, sighting.end, _ANY))


def is_suspicious(ops: Sequence[Op], assured: Assured) -> bool:
    """Return False if no replica was seen without a record after its acknowledgement, but for what faults took."""
    indexes, firsts, ends = _doubts(ops)
    offset = assured.acked.offset
    return bool(((indexes > assured.acked.index) & (firsts <= offset) & (offset < ends)).any())


@fact
def _doubts(ops: Sequence[Op]) -> Ints:
    """Return the doubts as columns: the index of each op, the first offset, and the offset after the last one."""
    promises = (((each.acked.ok.time_ns, each.acked.index), each) for each in assured_records(ops))
    flushes = (((each.op.time_ns, each.op.index), node) for node, them in flushings(ops).items() for each in them)
    steps: list[tuple[tuple[int, int], Assured | str | Seen]] = [*promises, *flushes]
    steps += [(order(each), each) for each in timeline(ops)]
    sieve = _Sieve(ops)
    for _, step in sorted(steps, key=itemgetter(0)):
        sieve.take(step)
    return np.array(sieve.doubts, dtype=np.int64).reshape(-1, 3).T
