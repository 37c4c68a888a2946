"""
Replays on real processes: which steps of a schedule the simulator plays, so that none of them is skipped unseen.

Real processes have another timing, and a step may find nothing that it could do: an election of a node that is not
in the ISR yet. A replay that skips a step which the simulated run played is another run, and its silence proves
nothing (`must_play` in harness/run/spec.py; checkers/rules/vacuous.py).
"""

from __future__ import annotations

from dataclasses import replace

from harness.events import Step
from harness.model import OpType, events_of
from harness.run.spec import RunSpec
from harness.search.simulated import play_in_memory, sim_player
from harness.target.found import target
from targets import DEFAULT_TARGET, VIRTUAL_HOST


def as_replay(spec: RunSpec) -> RunSpec:
    """
    Return the spec of a random run on real processes with the lines that it must play: those the simulator plays.

    Any other spec is returned unchanged: written scenarios skip nothing, and the simulator runs our broker alone.
    """
    if not spec.random or spec.host == VIRTUAL_HOST or spec.target != DEFAULT_TARGET or spec.alike:
        return spec
    _, ops = play_in_memory(sim_player(target(DEFAULT_TARGET)), replace(spec, host=VIRTUAL_HOST))
    played = (step.line for op, step in events_of(ops, Step) if op.type is OpType.INVOKE and step.line)
    return replace(spec, must_play=tuple(dict.fromkeys(played)))
