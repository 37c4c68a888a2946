"""
What each process said of its role and its high watermark so far: one entry for each node and partition.

The events that change neither are left out: most of a run's are appends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from checkers.facts.moments import SAID, Said, Standing, standing_after
from harness.events import Append, IsrChanged, Ready
from harness.events.codec import key_of_kind
from harness.model import Op

SAID_FS: Final = frozenset(f for _, f in map(key_of_kind, SAID))
_CHANGES_NEITHER: Final = (Append, IsrChanged, Ready)


class Step(NamedTuple):
    """
    One broker event about a partition, with the replica as its process described it before and after.

    Attributes:
        told: the index of the op that last changed its high watermark before, -1 for none.
    """

    event: Said
    before: Standing
    after: Standing
    told: int


@dataclass(slots=True)
class Replicas:
    """The replicas of all nodes, each with the op that last changed its high watermark."""

    _known: dict[str, dict[tuple[str, int], tuple[Standing, int]]] = field(default_factory=dict)

    def start(self, node: str) -> None:
        """Follow the start of a node's process, which has said nothing yet."""
        self._known.pop(node, None)

    def step(self, op: Op, event: Said, place: tuple[str, int]) -> Step | None:
        """Follow a broker's event about a partition; None if it changes neither role nor high watermark."""
        if isinstance(event, _CHANGES_NEITHER):
            return None
        mine = self._known.setdefault(op.process, {})
        before, told = mine.get(place, (Standing(), -1))
        after = standing_after(before, event, {})
        moved = after.high_watermark != before.high_watermark
        mine[place] = after, op.index if moved else told
        return Step(event, before, after, told)
