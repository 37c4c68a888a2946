"""
What a world does of its own while its schedule is played, and how the history hears of it.

Before the first step there is no cluster yet, and after the last one it must be left alone, so that it heals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from harness.effect import Effect, Nature
from harness.events import Injection, Step
from harness.model import Op, OpType
from targets.simulator.engine.simulation import Simulation


@dataclass(slots=True)
class PlayTime:
    """
    The time from the end of a schedule's first step to the end of its last one.

    Attributes:
        last_line: the line of the last step.
    """

    last_line: int
    begun: bool = False
    over: bool = False

    def begins(self, op: Op) -> bool:
        """Note an op of the history; return True for the one op with which the time begins."""
        if op.type is OpType.INVOKE or not isinstance(op.event, Step):
            return False
        self.over |= op.event.line == self.last_line
        first = not self.begun and op.type is OpType.OK
        self.begun |= first
        return first and not self.over


def note_fault(world: Simulation[Any], fault: str, name: str, effect: Effect) -> None:
    """Record a fault that no step of the schedule injects, as if one had."""
    about = Injection(name=fault, nodes=(name,), **Nature(effect=effect).as_fields())
    world.observe(about.PROCESS, OpType.INVOKE, about)
    world.observe(about.PROCESS, OpType.OK, replace(about, probe="drawn with the world"))
