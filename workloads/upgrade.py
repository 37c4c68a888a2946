"""
Producers and consumers at work while their cluster is upgraded, version by version and one broker at a time.

    p1   acks=all, to all partitions, sent again up to three times: what is acknowledged must stay, whatever
         version its leader and its followers spoke
    p2   acks=1, in a hurry: a leader that stops hands over first, but one that crashes takes records along
    p3   idempotent: a batch that is sent again to a leader of another version is in the log once
    c1   reads on from the leaders; c2 from every node in turn, also from one that has just changed its version
    c3   goes back now and then, into what an older version has written

The schedule is the workload's own: the brokers, programs of the run's protocol, are set back one by one to the
oldest version that they can speak, climb through all versions to their own, and go down one step and up again.
Faults come in between, but where a version is spoken that loses records to them by itself (kip101, 1.1).
Up to kip320 a controller that is slow or paused does not see that a broker was away (KAFKA-1120): a few seeds of
these protocols show that, as a hang or as lost.
Source:  KIP-101, Compatibility, Deprecation, and Migration Plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from workloads.definition import Definition


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return three producers and three consumers over all partitions; the seed draws sizes and pauses."""
    chance = Random(f"workload upgrade {seed}")
    everywhere = tuple(places)
    return Clients(
        producers=(
            ProducerPlan(
                name="p1",
                places=everywhere,
                batch=(1, chance.randint(2, 10)),
                every_ms=(10, chance.randint(40, 120)),
                within_ms=400,
                together=0.3,
                retries=3,
            ),
            ProducerPlan(
                name="p2", places=everywhere, acks=(1,), batch=(1, 3), every_ms=(5, chance.randint(20, 60))
            ),
            ProducerPlan(
                name="p3",
                places=everywhere,
                every_ms=(10, chance.randint(40, 120)),
                within_ms=400,
                retries=8,
                idempotent=True,
            ),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=everywhere),
            ConsumerPlan(name="c2", places=everywhere, via=Via.EVERY, every_ms=(5, chance.randint(20, 60))),
            ConsumerPlan(name="c3", places=everywhere, seek=0.1, every_ms=(10, 60)),
        ),
    )


WORKLOAD: Final = Definition(
    name="upgrade",
    doc="A cluster is upgraded version by version, one broker at a time, while clients write and read.",
    clients=clients,
    climbs=True,
    checkers=("lost", "committed", "acknowledged", "diverged", "reads", "checkpoint"),
)
