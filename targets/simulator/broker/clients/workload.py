"""A workload's clients in a simulated world; see harness.target.clients.Workload for every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from harness.model import Op
from harness.workload.lives import next_to_crash
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import FIRST, ChurnScript, ConsumerScript, Life, ProducerScript
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import leader_and_isr_path
from targets.simulator.broker.clients.caller import Caller
from targets.simulator.broker.clients.churner import SimChurner
from targets.simulator.broker.clients.consumer import SimConsumer
from targets.simulator.broker.clients.lives import Begin, SimLives, Working
from targets.simulator.broker.clients.metadata import Metadata
from targets.simulator.broker.clients.producer import SimProducer
from targets.simulator.broker.coordination import state_in
from targets.simulator.broker.world import World

# For how many bytes a consumer waits in a run of several partitions: mostly for one, as by default in Kafka.
MIN_BYTES: Final = (1, 1, 1, 400)


class SimWorkload:
    """
    The producers, consumers and churners of one world.

    Args:
        name: returns the name of the next client in the history.
    """

    def __init__(self, world: World, clients: Clients, seed: int, name: Callable[[], str]) -> None:
        self._world = world
        self._seed = seed
        self._name = name
        self._mortals: list[SimLives] = []
        self._producers = [self._at_work(plan, self._producer(plan)) for plan in clients.producers]
        self._consumers = [self._at_work(plan, self._consumer(plan)) for plan in clients.consumers]
        self._churners = [SimChurner(Caller(world, name()), ChurnScript(plan, seed)) for plan in clients.churners]

    def listen(self, op: Op) -> None:
        """Take note of an op of the history, which decides when clients are killed."""
        for each in self._mortals:
            each.listen(op)

    def stop_producing(self) -> None:
        """Let each producer and churner end after the outcome of what it asks now."""
        for producer in self._producers:
            producer.stopping = True
        for churner in self._churners:
            churner.stopping = True

    def crash(self) -> str:
        """Kill the process of the client that was killed least often; see harness.target.clients.Workload."""
        return next_to_crash(self._mortals).crash()

    @property
    def kills(self) -> int:
        """How many processes of its clients were killed."""
        return sum(each.kills for each in self._mortals)

    def stop(self) -> None:
        """Let every client end after what it waits for."""
        self.stop_producing()
        for consumer in self._consumers:
            consumer.stopping = True

    @property
    def produced(self) -> bool:
        """Whether every producer and churner has ended."""
        produced = all(producer.done for producer in self._producers)
        return produced and all(churner.done for churner in self._churners)

    @property
    def done(self) -> bool:
        """Whether every client has ended."""
        return self.produced and all(consumer.done for consumer in self._consumers)

    # --- beginnings ------------------------------------------------------------------------------------------
    def _at_work(self, plan: ProducerPlan | ConsumerPlan, begin: Begin) -> Working:
        """Begin a client, which is in a process of its own if it is to be killed."""
        if plan.kill_after is None:
            return begin(Caller(self._world, self._name()), FIRST, after_ns=0)
        self._mortals.append(SimLives(self._world, plan, self._seed, process=self._name, begin=begin))
        return self._mortals[-1]

    def _producer(self, plan: ProducerPlan) -> Begin:
        """Return what begins a producer; what its lives have in common goes on from one to the next."""
        pick, split = self._picking(plan.name), Random(f"split {plan.name} {self._seed}")

        def begin(caller: Caller, life: Life, *, after_ns: int) -> SimProducer:
            known = Metadata(caller, self._known(plan.places, life), pick)
            return SimProducer(caller, ProducerScript(plan, self._seed, life), known, split, after_ns=after_ns)

        return begin

    def _consumer(self, plan: ConsumerPlan) -> Begin:
        """Return what begins a consumer."""
        pick = self._picking(plan.name)
        least = Random(f"least {plan.name} {self._seed}").choice(MIN_BYTES) if self._world.split_share else 1

        def begin(caller: Caller, life: Life, *, after_ns: int) -> SimConsumer:
            known = Metadata(caller, self._known(plan.places, life), pick)
            script = ConsumerScript(plan, self._seed, life)
            return SimConsumer(caller, script, known, after_ns=after_ns, min_bytes=least)

        return begin

    def _picking(self, name: str) -> Callable[[Sequence[str]], str]:
        """Return what chooses whom a client asks for metadata: what it sends must not depend on that."""
        return Random(f"metadata {name} {self._seed}").choice

    def _known(self, places: Sequence[Place], life: Life) -> dict[Place, str | None]:
        """Return the leaders that a client knows: those of now in its first life, later none, so that it asks."""
        return _leaders(self._world, places) if life.number == 1 else dict.fromkeys(places)


def _leaders(world: World, places: Sequence[Place]) -> dict[Place, str | None]:
    """Return the leaders as ZooKeeper has them: what a client knows that has just been told."""
    nodes = world.zookeeper.tree.nodes
    states = {place: nodes.get(leader_and_isr_path(TopicPartition(*place))) for place in places}
    return {
        place: None if state is None else world.name_of(state_in(state).leader) for place, state in states.items()
    }
