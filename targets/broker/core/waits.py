"""Requests that wait, found by number, by partition and by connection without a search through the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from targets.broker.core.events import Caller
from targets.broker.core.messages import TopicPartition


class Waiting(Protocol):
    """A request that waits."""

    @property
    def caller(self) -> Caller:
        """Return who waits."""

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """Return what may end the waiting; the same while it waits."""


W = TypeVar("W", bound=Waiting)


@dataclass(slots=True)
class Waits(Generic[W]):
    """Requests that wait: number -> request, and the numbers of each partition and of each connection."""

    requests: dict[int, W] = field(default_factory=dict)
    # Dicts without values: sets that keep their order.
    _of_partition: dict[TopicPartition, dict[int, None]] = field(default_factory=dict)
    _of_connection: dict[int, dict[int, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.requests)

    def add(self, number: int, request: W) -> None:
        """Let a request wait under a number that no other has."""
        self.requests[number] = request
        self._of_connection.setdefault(request.caller.connection, {})[number] = None
        index = self._of_partition
        for tp in request.partitions:
            numbers = index.get(tp)
            if numbers is None:
                index[tp] = {number: None}
            else:
                numbers[number] = None

    def pop(self, number: int) -> W | None:
        """Remove a request, None if it does not wait any more."""
        request = self.requests.pop(number, None)
        if request is not None:
            _remove(self._of_connection, (request.caller.connection,), number)
            _remove(self._of_partition, request.partitions, number)
        return request

    def on(self, tp: TopicPartition) -> list[tuple[int, W]]:
        """Return the requests that wait for a partition, in the order of their numbers."""
        return [(number, self.requests[number]) for number in self._of_partition.get(tp, ())]

    def of_connection(self, connection: int) -> list[int]:
        """Return the numbers of a connection's requests."""
        return list(self._of_connection.get(connection, ()))


K = TypeVar("K")


def _remove(index: dict[K, dict[int, None]], keys: Iterable[K], number: int) -> None:
    for key in keys:
        numbers = index.get(key)
        if numbers is not None:
            numbers.pop(number, None)
            if not numbers:
                del index[key]
