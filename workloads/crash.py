"""
Producers and consumers in processes of their own, each killed (SIGKILL) while it works, and started again.

    p1   raw (plain sockets), acks=all, and p2 librdkafka, acks=all and 1: what a killed one had sent may still be
         appended, or never; what it was told before stays
    p3   raw, acks=all and 1, sent again without an acknowledgement: a kill between two tries
    c1   raw, from the leaders; c2 raw, from whichever node comes next; c3 librdkafka
    c4   as long as the run, in a thread: it sees what all the others have written, without a gap

A kill follows from what was seen: so many acknowledged records, or polls with records (kill_after=), then the next
request of the client, and then some ops of the history. Each life is another process of the history, with
`client-started` and, with the evidence that the kill bit, `client-killed`. What it has begun and not ended is
`info` (a poll: `fail`, it moves no position). A consumer begins its next life where it had recorded its reading to
end, by assignment (`sought`). Values are `NAME.LIFE.NUMBER`. The simulator goes without p2 and c3, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.workload.plan import ACKS_ALL, Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from workloads.definition import Definition


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return three producers and four consumers over all partitions; the seed draws sizes, pauses and kills."""
    chance = Random(f"workload crash {seed}")
    everywhere = tuple(places)
    records = (chance.randint(1, 5), chance.randint(8, 40))
    polls = (1, chance.randint(2, 12))
    return Clients(
        producers=(
            ProducerPlan(
                name="p1",
                places=everywhere,
                batch=(1, chance.randint(3, 10)),
                codecs=("none", "gzip", "zstd"),
                every_ms=(2, chance.randint(10, 40)),
                together=0.3,
                client=Library.RAW,
                kill_after=records,
            ),
            ProducerPlan(
                name="p2",
                places=everywhere,
                acks=(ACKS_ALL, 1),
                batch=(1, chance.randint(3, 10)),
                codecs=("none", "lz4", "snappy"),
                every_ms=(2, chance.randint(10, 40)),
                within_ms=600,
                client=Library.LIBRDKAFKA,
                kill_after=records,
            ),
            ProducerPlan(
                name="p3",
                places=everywhere,
                acks=(ACKS_ALL, 1),
                every_ms=(2, chance.randint(10, 40)),
                retries=3,
                client=Library.RAW,
                kill_after=records,
            ),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=everywhere, client=Library.RAW, kill_after=polls),
            ConsumerPlan(name="c2", places=everywhere, via=Via.EVERY, client=Library.RAW, kill_after=polls),
            ConsumerPlan(name="c3", places=everywhere, seek=0.05, client=Library.LIBRDKAFKA, kill_after=polls),
            ConsumerPlan(name="c4", places=everywhere, client=Library.RAW),
        ),
    )


WORKLOAD: Final = Definition(
    name="crash",
    doc="Producers and consumers in processes of their own are killed and started again.",
    clients=clients,
    checkers=("lost", "acknowledged", "committed", "reads", "contents", "whole"),
)
