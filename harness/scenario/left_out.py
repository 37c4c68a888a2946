"""Which replicas a scenario allows to stay out of the ISR at its end: it says so with its last steps."""

from __future__ import annotations

from collections.abc import Sequence

from harness.scenario.condition_types import InSync
from harness.scenario.file import Step
from harness.scenario.steps import Await, Require


def left_out(steps: Sequence[Step], replicas: Sequence[str]) -> frozenset[str]:
    """
    Return the replicas of the main partition that the last steps leave out of its ISR.

    Only a `require isr = …` behind the last step that does something is about the end; an `await` waits for what
    passes. No such step: every replica must come back.

    Args:
        steps: those that the variant plays.
    """
    for step in reversed(steps):
        match step.act:
            case Require(InSync(nodes)):
                return frozenset(replicas) - {*nodes}
            case Require() | Await():
                continue
            case _:
                break
    return frozenset()
