"""
What a schedule believes of the cluster while it is drawn: nothing depends on its being true.

It makes sensible steps likely; which of them make sense is seen when they are played (harness/chance/sense.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from harness.effect import DOWN, LASTING, Effect
from harness.fault import Fault

# Under these a node does not run, or does not reach ZooKeeper.
_AWAY = DOWN | {Effect.CUT_OFF, Effect.PAUSED}


@dataclass(slots=True, kw_only=True)
class Beliefs:
    """
    Who leads, who led before that, what is in force on nodes, and what stands on the links.

    Shapes:  suffering are (node, effect), in the order in which they began.
             holds are as `release` names them, rules as `heal` does: "A -> B".
    """

    leader: str
    before: str
    faults: Mapping[str, Fault]
    suffering: list[tuple[str, Effect]] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def is_up(self, name: str) -> bool:
        """Whether the node runs, reaches ZooKeeper, and is not paused."""
        return name not in self.under(_AWAY)

    def under(self, effects: Collection[Effect]) -> list[str]:
        """The nodes under any of these effects, in the order in which they came under them."""
        return [name for name, effect in self.suffering if effect in effects]

    def note(self, step: str) -> None:
        """Take note of a step that the schedule will take."""
        verb, _, rest = step.partition(" ")
        words = rest.split()
        match verb:
            case "hold":
                _put(self.holds, [rest])
            case "release":
                _take(self.holds, list(self.holds) if rest == "all" else [rest])
            case "cut" | "delay" | "double":
                src, _, dst = next(words[at : at + 3] for at, word in enumerate(words[1:]) if "->" in word)
                _put(self.rules, [f"{src} -> {dst}"])
            case "heal":
                _take(self.rules, [rest])
            case _ if verb in self.faults:
                self._note_fault(self.faults[verb], words)

    def _note_fault(self, fault: Fault, nodes: list[str]) -> None:
        if fault.effect is Effect.LEADER_MOVED:
            self.leader, self.before = nodes[0], self.leader
        ended = fault.heals | ({Effect.PAUSED} if fault.effect.is_down else frozenset())
        self.suffering = [each for each in self.suffering if each[0] not in nodes or each[1] not in ended]
        # A node is down once, whatever took it down.
        alike = DOWN if fault.effect.is_down else {fault.effect}
        if fault.effect in LASTING:
            self.suffering += [(name, fault.effect) for name in nodes if name not in self.under(alike)]


def _put(kept: list[str], names: list[str]) -> None:
    kept += [name for name in names if name not in kept]


def _take(kept: list[str], names: list[str]) -> None:
    kept[:] = [name for name in kept if name not in names]
