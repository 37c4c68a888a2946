"""
Five client libraries beside each other, each as a producer and as a consumer of the same partitions.

    p1   raw (plain sockets), p2 librdkafka, p3 kafka-python, p4 aiokafka, p5 Apache Kafka's Java clients: acks=all
         and 1 by turns, each batch once
    c1   raw, from whichever node comes next, whether it leads or not
    c2   librdkafka, c3 kafka-python, c4 aiokafka, c5 Java: from the leaders; each now and then goes back

Each library believes in its own way who leads, gives up in its own way, and fetches ahead in its own way: what one
of them has written and another one has read is one log all the same. Codecs are those that all of them have here.
It needs real nodes: the simulator has no sockets. A machine that cannot have the Java clients goes without p5 and
c5, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.workload.plan import ACKS_ALL, Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from workloads.definition import Definition

CODECS: Final = ("none", "gzip")


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return a producer and a consumer for each library, over all partitions; the seed draws sizes and pauses."""
    chance = Random(f"workload mixed {seed}")
    everywhere = tuple(places)
    return Clients(
        producers=tuple(
            ProducerPlan(
                name=f"p{number}",
                places=everywhere,
                acks=(ACKS_ALL, 1),
                batch=(1, chance.randint(3, 20)),
                codecs=CODECS,
                every_ms=(5, chance.randint(20, 60)),
                together=0.2,
                within_ms=600,
                client=library,
            )
            for number, library in enumerate(Library, start=1)
        ),
        consumers=tuple(
            ConsumerPlan(
                name=f"c{number}",
                places=everywhere,
                via=Via.EVERY if library is Library.RAW else Via.LEADER,
                seek=0.05,
                client=library,
            )
            for number, library in enumerate(Library, start=1)
        ),
    )


WORKLOAD: Final = Definition(
    name="mixed",
    doc="Five client libraries write and read the same partitions, beside each other; real nodes only.",
    clients=clients,
    of_libraries=True,
    checkers=("lost", "acknowledged", "committed", "reads", "contents"),
)
