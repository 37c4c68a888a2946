"""Schedules of several partitions and clients: a drawn one, with `partition`, `producer` and `consumer` lines."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from harness.run.spec import RunSpec
from harness.scenario.file import Scenario, draw
from harness.search.random_runs import RandomRuns
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from targets import VIRTUAL_HOST as SIM


def with_clients(scenario: Scenario, seed: int, *, partitions: int = 4) -> Scenario:
    """Return the scenario with further partitions, each on some of its nodes, and clients of all of them."""
    chance = Random(f"many {seed}")
    further: dict[Place, tuple[str, ...]] = {}
    for number in range(partitions - 1):
        replicas = chance.sample(
            scenario.nodes, chance.randint(scenario.settings.min_isr, min(3, len(scenario.nodes)))
        )
        further[Place(chance.choice(("side", "t")), number)] = tuple(replicas)
    # A topic's partitions are numbered from 0.
    named = {topic: sorted(place for place in further if place.topic == topic) for topic in ("side", "t")}
    numbered = {Place(topic, at): further[place] for topic in named for at, place in enumerate(named[topic])}
    places = (Place(scenario.topic, scenario.partition), *numbered)
    clients = Clients(
        producers=(
            ProducerPlan(name="p", places=places, acks=(-1, 1), batch=(1, 3), together=0.4),
            ProducerPlan(name="q", places=places[-2:], acks=(-1,), batch=(1, 5), retries=chance.choice((0, 2))),
        ),
        consumers=(
            ConsumerPlan(name="c", places=places, seek=0.1),
            ConsumerPlan(
                name="d", places=places, via=Via.EVERY, seek=0.3, max_bytes=chance.choice((150, 1_048_576))
            ),
        ),
    )
    return replace(scenario, further=numbered, clients=clients)


def spec_of_many(seed: int, variant: str = "kip380", *, partitions: int = 4) -> RunSpec:
    """Return the random run of a seed with several partitions and clients that work all the time."""
    spec = RandomRuns(target="broker", variant=variant, host=SIM).spec(seed)
    scenario = with_clients(spec.scenario, seed, partitions=partitions)
    return replace(spec, scenario=scenario, draw=draw(scenario, seed))
