"""
Producers append to all partitions in every way that a client can, and consumers follow.

    p1   acks=all, batches of 1 to 500 records, every codec, each batch once: what is acknowledged must stay
    p2   acks=1, small batches, one after the other at once: a dead leader may take acknowledged records along
    p3   acks=0, 1 and all by turns, now and then two partitions in one request, and sent again up to three times
         if there is no acknowledgement: the log may have a record twice
    p4   acks=all within a few milliseconds, so that many outcomes stay unknown
    c1   reads on from the leader; c2 from whichever node comes next, whether it leads or not;
    c3   now and then goes back, and so reads again what it has seen

Values are unique in the run, so that a record in a log or in a poll is one record that was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.workload.plan import ACKS_ALL, CODEC_NAMES, Clients, ConsumerPlan, Place, ProducerPlan, Via
from workloads.definition import Definition

BATCH_MAX: Final = 500


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return four producers and three consumers over all partitions; the seed draws sizes and pauses."""
    chance = Random(f"workload append {seed}")
    everywhere = tuple(places)
    return Clients(
        producers=(
            ProducerPlan(
                name="p1",
                places=everywhere,
                batch=(1, BATCH_MAX),
                codecs=tuple(CODEC_NAMES),
                every_ms=(20, chance.randint(80, 160)),
                within_ms=1_000,
            ),
            ProducerPlan(
                name="p2", places=everywhere, acks=(1,), batch=(1, 3), every_ms=(0, chance.randint(2, 10))
            ),
            ProducerPlan(
                name="p3",
                places=everywhere,
                acks=(0, 1, ACKS_ALL),
                batch=(1, chance.randint(5, 50)),
                codecs=tuple(CODEC_NAMES),
                together=0.3,
                retries=3,
            ),
            ProducerPlan(name="p4", places=everywhere, batch=(1, 5), within_ms=chance.randint(5, 15)),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=everywhere),
            ConsumerPlan(name="c2", places=everywhere, via=Via.EVERY),
            ConsumerPlan(name="c3", places=everywhere, seek=0.1, max_bytes=chance.choice((4_096, 65_536))),
        ),
    )


WORKLOAD: Final = Definition(
    name="append",
    doc="Producers append with every acks, codec and size of batch, and consumers follow.",
    clients=clients,
    checkers=("lost", "committed", "acknowledged", "producer-order", "contents", "reads"),
)
