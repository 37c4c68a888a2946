"""
Injects the faults of a scenario's steps and heals them at its end; each is an op of the nemesis in the history.

An injection that fails is recorded with its error, and raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from harness.ability import Ability
from harness.cluster.aims import aimed, expanded
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault, heal, hit_by, inject, injected_at, undone_by
from harness.cluster.in_force import FaultInForce
from harness.effect import Effect, Nature
from harness.events import Injection
from harness.model import FencepostError, OpType, PreconditionError
from harness.scenario.file import Step
from harness.scenario.steps import Act, Inject
from harness.workload.plan import Place


@dataclass(slots=True, kw_only=True)
class FaultSteps:
    """
    The faults of one run.

    Attributes:
        seed: what decides among nodes that an aim does not tell apart.
        missed: the type of the op of a fault that failed.
        note_exit: called with a node that did not come back when it was healed.
    """

    cluster: Cluster
    faults: Mapping[str, Fault]
    seed: int
    missed: OpType
    note_exit: Callable[[str], None]

    def aimed(self, step: Step) -> Act:
        """Return what a step does, with the nodes that its aim means now; raise PreconditionError for none."""
        act = step.act
        if not isinstance(act, Inject):
            return act
        if not act.aim:
            return replace(act, nodes=expanded(act.nodes, self.cluster))
        chance = Random(f"aim {self.seed} {step.line}")
        with self.cluster.naming(act.place):
            return replace(act, nodes=aimed(act.aim, self.cluster, self.faults[act.fault], chance))

    def inject(self, fault: Fault, nodes: Sequence[str]) -> None:
        """
        Inject a fault into all nodes at once, so that a power loss of two brokers hits both together.

        One that is everywhere is injected once, and recorded as hitting all nodes of the run; what undoes it, too.
        """
        asked = injected_at(self.cluster, self.faults, fault, nodes)
        hit = hit_by(self.cluster, self.faults, fault, nodes)

        def act() -> str:
            probes = self.cluster.time.together(lambda name: inject(self.cluster, self.faults, fault, name), asked)
            return "; ".join(probes)

        nature = fault.nature_in(self.cluster.traits)
        self._record(Injection(name=fault.name, nodes=hit, **nature.as_fields()), act)

    def heal_all(self) -> list[tuple[FaultInForce, FencepostError]]:
        """Undo every fault in force; return the faults that could not be undone, each with its error."""
        failed: list[tuple[FaultInForce, FencepostError]] = []

        def attempt(found: FaultInForce) -> None:
            try:
                self._undo(found)
            except FencepostError as error:
                failed.append((found, error))
                if found.effect.is_down and found.node in self.cluster.ids:
                    self.note_exit(found.node)

        in_force, services = self.cluster.in_force, self.cluster.service_nodes
        # Nodes may need a service to come back.
        for found in in_force.in_order_of_healing():
            if found in in_force and found.node in services:
                attempt(found)
        for found in in_force.in_order_of_healing():
            # Undoing another fault of the node may have undone this one too.
            if found.node in services:
                continue
            if found in in_force and not found.effect.is_down and found.effect is not Effect.MOVED_AWAY:
                attempt(found)
        self._end_dead_memberships()
        for found in in_force.in_order_of_healing():  # nodes that are down, then what was moved
            if (
                found in in_force
                and found.node not in services
                and (found.effect.is_down or found.effect is Effect.MOVED_AWAY)
            ):
                attempt(found)
        return failed

    def elect(self, place: Place, name: str) -> None:
        """Have a replica lead a partition, if the controller can; a refusal is in the history."""
        if self.cluster.lacks(Ability.ELECT):
            return
        with self.cluster.naming(place), suppress(PreconditionError):
            self.inject(self._fault_of(Effect.LEADER_MOVED), [name])

    def unhealed(self) -> list[str]:
        """
        Return the faults still in force that prevent a verdict on the run.

        A replica that does not return is a failure of the system under test, and the verdict shows it. A fault
        that the harness could not undo is not, nor is a service that does not come back.
        """
        return [
            f"{found.fault} {found.node}"
            for found in self.cluster.in_force
            if not found.effect.ends_when_node_returns or found.node in self.cluster.service_nodes
        ]

    def _undo(self, found: FaultInForce) -> None:
        by = undone_by(self.faults, found)
        if by is not None:
            self.inject(by, [found.node])
            return
        nature = Nature(heals=frozenset({found.effect}))
        injection = Injection(name=f"heal-{found.fault}", nodes=(found.node,), **nature.as_fields())
        self._record(injection, lambda: heal(self.cluster, self.faults, found))

    def _end_dead_memberships(self) -> None:
        """End the membership of all nodes that are down, so that the system sees it without its timeout."""
        if self.cluster.lacks(Ability.EXPIRE):
            return
        for name in sorted(self.cluster.down & self.cluster.ids.keys()):
            if self.cluster.metadata.incarnation(name):
                self.inject(self._fault_of(Effect.SESSION_ENDED), [name])

    def _fault_of(self, effect: Effect) -> Fault:
        """Return the first fault of the table that has this effect."""
        return next(fault for fault in self.faults.values() if fault.effect is effect)

    def _record(self, injection: Injection, act: Callable[[], str]) -> None:
        """Record an op of the nemesis and run it; if it fails, record its error and raise it."""
        process = "nemesis"
        self.cluster.record(process, OpType.INVOKE, injection)
        try:
            seen = act()
        except FencepostError as error:
            self.cluster.record(process, self.missed, replace(injection, error=str(error)))
            raise
        self.cluster.record(process, OpType.OK, replace(injection, probe=seen))
