"""
Draws how wide a run is: further brokers and partitions, the workload's clients, and settings of the cluster.

It has a random source of its own, so that the steps of a seed are the same however wide its cluster is; churners
have another one, so that all else of a seed is the same with one and without. Half of
the runs have one partition, as the scenarios do: the bugs of the protocol itself need no more, and are found
sooner. In the others topics have several partitions whose leaders are spread, and faults hit every broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from harness.workload.plan import ACKS_ALL, NO_CLIENTS, ChurnPlan, Clients, ConsumerPlan, Place, ProducerPlan, Via

TOPICS: Final = ("orders", "users", "clicks")
# The topic that a churner creates and deletes.
CHURNED: Final = "temp"
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# How often the churned topic has more partitions, of which an operator may remove some, and how many more.
MORE_SHARE: Final = 0.4
MORE: Final = 2
# How often the producers of a wide run hardly pause, and how long they do then.
HURRIED_SHARE: Final = 0.1
HURRIED_MS: Final = (1, 3)
# How often the records of a wide run have keys.
KEYED_SHARE: Final = 0.25
# Then a log has several files, as only those that are closed are compacted.
KEYED_SEGMENT_BYTES: Final = 300
# An idempotent producer: often at work, and with the time to send again.
_AGAIN: Final[dict[str, Any]] = {
    "idempotent": True,
    "acks": (ACKS_ALL,),
    "every_ms": (2, 20),
    "within_ms": 400,
    "retries": 8,
}
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breadth:
    """
    How wide runs are drawn.

    Attributes:
        wide: the share of runs with further partitions, and faults on every broker.
        brokers_max: the most brokers of a wide run.
        partitions_max: the most partitions of a wide run, the main one included.
        readers: the share of runs of one partition in which clients read and write besides the steps.
        idempotent: the share of runs whose producers are idempotent, and send again what is not acknowledged.
        churners: the share of wide runs in which a client deletes a topic and creates it again.
        removals: the share of wide runs in which partitions are removed and added again, if a topic has such.
        older: the share of wide runs that are of the older message format instead, which need one partition.
        flushes: the choices for flush_messages.
        segments: the choices for segment_bytes.
    """

    wide: float = 0.5
    brokers_max: int = 5
    partitions_max: int = 8
    readers: float = 0.7
    idempotent: float = 0.2
    churners: float = 0.4
    removals: float = 0.6
    older: float = 0.16
    flushes: tuple[int, ...] = (0, 0, 0, 1, 4)
    segments: tuple[int | None, ...] = (None, None, 150, 600)


# Neither further partitions nor clients.
NARROW: Final = Breadth(
    wide=0.0, readers=0.0, idempotent=0.0, churners=0.0, removals=0.0, older=0.0, flushes=(0,), segments=(None,)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """
    What was drawn.

    Attributes:
        others: brokers that are neither replicas of the main partition nor its controller.
        wide: whether faults hit every broker.
    """

    others: tuple[str, ...] = ()
    further: dict[Place, tuple[str, ...]] = field(default_factory=dict)
    clients: Clients = NO_CLIENTS
    flush_messages: int = 0
    segment_bytes: int | None = None
    wide: bool = False


def draw_width(seed: int, breadth: Breadth, main: Place, nodes: Sequence[str]) -> Width:
    """
    Return the width of a seed's run.

    Args:
        main: the partition that steps are about.
        nodes: the brokers that the schedule has already.
    """
    chance = Random(f"width {seed}")
    if not _is_wide(chance, breadth):
        clients = _few(chance, main) if chance.random() < breadth.readers else NO_CLIENTS
        return Width(clients=_numbered(seed, breadth, clients))
    brokers = chance.randint(len(nodes), max(len(nodes), breadth.brokers_max))
    others = tuple(name for name in _LETTERS if name not in nodes)[: brokers - len(nodes)]
    everyone = (*nodes, *others)
    further = _further(chance, chance.randint(1, breadth.partitions_max - 1), everyone)
    clients = _hurried(seed, _many(chance, (main, *further)))
    clients = replace(_numbered(seed, breadth, clients), churners=_churners(seed, breadth, everyone))
    return Width(
        others=others,
        further=further,
        clients=clients,
        flush_messages=chance.choice(breadth.flushes),
        segment_bytes=chance.choice(breadth.segments),
        wide=True,
    )


def is_wide(seed: int, breadth: Breadth) -> bool:
    """Return True if a seed's run is wide."""
    return _is_wide(Random(f"width {seed}"), breadth)


def _is_wide(chance: Random, breadth: Breadth) -> bool:
    return chance.random() < breadth.wide


def _further(chance: Random, count: int, nodes: Sequence[str]) -> dict[Place, tuple[str, ...]]:
    """Return so many partitions of one to three topics; replicas are drawn, so that leaders are spread."""
    topics = TOPICS[: chance.randint(1, min(len(TOPICS), count))]
    found: dict[Place, tuple[str, ...]] = {}
    for number in range(count):
        replication = chance.choice((1, 2, 2, 3, 3, 3))
        place = Place(topics[number % len(topics)], number // len(topics))
        found[place] = tuple(chance.sample(nodes, min(replication, len(nodes))))
    return found


def _few(chance: Random, main: Place) -> Clients:
    """Return the clients of a run of one partition: they must not keep the schedule from what it is about."""
    via = chance.choice((Via.LEADER, Via.LEADER, Via.EVERY))
    seek, lookups = chance.choice((0.0, 0.1)), chance.choice((0.0, 0.1))
    reader = ConsumerPlan(name="c1", places=(main,), via=via, every_ms=(10, 60), seek=seek, lookups=lookups)
    consumers = (reader,)
    producers: tuple[ProducerPlan, ...] = ()
    if chance.random() < 0.3:
        acks = chance.choice(((ACKS_ALL,), (ACKS_ALL, 1), (ACKS_ALL, 1, 0)))
        producers = (ProducerPlan(name="p1", places=(main,), acks=acks, batch=(1, 2), every_ms=(20, 120)),)
    return Clients(producers=producers, consumers=consumers)


def _many(chance: Random, places: Sequence[Place]) -> Clients:
    producers = [_producer(chance, f"p{number}", places) for number in range(1, chance.randint(1, 3) + 1)]
    consumers = [_consumer(chance, f"c{number}", places) for number in range(1, chance.randint(1, 3) + 1)]
    return Clients(producers=tuple(producers), consumers=tuple(consumers))


def _hurried(seed: int, clients: Clients) -> Clients:
    """Return the clients, now and then with producers that hardly pause, so that many requests wait at once."""
    if Random(f"hurry {seed}").random() >= HURRIED_SHARE:
        return clients
    return replace(clients, producers=tuple(replace(each, every_ms=HURRIED_MS) for each in clients.producers))


def keyed_clients(seed: int, clients: Clients) -> tuple[Clients, int]:
    """Return the clients of a wide run, and of how many keys all records are: in most runs they have none."""
    chance = Random(f"keys {seed}")
    if chance.random() >= KEYED_SHARE:
        return clients, 0
    keys = chance.choice((1, 2, 5))
    return replace(clients, producers=tuple(replace(each, keys=keys) for each in clients.producers)), keys


def _numbered(seed: int, breadth: Breadth, clients: Clients) -> Clients:
    """Return the clients, now and then with producers that are idempotent, and have the time to send again."""
    if Random(f"idempotent {seed}").random() >= breadth.idempotent:
        return clients
    producers = clients.producers or tuple(
        ProducerPlan(name="p1", places=each.places) for each in clients.consumers
    )
    return replace(clients, producers=tuple(replace(each, **_AGAIN) for each in producers))


def _producer(chance: Random, name: str, places: Sequence[Place]) -> ProducerPlan:
    return ProducerPlan(
        name=name,
        places=_some(chance, places),
        acks=chance.choice(((ACKS_ALL,), (ACKS_ALL, 1), (ACKS_ALL, 1, 0), (1,))),
        batch=chance.choice(((1, 1), (1, 3), (1, 8))),
        codecs=chance.choice((("none",), CODECS)),
        every_ms=chance.choice(((5, 40), (20, 120))),
        within_ms=chance.choice((30, 120, 400)),
        together=chance.choice((0.0, 0.3, 1.0)),
        retries=chance.choice((0, 0, 0, 0, 3)),
    )


def _consumer(chance: Random, name: str, places: Sequence[Place]) -> ConsumerPlan:
    return ConsumerPlan(
        name=name,
        places=_some(chance, places),
        via=chance.choice((Via.LEADER, Via.EVERY)),
        every_ms=chance.choice(((5, 30), (20, 100))),
        wait_ms=chance.choice((0, 40)),
        # Now and then so little that an answer holds one partition's records, or one batch.
        max_bytes=chance.choice((1_048_576, 1_048_576, 400, 1)),
        seek=chance.choice((0.0, 0.0, 0.1)),
        lookups=chance.choice((0.0, 0.4)),
    )


def _churners(seed: int, breadth: Breadth, nodes: Sequence[str]) -> tuple[ChurnPlan, ...]:
    """Return one churner, or none; its replicas are drawn among some of the nodes, so that generations meet."""
    chance = Random(f"churners {seed}")
    if chance.random() >= breadth.churners:
        return ()
    some = chance.sample(nodes, chance.randint(min(2, len(nodes)), min(4, len(nodes))))
    more = MORE if Random(f"churned partitions {seed}").random() < MORE_SHARE else 0
    plan = ChurnPlan(
        name="n1",
        topic=CHURNED,
        nodes=tuple(name for name in nodes if name in some),
        partitions=chance.choice((1, 2, 3)) + more,
        replication=chance.randint(1, min(3, len(some))),
        every_ms=chance.choice(((2, 15), (5, 40), (20, 120))),
        records=chance.choice(((1, 1), (1, 3), (1, 8))),
        within_ms=chance.choice((30, 120, 400)),
    )
    return (plan,)


def _some(chance: Random, places: Sequence[Place]) -> tuple[Place, ...]:
    """Return a part of the partitions, in their order: mostly several."""
    chosen = chance.sample(places, chance.randint(1, len(places)))
    return tuple(place for place in places if place in chosen)
