"""
Consumers stay at the end of the log, where a high watermark that runs ahead or falls back shows first.

    p1   acks=all, a few records at once
    p2   acks=1, a few records at once: the leader has them before any follower
    c1   polls the leader without a pause
    c2   polls every node in turn without a pause: a node that lost its leadership, or never led, may answer too
    c3   polls the leader, and goes back before a fifth of its polls
    c4   polls every node in turn, with few bytes a poll, and goes back before a tenth of them

What one consumer has seen must never be rewritten, nor go: not for itself, and not for another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from workloads.definition import Definition


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return two producers and four consumers over all partitions; the seed draws pauses and waits."""
    chance = Random(f"workload tail {seed}")
    everywhere = tuple(places)
    return Clients(
        producers=(
            ProducerPlan(name="p1", places=everywhere, every_ms=(1, chance.randint(5, 20))),
            ProducerPlan(name="p2", places=everywhere, acks=(1,), every_ms=(1, chance.randint(5, 20))),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=everywhere, every_ms=(0, 2), wait_ms=chance.randint(20, 100)),
            ConsumerPlan(name="c2", places=everywhere, via=Via.EVERY, every_ms=(0, 2), wait_ms=10),
            ConsumerPlan(name="c3", places=everywhere, seek=0.2),
            ConsumerPlan(name="c4", places=everywhere, via=Via.EVERY, seek=0.1, wait_ms=10, max_bytes=1_024),
        ),
    )


WORKLOAD: Final = Definition(
    name="tail",
    doc="Consumers poll at the end of the log, from every node that answers, and some go back.",
    clients=clients,
    checkers=("reads", "high-watermark", "committed", "lost"),
)
