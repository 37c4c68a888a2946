"""When processes were paused, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from checkers.facts.fact import fact
from harness.effect import Effect, nature_of
from harness.events import Injection
from harness.model import Op, events_of


class Change(NamedTuple):
    """A fault that pauses processes, or that lets them go on."""

    op: Op
    nodes: frozenset[str]
    pauses: bool


@fact
def pauses(ops: Sequence[Op]) -> list[Change]:
    """Return everything that paused a process or let it go on, asked and done."""
    faults = ((op, fault, nature_of(op)) for op, fault in events_of(ops, Injection))
    return [
        Change(op, frozenset(fault.nodes), nature.effect is Effect.PAUSED)
        for op, fault, nature in faults
        if Effect.PAUSED in {nature.effect, *nature.heals}
    ]


def paused_ns(ops: Sequence[Op], node: str, since_ns: int, until_ns: int) -> int:
    """Return for how long a node may have been paused between two times, in nanoseconds."""
    paused, begun = 0, None
    for change in pauses(ops):
        if node in change.nodes:
            if begun is not None:
                paused += max(0, min(change.op.time_ns, until_ns) - max(begun, since_ns))
            begun = change.op.time_ns if change.pauses else None
    return paused + (max(0, until_ns - max(begun, since_ns)) if begun is not None else 0)
