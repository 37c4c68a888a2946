"""
Two records that a quorum acknowledged at one offset: one of them was promised a place that the other had.

Decision: it is lawful if either may have been lost, before the other was acknowledged, by faults that came after
it was asked for; then the loss is what is reported, as permitted. Both orders count, since acknowledgements may
arrive in another order than that in which the group took the records. A fault that came after both excuses nothing
here: at the second acknowledgement both were promised at once. Where the ISR has what is committed, the proof of
the loss (checkers/facts/proof.py) says more than two acknowledgements do, and nothing is reported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from checkers.facts.acked import Acked, acked_records, acknowledged_at
from checkers.facts.moments import anomaly
from checkers.facts.quorum import Promised, is_quorum, standing_of
from harness.model import Anomaly, Kind, Op


def acked_twice(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield each two records that were acknowledged with acks=all at one offset, if nothing explains it."""
    if not is_quorum(ops):
        return
    by_offset: dict[int, dict[str, Acked]] = {}
    for acked in acked_records(ops):
        if acked.by_all and acked.offset >= 0:
            by_offset.setdefault(acked.offset, {}).setdefault(acked.value, acked)
    for offset, values in sorted(by_offset.items()):
        for first, second in combinations(values.values(), 2):
            if not (_lost_before(ops, first, second) or _lost_before(ops, second, first)):
                text = f"{first.value!r} and {second.value!r} were both acknowledged at offset {offset}: the one "
                text += f"{acknowledged_at(first)}, the other {acknowledged_at(second)}, and no fault between may "
                text += "have taken either"
                proof = (first.index, second.index)
                yield anomaly(ops, Kind.FALSE_ACK, text, proof, (), None, ((offset, offset + 1),))


def _lost_before(ops: Sequence[Op], acked: Acked, other: Acked) -> bool:
    """Return True if a record may lawfully have been lost before another was acknowledged."""
    promised = Promised(offset=acked.offset, asked=acked.invoked, told=acked.index, until=other.index)
    return standing_of(ops, promised).lawful
