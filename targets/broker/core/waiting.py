"""Requests that wait for something to happen, and what is known of each so far; `waits` finds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from targets.broker.core.events import Caller
from targets.broker.core.messages import (
    ElectLeadersRequest,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    TopicPartition,
)


@dataclass(slots=True, kw_only=True)
class WaitingProduce:
    """A produce with acks=all that waits for the high watermark: partition -> (base, required HW)."""

    caller: Caller
    required: dict[TopicPartition, tuple[int, int]]
    done: dict[TopicPartition, tuple[ErrorCode, int]]
    order: tuple[TopicPartition, ...]
    texts: dict[TopicPartition, str]  # what is wrong with a refused partition, in words

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return every partition that was produced to."""
        return self.order


@dataclass(slots=True, kw_only=True)
class WaitingDeletion:
    """A DeleteRecords that waits for the ISR: partition -> where the logs of its members must start."""

    caller: Caller
    required: dict[TopicPartition, int]
    done: dict[TopicPartition, tuple[ErrorCode, int]]
    order: tuple[TopicPartition, ...]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return every partition whose records are to be deleted."""
        return self.order


@dataclass(slots=True, kw_only=True)
class WaitingElection:
    """
    An ElectLeaders that waits for the controller's reading and its writes.

    Attributes:
        caller: None for the controller's own.
        is_taken: whether a reading has looked at it.
        required: the partitions that are not settled, each with the leader that was decided, -1 for none yet.
    """

    caller: Caller | None
    request: ElectLeadersRequest
    is_taken: bool = False
    required: dict[TopicPartition, int] = field(default_factory=dict)
    done: dict[TopicPartition, tuple[ErrorCode, str]] = field(default_factory=dict)

    def settle(self, tp: TopicPartition, error: tuple[ErrorCode, str]) -> None:
        """Note the answer for a partition."""
        del self.required[tp]
        self.done[tp] = error


@dataclass(slots=True, kw_only=True)
class WaitingFetch:
    """
    A fetch that waits for bytes.

    Attributes:
        asked: by partition, what it asks for.
        stirred: where there may be something to tell, in a dict without values; None: everywhere.
        positions: where in their logs its partitions are to be read from, in bytes, as far as looked up.
            What truncates a log below ends the waiting.
        sizes: how many bytes of each are there, at the last look at that partition; `size` is the sum.
    """

    caller: Caller
    request: FetchRequest
    asked: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    stirred: dict[TopicPartition, None] | None = None
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    size: int = 0

    def stir(self, tp: TopicPartition) -> None:
        """Look at this partition once it is answered: something has changed there."""
        if self.stirred is not None:
            self.stirred[tp] = None

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """Return the partitions whose bytes it waits for."""
        return self.asked
