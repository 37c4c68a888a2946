"""
When each node was down, and when it lost its unflushed bytes.

A kill keeps the page cache, so a killed broker loses nothing. Only a power loss discards unflushed bytes, and a
flush that fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.facts.fact import fact
from harness.effect import DOWN, UNFLUSHED_LOST, Effect, nature_of
from harness.events import Injection, Started
from harness.model import Op, OpType, Source, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """
    One node's time without a process.

    Attributes:
        begun: the index of the fault's invoke.
        op: the fault's ok.
        back: the index of the first op that shows a new process, None if there is none.
        emptied: the ok of the fault that took the node's disk meanwhile, None if it has it still.
    """

    node: str
    begun: int
    op: Op
    back: int | None
    emptied: Op | None = None

    @property
    def power_lost(self) -> bool:
        """True if bytes were lost with the process: with its power, by a flush that failed, or with its disk."""
        return self.emptied is not None or nature_of(self.op).effect in UNFLUSHED_LOST

    @property
    def settles(self) -> bool:
        """True if what is there afterwards is durable: after a failed flush it may be in the page cache alone."""
        return nature_of(self.op).effect is Effect.POWER_LOST

    def lasts_at(self, index: int) -> bool:
        """Return True if the node may have been down at that op; the fault takes effect at or after its invoke."""
        return self.begun < index and (self.back is None or index < self.back)


@fact
def outages(ops: Sequence[Op]) -> list[Outage]:
    """Return every outage that the nemesis caused and verified, in the order of verification."""
    invoked: dict[tuple[str, tuple[str, ...]], int] = {}
    found: list[Outage] = []
    for op, fault in events_of(ops, Injection):
        if not nature_of(op).effect.is_down:
            continue
        if op.type is OpType.INVOKE:
            invoked[fault.name, fault.nodes] = op.index
        elif op.type is OpType.OK:
            begun = invoked.pop((fault.name, fault.nodes), op.index)
            found += [_outage(ops, node, begun, op) for node in fault.nodes]
    return found


@fact
def starts_on_new_disks(ops: Sequence[Op]) -> frozenset[int]:
    """Return the indexes of the starts that found an empty disk: the first of each node after it lost its own."""
    lost: set[str] = set()
    found: set[int] = set()
    for op in ops:
        match op.event:
            case Injection(nodes=nodes) if op.type is OpType.OK and nature_of(op).effect is Effect.DISK_LOST:
                lost.update(nodes)
            case Started() if op.process in lost:
                lost.remove(op.process)
                found.add(op.index)
    return frozenset(found)


def _outage(ops: Sequence[Op], node: str, begun: int, op: Op) -> Outage:
    back = _back(ops, node, op)
    emptied = next(
        (
            each
            for each, fault in events_of(ops, Injection)
            if nature_of(each).effect is Effect.DISK_LOST
            and each.type is OpType.OK
            and node in fault.nodes
            and op.index < each.index
            and (back is None or each.index < back)
        ),
        None,
    )
    return Outage(node=node, begun=begun, op=op, back=back, emptied=emptied)


def _back(ops: Sequence[Op], node: str, fault: Op) -> int | None:
    for op in ops:
        if op.index > fault.index and op.source in (Source.BROKER, Source.NEMESIS):
            match op.event:
                case Started() if op.process == node:
                    return op.index
                case Injection(nodes=nodes) if op.type is OpType.OK and node in nodes:
                    if nature_of(op).heals & DOWN:
                        return op.index
    return None
