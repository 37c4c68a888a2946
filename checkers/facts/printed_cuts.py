"""The cuts of replicas' logs that nodes printed; a line alone proves nothing, but it says what took a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.facts.view import at
from harness.events import Printed
from harness.model import Op, events_of

TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCut:
    """
    A node's line that says that it cut its log.

    Attributes:
        to: the offset at which its log ends from then on.
    """

    op: Op
    to: int

    @property
    def node(self) -> str:
        """The node that printed it."""
        return self.op.process


def cuts_below(ops: Sequence[Op], offset: int, since: int) -> tuple[PrintedCut, ...]:
    """Return each node's first cut after an index that left no record at this offset, in their order."""
    found: dict[str, PrintedCut] = {}
    for op, line in events_of(ops, Printed):
        if line.what == TRUNCATE and op.index > since and line.to is not None and 0 <= line.to <= offset:
            found.setdefault(op.process, PrintedCut(op=op, to=line.to))
    return tuple(found.values())


def cuts_text(cuts: Sequence[PrintedCut]) -> str:
    """Return what was cut where and when, as a clause; "" for nothing."""
    parts = [f"{cut.node} cut its log to {cut.to} at {at(cut.op)}" for cut in cuts]
    return (
        f"as they printed, {', '.join(parts)}"
        if len(parts) > 1
        else "".join(f"as it printed, {part}" for part in parts)
    )
