"""
What a schedule believes of the cluster while it is drawn: nothing depends on its being true.

It makes sensible steps likely; which of them make sense is seen when they are played (harness/chance/sense.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Beliefs:
    """
    Who leads, who led before that, who is away, and what stands on the links.

    Shapes:  holds are as `release` names them, rules as `heal` does: "A -> B".
    """

    leader: str
    before: str
    down: list[str] = field(default_factory=list)
    zombies: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def is_up(self, name: str) -> bool:
        """Whether the node runs, reaches ZooKeeper, and is not paused."""
        return name not in (*self.down, *self.zombies, *self.paused)

    def note(self, step: str) -> None:
        """Take note of a step that the schedule will take."""
        verb, _, rest = step.partition(" ")
        words = rest.split()
        match verb:
            case "elect":
                self.leader, self.before = rest, self.leader
            case "kill" | "power-loss":
                _put(self.down, words)
                _take(self.paused, words)
            case "restart":
                _take(self.down, words)
            case "zombie":
                _put(self.zombies, words)
            case "return":
                _take(self.zombies, words)
            case "pause":
                _put(self.paused, words)
            case "resume":
                _take(self.paused, words)
            case "hold":
                _put(self.holds, [rest])
            case "release":
                _take(self.holds, list(self.holds) if rest == "all" else [rest])
            case "cut" | "delay" | "double":
                src, _, dst = next(words[at : at + 3] for at, word in enumerate(words[1:]) if "->" in word)
                _put(self.rules, [f"{src} -> {dst}"])
            case "heal":
                _take(self.rules, [rest])


def _put(kept: list[str], names: list[str]) -> None:
    kept += [name for name in names if name not in kept]


def _take(kept: list[str], names: list[str]) -> None:
    kept[:] = [name for name in kept if name not in names]
