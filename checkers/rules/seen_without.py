"""
Members of the ISR that are seen without a promised record, where brokers report nothing.

What a client was told with acks=all is on every member of the ISR, at every moment. The fabric sees where a
follower's log ends; so it sees a member that cut a promised record, even if it copies the record again.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.assured import Assured, assured_records
from checkers.facts.isr import isr_states
from checkers.facts.keepers import keepers_of
from checkers.facts.keeping import Keeping
from checkers.facts.moments import anomaly, margin_ns
from checkers.facts.quorum import is_quorum
from checkers.facts.suspects import is_suspicious
from checkers.facts.view import at, offsets_text
from harness.events import Fetch, MetadataState
from harness.model import Anomaly, Kind, Op, ranges_of


def seen_without(ops: Sequence[Op]) -> list[Anomaly]:
    """Return one NOT_REPLICATED anomaly for each node and op that shows it without records it had to have."""
    if is_quorum(ops):
        return []  # no single member has to have anything
    groups: dict[tuple[str, int], list[tuple[Assured, Keeping]]] = {}
    for assured in assured_records(ops):
        if not is_suspicious(ops, assured):
            continue
        keepers = keepers_of(ops, assured.acked.offset, assured.acked.value)
        for node, keeping in keepers.gone() if keepers else ():
            if keeping.op is not None and _in_isr(ops, node, keeping.op):
                groups.setdefault((node, keeping.op.index), []).append((assured, keeping))
    return [_anomaly(ops, node, group) for (node, _), group in sorted(groups.items(), key=lambda each: each[0][1])]


def _in_isr(ops: Sequence[Op], node: str, op: Op) -> bool:
    """Return True if the node was surely in the ISR when its log was seen, or joined it just then."""
    if isinstance(op.event, MetadataState):
        return True
    if not isinstance(op.event, Fetch):
        return False  # what clients and final logs show is judged as a loss
    margin, states = margin_ns(ops), isr_states(ops)
    before = [state for state in states if state.op.time_ns <= op.time_ns - margin][-1:]
    around = [state for state in states if abs(state.op.time_ns - op.time_ns) <= margin]
    return bool(before or around) and all(node in state.isr for state in (*before, *around))


def _anomaly(ops: Sequence[Op], node: str, group: Sequence[tuple[Assured, Keeping]]) -> Anomaly:
    first, keeping = group[0]
    ranges = ranges_of(sorted({assured.acked.offset for assured, _ in group}))
    shown = {keeping.op.index} if keeping.op is not None else set()
    text = f"{node}, of the ISR, lacks what was acknowledged (acks=all) at {offsets_text(ranges)} at "
    text += f"{at(first.acked.ok)}: it {keeping.text}"
    proof = (*shown, *(assured.acked.index for assured, _ in group))
    return anomaly(ops, Kind.NOT_REPLICATED, text, proof, [node], None, ranges)
