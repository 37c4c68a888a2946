"""
The lives of a client in a process of its own, which is killed and started again, as every host has them; no IO.

A life ends because of what was seen: so many acknowledged records, or polls with records, then the next request of
the client, and then as many ops of the history as the seed draws. A fault may ask for one more, which comes while
a request is under way.

Where a life ends, what it had begun has no outcome: a produce is `info`, since it may be appended even later, and
a poll is `fail`, since it moves no position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeAlias, TypeVar

from harness.events import Event, Poll, Produce
from harness.model import OpType, PreconditionError
from harness.workload.plan import Place

# So many ops of the history, at most, after an invoke of the client it is killed.
OPS_LATER_MAX: Final = 40
# How long a fault waits for a request of the client: at work it asks several times in a second.
CRASHES_WITHIN_S: Final = 10.0
KILLED: Final = "its process was killed"
# What an invoke and its completion have in common.
_Asked: TypeAlias = tuple[object, ...]


class LifeOps:
    """
    What one life has begun, and what came of it.

    Attributes:
        acknowledged: how many records of a producer were acknowledged, or polls of a consumer brought some.
        positions: up to where a consumer has recorded what it read, partition by partition.
    """

    def __init__(self) -> None:
        self.acknowledged = 0
        self.positions: dict[Place, int] = {}
        self._open: dict[_Asked, Produce | Poll] = {}

    @property
    def open(self) -> int:
        """How many ops it has begun that have not ended."""
        return len(self._open)

    @property
    def is_asking(self) -> bool:
        """Whether it has begun something that has not ended."""
        return bool(self._open)

    def note(self, type_: OpType, event: Event) -> None:
        """Take note of an op of this life; one that is no request says nothing."""
        match event:
            case Produce():
                self._note(type_, (Produce, *event.asked), event)
            case Poll():
                place = Place(event.topic, event.partition)
                self._note(type_, (Poll, place), event)
                self.positions[place] = end_of(event)

    def cut_off(self) -> Iterator[tuple[OpType, Event]]:
        """Yield how each op ends that a killed life has begun and not ended; after that none is open."""
        cut, self._open = self._open, {}
        for event in cut.values():
            if isinstance(event, Produce):
                yield OpType.INFO, replace(event, digest="", error=KILLED)
            else:
                yield OpType.FAIL, replace(event, error=KILLED)

    def _note(self, type_: OpType, asked: _Asked, event: Produce | Poll) -> None:
        if type_ is OpType.INVOKE:
            self._open[asked] = event
        else:
            self._open.pop(asked, None)
            self.acknowledged += type_ is OpType.OK and (isinstance(event, Produce) or bool(event.records))


def end_of(poll: Poll) -> int:
    """Return the offset up to which a poll, or its outcome, says that its consumer has read."""
    return poll.records[-1][0] + 1 if poll.records else poll.position


class Mortal(Protocol):
    """A client in a process of its own."""

    @property
    def name(self) -> str:
        """Its name in the workload."""

    @property
    def kills(self) -> int:
        """How often it was killed."""

    def crash(self) -> str:
        """Kill it while a request is under way; raise PreconditionError if it makes none in time."""


M = TypeVar("M", bound=Mortal)


def next_to_crash(mortals: Sequence[M]) -> M:
    """Return the client that was killed least often, the first of them by name; raise PreconditionError."""
    if not mortals:
        raise PreconditionError("client-crash: no client has a process of its own; expected one at work")
    return min(mortals, key=lambda each: (each.kills, each.name))


def asked_nothing(name: str) -> PreconditionError:
    """Return the error of a client that was to be killed, and made no request in time."""
    return PreconditionError(
        f"client {name}: no request within {CRASHES_WITHIN_S:g} s; expected one to kill it by"
    )
