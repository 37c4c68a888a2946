"""
When a node's clocks were set wrong: it then measures lag, sessions and waits otherwise than the history's time.

What it does early or late by the history's time may be in time by its own clocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.fact import fact
from harness.effect import Effect, nature_of
from harness.events import Injection
from harness.model import Op, OpType, events_of


@fact
def _spans(ops: Sequence[Op]) -> dict[str, list[tuple[int, int]]]:
    """Return the times in which each node's clocks were wrong: from a fault's invoke to the end of its healing."""
    found: dict[str, list[tuple[int, int]]] = {}
    since: dict[str, int] = {}
    for op, fault in events_of(ops, Injection):
        nature = nature_of(op)
        for node in fault.nodes:
            if nature.effect is Effect.CLOCK_WRONG:
                since.setdefault(node, op.time_ns)
            elif Effect.CLOCK_WRONG in nature.heals and op.type is OpType.OK and node in since:
                found.setdefault(node, []).append((since.pop(node), op.time_ns))
    for node, began in since.items():
        found.setdefault(node, []).append((began, ops[-1].time_ns))
    return found


def clock_was_wrong(ops: Sequence[Op], node: str, since_ns: int, until_ns: int) -> bool:
    """Return True if a node's clocks were wrong at any moment between two times of the history."""
    return any(began <= until_ns and since_ns <= ended for began, ended in _spans(ops).get(node, ()))
