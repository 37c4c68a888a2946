"""
The state of the cluster that a schedule predicts while it is drawn; the prediction may be wrong.

It makes applicable steps likely. Whether a step is applicable is decided when it is played
(harness/random_schedule/applicable.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from harness.cluster.fault import Fault
from harness.effect import DOWN, LASTING, Effect
from harness.scenario.steps import Act, Cut, Delay, Double, Heal, Hold, Inject, Release, ReleaseAll

# Under these effects a node does not run, or does not reach the metadata.
_AWAY = DOWN | {Effect.CUT_OFF, Effect.PAUSED}


@dataclass(slots=True, kw_only=True)
class PredictedState:
    """
    The predicted leader, faults, holds and link rules.

    Attributes:
        leader: the node that leads.
        before: the node that led before it.
        suffering: (node, effect) for each fault in force, in the order of injection.
        holds: the holds that were not released.
        rules: the steps that heal the links with a cut, a delay or a doubling.
    """

    leader: str
    before: str
    faults: Mapping[str, Fault]
    suffering: list[tuple[str, Effect]] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    rules: list[Heal] = field(default_factory=list)

    def is_up(self, name: str) -> bool:
        """Return True if the node runs, reaches the metadata, and is not paused."""
        return name not in self.under(_AWAY)

    def under(self, effects: Collection[Effect]) -> list[str]:
        """Return the nodes under any of these effects, in the order of injection."""
        return [name for name, effect in self.suffering if effect in effects]

    def note(self, act: Act) -> None:
        """Update the prediction by a step of the schedule."""
        match act:
            case Inject(fault, nodes, None):
                self._note_fault(self.faults[fault], nodes)
            case Hold() if act not in self.holds:
                self.holds.append(act)
            case ReleaseAll():
                self.holds.clear()
            case Release(api, src, dst, direction):
                self.holds = [held for held in self.holds if held != Hold(direction, api, src, dst)]
            case Cut() | Delay() | Double():
                link = Heal(act.src, act.dst)
                self.rules += [link] if link not in self.rules else []
            case Heal():
                self.rules = [link for link in self.rules if link != act]

    def _note_fault(self, fault: Fault, nodes: Sequence[str]) -> None:
        if fault.effect is Effect.LEADER_MOVED:
            self.leader, self.before = nodes[0], self.leader
        ended = fault.heals | ({Effect.PAUSED} if fault.effect.is_down else frozenset())
        self.suffering = [each for each in self.suffering if each[0] not in nodes or each[1] not in ended]
        # A node can be down only once, whichever fault took it down.
        alike = DOWN if fault.effect.is_down else {fault.effect}
        if fault.effect in LASTING:
            self.suffering += [(name, fault.effect) for name in nodes if name not in self.under(alike)]
