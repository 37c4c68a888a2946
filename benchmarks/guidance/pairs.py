"""
What happened in a simulated run, as pairs: what a node's core did in one step, and in the step before.

Two kinds are counted. Of a node: its event, with what it observed, and the event before. Of a replica: role and
phase with the event that it met there. A message that overtakes another shows as a pair in the other order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from harness.run.spec import RunSpec
from harness.target.target import Target
from targets import VIRTUAL_HOST as SIM
from targets.broker.core.events import Answered, Effect, Event, Observe, Received
from targets.simulator.broker.environment import SimEnvironment
from targets.simulator.broker.world import World


class Pairs:
    """The pairs of one world."""

    def __init__(self, world: World) -> None:
        self.found: set[Hashable] = set()
        self._world = world
        self._before: dict[str, Hashable] = {}
        world.watchers.append(self._on_step)

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        seen = frozenset(effect.f for effect in effects if isinstance(effect, Observe))
        now = (_kind(event), seen)
        self.found.add((self._before.get(name), now))
        self._before[name] = now
        process = self._world.nodes[name].process
        if process is not None:
            for replica in process.broker.state.replicas.values():
                self.found.add((replica.role, getattr(replica, "phase", None), now))


def _kind(event: Event) -> Hashable:
    match event:
        case Received(request=request):
            return "received", type(request)
        case Answered(response=response):
            return "answered", type(response)
    kind: type = type(event)
    return kind


class PairsEnvironment(SimEnvironment):
    """Simulated worlds of which the last one's pairs are known."""

    def __init__(self, target: Target) -> None:
        super().__init__(SIM, target)
        self.pairs: Pairs | None = None

    def _world(self, spec: RunSpec) -> World:
        world = super()._world(spec)
        self.pairs = Pairs(world)
        return world
