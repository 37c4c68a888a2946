"""
Which records of a node's log could not be lost with its power: those that were flushed before.

A flush is shown by the broker (`flushed`, or `flush` of a segment), by the harness (the fault `flush`), or by a
recovery that found the record after an earlier power loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from checkers.facts.fact import fact
from checkers.facts.outages import outages
from checkers.facts.view import key_of
from harness.events import Flush, Flushed, Injection, Recovered
from harness.model import Op, OpType, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushing:
    """
    One proof that what a node's log held is durable.

    Attributes:
        since: what was appended before this index is covered.
        op: the op that shows it.
        upto: the offset below which it is durable; None for the whole log.
    """

    since: int
    op: Op
    upto: int | None


def flushed(ops: Sequence[Op], node: str, offset: int, begun: int, until: int) -> Op | None:
    """
    Return the op that shows that a copy was durable before a power loss, None if nothing shows it.

    Args:
        ops: the ops of one partition and the global ones.
        node: the copy's node.
        offset: the record's offset.
        begun: the index of the append.
        until: the index of the power loss.
    """
    for each in flushings(ops).get(node, ()):
        if begun < each.since and each.op.index < until and (each.upto is None or each.upto > offset):
            return each.op
    return None


@fact
def flushings(ops: Sequence[Op]) -> Mapping[str, Sequence[Flushing]]:
    """Return every proof of what each node's log held durably, by node."""
    found: dict[str, list[Flushing]] = {}
    topic, partition = key_of(ops)
    for op, done in events_of(ops, Flushed):
        found.setdefault(op.process, []).append(Flushing(since=op.index, op=op, upto=done.upto))
    for op, file in events_of(ops, Flush):
        if file.path.startswith(f"{topic}-{partition}/") and file.path.endswith(".log"):
            found.setdefault(op.process, []).append(Flushing(since=op.index, op=op, upto=None))
    asked: dict[tuple[str, ...], int] = {}
    for op, fault in events_of(ops, Injection):
        # The fault has no effect that a checker could read: it breaks nothing.
        if fault.name == "flush" and op.type is OpType.INVOKE:
            asked[fault.nodes] = op.index
        elif fault.name == "flush" and op.type is OpType.OK:
            for node in fault.nodes:
                flushing = Flushing(since=asked.get(fault.nodes, op.index), op=op, upto=None)
                found.setdefault(node, []).append(flushing)
    lost_power = [outage for outage in outages(ops) if outage.settles]
    for op, recovered in events_of(ops, Recovered):
        before = [each for each in lost_power if each.node == op.process and each.op.index < op.index]
        if before:
            flushing = Flushing(since=before[-1].op.index, op=op, upto=recovered.log_end_offset)
            found.setdefault(op.process, []).append(flushing)
    return found
