"""What a client stack does, whichever library it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from harness import limits

Place = tuple[str, int]
Record = tuple[str, int, int, bytes]  # topic, partition, offset, value

SECONDS = limits.CLIENT_OPERATION_S_MAX
# Small, so that a few dozen records take several fetches.
FETCH_BYTES = 2048


class Reader(Protocol):
    """A consumer that goes on where it stands, whatever becomes of brokers meanwhile."""

    def take(self, count: int) -> list[Record]:
        """Read on until there are `count` records, or time is out."""

    def seek(self, place: Place, offset: int) -> None:
        """Go on from another offset."""


class Stack(Protocol):
    """What a client library does; errors are given as their names."""

    codecs: tuple[str, ...]

    def __init__(self, bootstrap: Callable[[], Sequence[str]]) -> None:
        """Reach the cluster by the nodes that run."""

    def create(self, topic: str, partitions: int, replicas: int) -> str:
        """Make a topic; "" or the error's name."""

    def delete(self, topic: str) -> str:
        """Delete a topic; "" or the error's name."""

    def topics(self) -> set[str]:
        """All topics there are."""

    def describe(self, topic: str) -> dict[int, tuple[int, int, int]]:
        """Partition -> (leader, number of replicas, number in sync)."""

    def produce(
        self, place: Place, values: Mapping[int, bytes], *, acks: int, codec: str, singly: bool = False
    ) -> list[int]:
        """Send values by their timestamps in ms; give their offsets, [] with acks=0."""

    def bounds(self, place: Place) -> tuple[int, int]:
        """The first offset, and the high watermark."""

    def offset_at(self, place: Place, timestamp_ms: int) -> int | None:
        """The first offset of that time or later, None where there is none."""

    def reader(self, *places: Place) -> Any:
        """A context in which there is a Reader that begins at the beginning of these."""


def until(condition: Callable[[], bool]) -> None:
    """Poll a client, which waits in itself, until the condition holds or time is out."""
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        pass
