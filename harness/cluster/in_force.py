"""The faults in force on each node, in the order of injection."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from harness.effect import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInForce:
    """
    One fault on one node.

    Attributes:
        fault: the fault's name; "" for a node that ended by itself.
        handle: a value that the fault needs to undo itself, such as a link's rule; None if it needs none.
    """

    fault: str
    effect: Effect
    node: str
    handle: object = None


class InForce:
    """The faults that are in force on a cluster's nodes."""

    def __init__(self) -> None:
        # Several threads may inject one fault into several nodes; each changes only entries of its own node.
        self._found: list[FaultInForce] = []

    def __iter__(self) -> Iterator[FaultInForce]:
        return iter(tuple(self._found))

    def begin(self, found: FaultInForce) -> None:
        """
        Record a fault, unless it is in force on that node already.

        A fault that takes the process down ends a pause.
        """
        if not any((known.fault, known.node) == (found.fault, found.node) for known in self):
            self._found.append(found)
        if found.effect.is_down:
            self.end(found.node, {Effect.PAUSED})

    def end(self, node: str, effects: Collection[Effect]) -> None:
        """Remove every fault of these effects on a node, if there are any."""
        for found in self:
            if found.node == node and found.effect in effects:
                self.remove(found)

    def remove(self, found: FaultInForce) -> None:
        """Remove one fault that was healed; do nothing if it is not in force."""
        if found in self._found:
            self._found.remove(found)

    def of(self, node: str, effect: Effect) -> FaultInForce | None:
        """Return the fault of that effect in force on a node, None if there is none."""
        return next((found for found in self if (found.node, found.effect) == (node, effect)), None)

    def nodes(self, effects: Collection[Effect]) -> frozenset[str]:
        """Return the nodes on which a fault of any of these effects is in force."""
        return frozenset(found.node for found in self if found.effect in effects)

    def in_order_of_healing(self) -> list[FaultInForce]:
        """
        Return all faults in the order in which they must be healed: by effect, then by node.

        Undoing one effect may need another one undone first (see Effect). Faults of one effect are independent,
        since each is on a node of its own; they are sorted by name, because the order of injection depends on
        threads if one fault is injected into several nodes at once. Wrong clocks and lost disks are undone in
        reverse order of injection.
        """
        order = list(Effect)
        found = list(reversed(tuple(self)))
        return sorted(found, key=lambda each: (_rank(each.effect, order), _by_name(each)))


def _rank(effect: Effect, order: list[Effect]) -> int:
    """Return the position of an effect; killed nodes and nodes that lost power restart in one group."""
    return order.index(Effect.DOWN if effect.is_down else effect)


def _by_name(found: FaultInForce) -> str:
    return found.node if found.effect.ends_when_node_returns or found.effect is Effect.PAUSED else ""
