"""
Decides what a workload's client does next, without IO and without a clock: drivers execute it.

One seed and one plan give one sequence of batches and pauses on every host and in the simulator, whatever other
clients do. What a consumer asks follows from what it was answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from harness.workload.plan import ConsumerPlan, Lookup, Place, ProducerPlan

# How far a consumer goes back at most: far enough to read again what a failover may have changed.
SEEK_BACK_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One request of a producer: a batch for one partition, or for two."""

    parts: tuple[tuple[Place, tuple[str, ...]], ...]
    acks: int
    codec: str


class ProducerScript:
    """What a producer sends, request by request; values are `NAME.NUMBER`, unique in the run."""

    def __init__(self, plan: ProducerPlan, seed: int) -> None:
        self.plan = plan
        self._chance = Random(f"producer {plan.name} {seed}")
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
            f"{self.plan.name}.{number}".ljust(self.plan.pad, "-") for number in range(first, first + count)
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

    def __init__(self, plan: ConsumerPlan, seed: int) -> None:
        self.plan = plan
        self.positions = dict.fromkeys(plan.places, 0)
        self._sought = set(plan.places)
        self._chance = Random(f"consumer {plan.name} {seed}")

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

    def out_of_range(self, ask: Ask) -> None:
        """Go back to the beginning: the log ends below the position (auto.offset.reset=earliest)."""
        self._seek(ask.place, 0)

    def pause_ms(self) -> float:
        """Return how long to wait before the next poll, in milliseconds."""
        return self._chance.uniform(*self.plan.every_ms)

    def _seek(self, place: Place, position: int) -> None:
        self.positions[place] = position
        self._sought.add(place)
