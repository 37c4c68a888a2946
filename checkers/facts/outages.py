"""
When each node was down, and when it lost its unflushed bytes.

A kill keeps the page cache: a killed and restarted broker has lost nothing. Only power loss takes unflushed
bytes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.effect import DOWN, Effect, nature_of
from harness.events import Injection, Started
from harness.model import Op, OpType, Source, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """
    One node's time without a process.

    Shapes:  begun is the index of the fault's invoke, op its ok; back is the index of the first sign of a new
             process, None while there is none.
    """

    node: str
    begun: int
    op: Op
    back: int | None

    @property
    def power_lost(self) -> bool:
        """Whether unflushed bytes were lost with the process."""
        return nature_of(self.op).effect is Effect.POWER_LOST

    def lasts_at(self, index: int) -> bool:
        """Whether the node was down at that op; the fault may have bitten at any moment since its invoke."""
        return self.begun < index and (self.back is None or index < self.back)


def outages(ops: Sequence[Op]) -> list[Outage]:
    """Give every outage that the nemesis caused and proved, in the order in which they were proved."""
    invoked: dict[tuple[str, tuple[str, ...]], int] = {}
    found: list[Outage] = []
    for op, fault in events_of(ops, Injection):
        if not nature_of(op).effect.is_down:
            continue
        if op.type is OpType.INVOKE:
            invoked[fault.name, fault.nodes] = op.index
        elif op.type is OpType.OK:
            begun = invoked.pop((fault.name, fault.nodes), op.index)
            found += [Outage(node=node, begun=begun, op=op, back=_back(ops, node, op)) for node in fault.nodes]
    return found


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
