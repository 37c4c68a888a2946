"""
Large compressed batches, whose offsets another replica's log end cuts through.

    p1   acks=1, batches of 100 to 300 padded records, gzip or zstd: the leader has a whole batch before a follower
    p2   acks=all, the same with lz4 or snappy
    p3   acks=all, single records in between, so that batches begin anywhere
    c1   reads on from the leader, with fewer bytes a poll than a batch has: a broker sends the first batch whole
    c2   polls every node in turn
    c3   goes back before three polls of ten, mostly into the middle of a batch, and must skip what is below

A replica is truncated at an offset, but holds batches: where the one cuts the other, brokers have been wrong.
Source:  KAFKA-6361, case 3: a cut in the middle of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from workloads.definition import Definition

PAD_BYTES: Final = 200


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return three producers and three consumers over all partitions; the seed draws sizes and pauses."""
    chance = Random(f"workload batches {seed}")
    everywhere = tuple(places)
    sizes = (100, chance.randint(200, 300))
    return Clients(
        producers=(
            ProducerPlan(
                name="p1",
                places=everywhere,
                acks=(1,),
                batch=sizes,
                codecs=("gzip", "zstd"),
                every_ms=(60, chance.randint(150, 300)),
                pad=PAD_BYTES,
                within_ms=1_000,
            ),
            ProducerPlan(
                name="p2",
                places=everywhere,
                batch=sizes,
                codecs=("lz4", "snappy"),
                every_ms=(60, chance.randint(150, 300)),
                pad=PAD_BYTES,
                within_ms=1_000,
            ),
            ProducerPlan(name="p3", places=everywhere, batch=(1, 1)),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=everywhere, max_bytes=512),
            ConsumerPlan(name="c2", places=everywhere, via=Via.EVERY),
            ConsumerPlan(name="c3", places=everywhere, seek=0.3, every_ms=(10, 40)),
        ),
    )


WORKLOAD: Final = Definition(
    name="batches",
    doc="Large compressed batches, into which truncations and seeks cut.",
    clients=clients,
    checkers=("diverged", "batches", "holes", "contents", "reads"),
)
