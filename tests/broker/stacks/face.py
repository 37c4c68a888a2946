"""The interface that every client stack implements."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from harness import limits

Place = tuple[str, int]
Record = tuple[str, int, int, bytes]  # topic, partition, offset, value

SECONDS = limits.CLIENT_OPERATION_S_MAX
# Small, so that a few dozen records need several fetches.
FETCH_BYTES = 2048


class Reader(Protocol):
    """A consumer that continues at its position, even when brokers fail in between."""

    def take(self, count: int) -> list[Record]:
        """Read until there are `count` records or the time is up."""

    def seek(self, place: Place, offset: int) -> None:
        """Continue from another offset."""


class Stack(Protocol):
    """The operations of a client library; errors are returned as their names."""

    codecs: tuple[str, ...]

    def __init__(self, bootstrap: Callable[[], Sequence[str]]) -> None:
        """Take a function that returns the addresses of the running nodes."""

    def create(self, topic: str, partitions: int, replicas: int) -> str:
        """Create a topic; return "" or the error's name."""

    def delete(self, topic: str) -> str:
        """Delete a topic; return "" or the error's name."""

    def topics(self) -> set[str]:
        """Return all topics."""

    def describe(self, topic: str) -> dict[int, tuple[int, int, int]]:
        """Return partition -> (leader, number of replicas, number in sync)."""

    def produce(
        self, place: Place, values: Mapping[int, bytes], *, acks: int, codec: str, singly: bool = False
    ) -> list[int]:
        """Send values, keyed by timestamp in ms; return their offsets, [] with acks=0."""

    def bounds(self, place: Place) -> tuple[int, int]:
        """Return the first offset and the high watermark."""

    def offset_at(self, place: Place, timestamp_ms: int) -> int | None:
        """Return the first offset at or after that time, None if there is none."""

    def reader(self, *places: Place) -> Any:
        """Return a context manager that yields a Reader at the start of these partitions."""


def until(condition: Callable[[], bool]) -> None:
    """Poll until the condition holds or the time is up; the condition itself blocks in the client's poll."""
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        pass
