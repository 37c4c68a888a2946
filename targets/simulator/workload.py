"""A workload's clients in a simulated world; see harness.cluster.client.Workload for every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from harness.model import PreconditionError
from harness.workload.plan import Clients, Place
from harness.workload.script import ChurnScript, ConsumerScript, ProducerScript
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import decode_state, leader_and_isr_path
from targets.simulator.caller import Caller
from targets.simulator.churner import SimChurner
from targets.simulator.consumer import SimConsumer
from targets.simulator.metadata import Metadata
from targets.simulator.producer import SimProducer
from targets.simulator.world import World


class SimWorkload:
    """
    The producers, consumers and churners of one world.

    Args:
        name: returns the name of the next client in the history.
    """

    def __init__(self, world: World, clients: Clients, seed: int, name: Callable[[], str]) -> None:
        self._producers: list[SimProducer] = []
        self._consumers: list[SimConsumer] = []
        self._churners: list[SimChurner] = []
        for producer in clients.producers:
            caller, script = Caller(world, name()), ProducerScript(producer, seed)
            known = Metadata(caller, _leaders(world, producer.places), _chance(producer.name, seed).choice)
            self._producers.append(SimProducer(caller, script, known, Random(f"split {producer.name} {seed}")))
        for consumer in clients.consumers:
            caller, reads = Caller(world, name()), ConsumerScript(consumer, seed)
            known = Metadata(caller, _leaders(world, consumer.places), _chance(consumer.name, seed).choice)
            self._consumers.append(SimConsumer(caller, reads, known))
        for churner in clients.churners:
            self._churners.append(SimChurner(Caller(world, name()), ChurnScript(churner, seed)))

    def stop_producing(self) -> None:
        """Let each producer and churner end after the outcome of what it asks now."""
        for producer in self._producers:
            producer.stopping = True
        for churner in self._churners:
            churner.stopping = True

    def crash(self) -> str:
        """Refuse: these clients are no processes."""
        raise PreconditionError("client-crash: clients of host sim are no processes; expected real nodes")

    @property
    def kills(self) -> int:
        """Return 0: these clients are no processes."""
        return 0

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


def _chance(name: str, seed: int) -> Random:
    """Return the random source for whom a client asks for metadata: what it sends must not depend on that."""
    return Random(f"metadata {name} {seed}")


def _leaders(world: World, places: Sequence[Place]) -> dict[Place, str | None]:
    """Return the leaders as ZooKeeper has them: what a client knows that has just been told."""
    nodes = world.zookeeper.tree.nodes
    states = {place: nodes.get(leader_and_isr_path(TopicPartition(*place))) for place in places}
    return {
        place: None if state is None else world.name_of(decode_state(state).leader)
        for place, state in states.items()
    }
