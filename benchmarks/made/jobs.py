"""The large runs that `make bench-checkers` makes and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.made.history import Shape
from benchmarks.made.plants import AT_END, PLANTS, Plant

REPLICAS: Final = 3
# Offsets between two plants, if there is one in each bucket.
BUCKET: Final = 4_096
# Sends that are made at once, about.
STRETCH: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    A run that is made and checked.

    Attributes:
        records: replica records.
        hot: the first partition has four fifths of them.
        unanswered: the share of produces without an answer.
        everywhere: one divergence in each bucket of 4,096 offsets, and no other anomaly.
    """

    records: int
    partitions: int = 1
    hot: bool = False
    batch: int = 3
    unanswered: float = 0.01
    everywhere: bool = False

    @property
    def sends(self) -> int:
        """The produces of one partition, of the hot one if one is hot."""
        all_sends = self.records // REPLICAS
        return max(1_000, all_sends * 4 // 5 if self.hot else all_sends // self.partitions)

    @property
    def cold(self) -> int:
        """The produces of each other partition, 0 if none is hot."""
        return max(1_000, self.sends // 4 // (self.partitions - 1)) if self.hot and self.partitions > 1 else 0

    @property
    def plants(self) -> tuple[Plant, ...]:
        """One anomaly of each sort, each in its own place, or one in each bucket."""
        shape = Shape(sends=self.sends, cold=self.cold)
        if self.everywhere:
            return tuple(
                Plant(name="diverged", number=place, partition=part)
                for part in range(self.partitions)
                for place in range(1_000, shape.sends_of(part), BUCKET)
            )
        return tuple(
            _plant(name, place, place % self.partitions, shape.sends_of(place % self.partitions))
            for place, name in enumerate(PLANTS, start=1)
        )

    @property
    def shape(self) -> Shape:
        """The run that is made."""
        return Shape(
            sends=self.sends,
            cold=self.cold,
            partitions=self.partitions,
            batch=self.batch,
            unanswered=self.unanswered,
            # Whole stretches, so that the last one is not too short for a plant at its end.
            stretch=-(-self.sends // max(4, self.sends // STRETCH)),
            plants=self.plants,
        )

    def __str__(self) -> str:
        parts = "one partition" if self.partitions == 1 else f"{self.partitions} partitions"
        more = (", one of them hot" if self.hot else "") + (", all buckets dirty" if self.everywhere else "")
        return f"{self.records / 1e6:g} M, {parts}, batches of {self.batch}{more}"


def _plant(name: str, place: int, partition: int, sends: int) -> Plant:
    number = sends - 50 if name in AT_END else sends // (len(PLANTS) + 2) * place
    return Plant(name=name, number=number, partition=partition)


# What is measured if nothing else is asked for.
STANDARD: Final = (
    Job(records=1_000_000),
    Job(records=10_000_000),
    Job(records=10_000_000, partitions=200, batch=100),
    Job(records=10_000_000, partitions=20, hot=True, batch=100),
    Job(records=10_000_000, batch=100, everywhere=True),
    Job(records=100_000_000),
    Job(records=100_000_000, partitions=20, batch=100),
)
