"""
Topics are created, written to, deleted and created again under the same name, beside others that last.

    n1   a topic of two partitions, written to between its creation and its deletion; now and then it is created or
         deleted twice, or again at once
    n2   the same with one partition, in a hurry: many generations meet
    p1   acks=all, to all partitions that last; c1 reads them from the leaders, c2 from every node in turn

No record of a generation may be found in a later one, and no replica stays of a topic that is gone. What is
acknowledged of the newest generation stays. Topics that come and go must not disturb those that last.
Source:  KIP-516, Motivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.workload.plan import ChurnPlan, Clients, ConsumerPlan, Place, ProducerPlan, Via
from workloads.definition import Definition

REPLICATION_MAX: Final = 3


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return a producer and two consumers over the partitions that last; the seed draws sizes and pauses."""
    chance = Random(f"workload topics {seed}")
    everywhere = tuple(places)
    return Clients(
        producers=(
            ProducerPlan(
                name="p1",
                places=everywhere,
                batch=(1, chance.randint(2, 10)),
                every_ms=(5, chance.randint(20, 60)),
                together=0.2,
            ),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=everywhere),
            ConsumerPlan(name="c2", places=everywhere, via=Via.EVERY, every_ms=(5, chance.randint(20, 60))),
        ),
    )


def churners(nodes: Sequence[str], *, seed: int) -> tuple[ChurnPlan, ...]:
    """Return two churners; the seed draws how many replicas their topics have, and pauses."""
    chance = Random(f"workload topics, churners {seed}")
    most = min(REPLICATION_MAX, len(nodes))
    return (
        ChurnPlan(
            name="n1",
            topic="temp",
            nodes=tuple(nodes),
            partitions=2,
            replication=chance.randint(min(2, most), most),
            every_ms=(5, chance.randint(40, 120)),
            records=(1, chance.randint(2, 8)),
            within_ms=400,
        ),
        ChurnPlan(
            name="n2",
            topic="spare",
            nodes=tuple(nodes),
            replication=chance.randint(1, most),
            every_ms=(2, chance.randint(10, 30)),
            within_ms=400,
        ),
    )


WORKLOAD: Final = Definition(
    name="topics",
    doc="Topics are deleted and created again under the same name, beside others that last.",
    clients=clients,
    churners=churners,
    checkers=("generations", "lost", "diverged", "reads"),
)
