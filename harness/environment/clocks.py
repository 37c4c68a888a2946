"""
Decides which clocks of a node can be set, which is fixed as its process starts, and asks what it reads of them.

A process has either a wall clock of its own beside the machine's monotonic one, or both clocks of its own, which
then show the same changes (harness/hosts/faketime.py). A run whose faults need neither has the machine's clocks,
and looks at them as fast as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness import limits
from harness.ability import Ability
from harness.cleanup.process import until
from harness.clocks import Reading, Which
from harness.cluster.fault import Fault
from harness.environment.needs import needs_of
from harness.hosts import moments
from harness.hosts.base import Host
from harness.model import PreconditionError
from harness.run.spec import RunSpec
from harness.scenario.steps import Inject
from harness.target.target import Target
from nemesis import faults_of

_WHICH: Final = {Ability.WALL_CLOCK: Which.WALL, Ability.CLOCKS: Which.BOTH}


class NodesClocks:
    """
    Which clocks the processes of a run's nodes have.

    If the run has faults of both kinds, a node gets the kind of the first fault that a step of the scenario names
    for it; otherwise the nodes have either kind in turns, and a node has the other at its next start.
    """

    def __init__(self, spec: RunSpec, target: Target) -> None:
        """Nothing has started yet."""
        faults = faults_of(target)
        steps = [step.act for step in spec.scenario.steps if isinstance(step.act, Inject)]
        self._wanted = sorted(_WHICH[each] for each in needs_of(spec, target) if each in _WHICH)
        self._named = {
            name: which for act in reversed(steps) if (which := _of(faults, act.fault)) for name in act.nodes
        }
        self._order = list(spec.draw.ids)
        self._lives = dict.fromkeys(self._order, 0)
        self._now: dict[str, Which | None] = {}

    def at_start(self, name: str) -> Which | None:
        """Return which clocks of a process that is about to start can be set, None for none."""
        self._now[name] = self._next(name)
        self._lives[name] += 1
        return self._now[name]

    def _next(self, name: str) -> Which | None:
        if len(self._wanted) < 2:
            return self._wanted[0] if self._wanted else None
        if name in self._named:
            return self._named[name]
        return self._wanted[(self._order.index(name) + self._lives[name]) % 2]

    def unfit(self, name: str, ability: Ability) -> str:
        """Return why the process that runs cannot have its clocks set like that, "" if it can."""
        which, has = _WHICH.get(ability), self._now.get(name)
        if which is None or which is has:
            return ""
        return (
            f"{name} was started with {'no' if has is None else has.value} clocks to set; expected {which.value}"
        )


def _of(faults: Mapping[str, Fault], name: str) -> Which | None:
    needs = faults[name].needs if name in faults else ()
    return next((_WHICH[need] for need in needs if need in _WHICH), None)


def asked(host: Host, target: Target, name: str) -> Reading:
    """
    Have a node's process print what it reads of its clocks, and return it.

    Raises:
        PreconditionError: it printed nothing in time.
    """
    read, asked_at = target.clocks, moments.now()
    if read is None:
        raise PreconditionError(f"clocks of {name}: target {target.name} prints none; expected one that does")
    printed = host.ask_clocks(name)
    found: list[tuple[int, int]] = []

    def answered() -> bool:
        whole, newline, _ = printed().rpartition("\n")
        found[:] = [seen for line in whole.splitlines() if newline and (seen := read(line)) is not None]
        return bool(found)

    if not until(answered, limits.CLOCKS_ANSWER_S_MAX):
        raise PreconditionError(
            f"clocks of {name}: not printed within {limits.CLOCKS_ANSWER_S_MAX:g} s; expected a process that runs"
        )
    (wall_ns, monotonic_ns), *_ = found
    return Reading(wall_ns=wall_ns, monotonic_ns=monotonic_ns, asked=asked_at, answered=moments.now())
