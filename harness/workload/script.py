"""
Decides what a workload's client does next, without IO and without a clock: drivers execute it.

One seed and one plan give one sequence of batches and pauses on every host and in the simulator, whatever other
clients do. What a consumer asks follows from what it was answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from harness.keys import keyed
from harness.workload.plan import ChurnPlan, ConsumerPlan, Lookup, Place, ProducerPlan

# How far a consumer goes back at most: far enough to read again what a failover may have changed.
SEEK_BACK_MAX: Final = 50
# Of one generation of a churner's topic: the most batches that are sent to it.
CHURN_BATCHES_MAX: Final = 4
# How often a churner asks once more for what it has just asked for.
TWICE_SHARE: Final = 0.12
# How often it creates its topic again at once, and how often it deletes it at once.
AT_ONCE_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """
    One life of a client, which may be killed and started again.

    Attributes:
        number: 1 for the first.
        positions: where a consumer begins, which assigns them anew; a partition that is left out begins at 0.
    """

    number: int = 1
    positions: Mapping[Place, int] = field(default_factory=dict)


FIRST: Final = Life()


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One request of a producer: a batch for one partition, or for two."""

    parts: tuple[tuple[Place, tuple[str, ...]], ...]
    acks: int
    codec: str


class ProducerScript:
    """
    What a producer sends, request by request.

    Values are `NAME.NUMBER`, unique in the run; `NAME.LIFE.NUMBER` of one that is killed and started again, which
    does not know how far it came.
    """

    def __init__(self, plan: ProducerPlan, seed: int, life: Life = FIRST) -> None:
        self.plan = plan
        self._chance = _chance("producer", plan, seed, life)
        self._prefix = plan.name if plan.kill_after is None else f"{plan.name}.{life.number}"
        self._count = 0

    def next(self) -> Send:
        """Return the next request."""
        plan, chance = self.plan, self._chance
        places = [chance.choice(plan.places)]
        others = [place for place in plan.places if place != places[0]]
        if others and chance.random() < plan.together:
            places.append(chance.choice(others))
        return Send(
            parts=tuple((place, self._values(chance.randint(*plan.batch))) for place in places),
            acks=chance.choice(plan.acks),
            codec=chance.choice(plan.codecs),
        )

    def pause_ms(self) -> float:
        """Return how long to wait before the next request, in milliseconds."""
        return self._chance.uniform(*self.plan.every_ms)

    def _values(self, count: int) -> tuple[str, ...]:
        first = self._count
        self._count += count
        return tuple(
            keyed(f"{self._prefix}.{number}", self.plan.keys, self.plan.tombstones).ljust(self.plan.pad, "-")
            for number in range(first, first + count)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """
    What a consumer asks of one partition.

    Attributes:
        sought: its position was assigned: at its start, by a seek, or because it was out of range.
    """

    place: Place
    position: int
    sought: bool


class ConsumerScript:
    """
    The positions of a consumer, one in each of its partitions.

    A driver calls `asks` for the next poll, sends it, and reports each partition's answer by `took`,
    `out_of_range` or, if nothing came, not at all: a failed poll moves no position.
    """

    def __init__(self, plan: ConsumerPlan, seed: int, life: Life = FIRST) -> None:
        self.plan = plan
        self.positions = {place: life.positions.get(place, 0) for place in plan.places}
        self._sought = set(plan.places)
        self._chance = _chance("consumer", plan, seed, life)

    def asks(self) -> list[Ask]:
        """Return what the next poll asks, of each partition; now and then it goes back in one of them first."""
        chance = self._chance
        if chance.random() < self.plan.seek:
            place = chance.choice(self.plan.places)
            position = self.positions[place]
            self._seek(place, chance.randint(max(0, position - SEEK_BACK_MAX), position))
        return [
            Ask(place=place, position=position, sought=place in self._sought)
            for place, position in self.positions.items()
        ]

    def lookup(self) -> tuple[Place, Lookup] | None:
        """Return the offset to ask for before the next poll, None for none."""
        chance = self._chance
        if not self.plan.lookups or chance.random() >= self.plan.lookups:
            return None
        return chance.choice(self.plan.places), chance.choice(tuple(Lookup))

    def took(self, ask: Ask, records: Sequence[tuple[int, str]], next_offset: int) -> None:
        """Move on after an answer: the position is the offset after the last batch that came."""
        del records
        self.positions[ask.place] = max(ask.position, next_offset)
        self._sought.discard(ask.place)

    def out_of_range(self, ask: Ask, start: int = -1) -> None:
        """Go to the log's start, -1 if unknown: it ends below the position, or starts past it (reset=earliest)."""
        self._seek(ask.place, max(0, start))

    def pause_ms(self) -> float:
        """Return how long to wait before the next poll, in milliseconds."""
        return self._chance.uniform(*self.plan.every_ms)

    def _seek(self, place: Place, position: int) -> None:
        self.positions[place] = position
        self._sought.add(place)


def _chance(kind: str, plan: ProducerPlan | ConsumerPlan, seed: int, life: Life) -> Random:
    """Return what a client draws from; each life draws anew."""
    words = (kind, plan.name, seed) if life.number == 1 else (kind, plan.name, seed, life.number)
    return Random(" ".join(map(str, words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create the topic; `assignments` has each partition's nodes, the first of which is to lead."""

    assignments: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Send a batch to one partition, with acks=all."""

    place: Place
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete the topic."""


ChurnAct: TypeAlias = Create | Write | Delete


class ChurnScript:
    """
    What a churner does, one act after another, each with the pause before it in milliseconds.

    Values are `NAME.GENERATION.NUMBER`, unique in the run. No outcome changes what comes next: after a create that
    failed, the batches of that generation go to whatever topic is there.
    """

    def __init__(self, plan: ChurnPlan, seed: int) -> None:
        self.plan = plan
        self._chance = Random(f"churner {plan.name} {seed}")
        self._acts = self._endless()

    def next(self) -> tuple[float, ChurnAct]:
        """Return the pause before the next act, and the act."""
        return next(self._acts)

    def any_of(self, nodes: Sequence[str]) -> str:
        """Return the node that is asked for metadata."""
        return self._chance.choice(nodes)

    def _endless(self) -> Iterator[tuple[float, ChurnAct]]:
        chance, generation = self._chance, 0
        while True:
            generation += 1
            for pause_ms in self._pauses():
                yield pause_ms, Create(assignments=self._assignments())
            number = 0
            for _ in range(chance.randint(0, CHURN_BATCHES_MAX)):
                count = chance.randint(*self.plan.records)
                values = tuple(f"{self.plan.name}.{generation}.{at}" for at in range(number, number + count))
                number += count
                yield self._pause_ms(), Write(place=chance.choice(self.plan.places), values=values)
            for pause_ms in self._pauses():
                yield pause_ms, Delete()

    def _pauses(self) -> Iterator[float]:
        """Yield the pause before an act; now and then the act comes twice."""
        yield 0.0 if self._chance.random() < AT_ONCE_SHARE else self._pause_ms()
        if self._chance.random() < TWICE_SHARE:
            yield self._pause_ms()

    def _pause_ms(self) -> float:
        return self._chance.uniform(*self.plan.every_ms)

    def _assignments(self) -> tuple[tuple[str, ...], ...]:
        plan = self.plan
        return tuple(tuple(self._chance.sample(plan.nodes, plan.replication)) for _ in plan.places)
