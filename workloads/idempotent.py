"""
Idempotent producers send again whatever is not acknowledged, and the log has each record once.

    p1   raw (plain sockets), p2 librdkafka, p3 Apache Kafka's Java client: acks=all, short pauses, and so little
         time for an answer that a slow follower, or a leader that dies, has them send again
    c1   raw, from whichever node comes next, whether it leads or not
    c2   Java, from the leaders

A batch that is sent again has the numbers that it had before: its producer's id and epoch, and its sequence. The
leader may be another one by then, or have truncated its log since. The simulator goes without p2, p3 and c2, a
machine that cannot have Java's clients without p3 and c2, and each says so.
Source:  KIP-98, Idempotent Producer Guarantees.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from workloads.definition import Definition


def clients(places: Sequence[Place], *, seed: int) -> Clients:
    """Return three producers and two consumers over all partitions; the seed draws sizes and pauses."""
    chance = Random(f"workload idempotent {seed}")
    everywhere = tuple(places)
    again: dict[str, Any] = {"places": everywhere, "retries": 20, "idempotent": True}
    return Clients(
        producers=(
            ProducerPlan(
                name="p1",
                batch=(1, chance.randint(2, 8)),
                codecs=("none", "gzip"),
                every_ms=(1, chance.randint(5, 30)),
                within_ms=1_000,
                together=0.3,
                client=Library.RAW,
                **again,
            ),
            *(
                ProducerPlan(
                    name=name,
                    batch=(1, chance.randint(2, 8)),
                    every_ms=(1, chance.randint(5, 30)),
                    within_ms=3_000,
                    client=library,
                    **again,
                )
                for name, library in (("p2", Library.LIBRDKAFKA), ("p3", Library.JAVA))
            ),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=everywhere, via=Via.EVERY, client=Library.RAW),
            ConsumerPlan(name="c2", places=everywhere, client=Library.JAVA),
        ),
    )


WORKLOAD: Final = Definition(
    name="idempotent",
    doc="Idempotent producers of three libraries send again what is not acknowledged.",
    clients=clients,
    checkers=("contents", "polled-contents", "acknowledged", "lost", "committed"),
)
