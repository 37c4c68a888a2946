"""
The dependencies between operations: which must come before which.

ww: who sent a value comes before who sent the next value of the version order. wr: who sent a value comes before
who polled it. Real time: an `ok` completion comes before what is invoked after it; nothing follows from `info` and
`fail`. No operation depends on itself, and there are no rw edges: jepsen.tests.kafka has them commented out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from checkers.jepsen.facts import Facts
from checkers.jepsen.history import INVOKE, OK, TRANSACTIONS, Op

# From and to: the indices of two completions.
Edge: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """
    The dependencies of a history.

    Attributes:
        ww: from the sender of a value to the sender of the next.
        wr: from the sender of a value to those that polled it.
        real_time: an operation was invoked after the `ok` completion of another.
    """

    ww: set[Edge]
    wr: set[Edge]
    real_time: bool

    def backward(self) -> Iterator[Edge]:
        """Yield the edges from an operation to one that completed before it."""
        for edges in (self.ww, self.wr):
            yield from (edge for edge in edges if edge[0] > edge[1])


def find_edges(facts: Facts, *, ww_deps: bool) -> Edges:
    """
    Return the dependencies.

    Raises:
        CheckerCrashError: a value was polled that nobody is known to have sent.
    """
    return Edges(
        ww=set(_ww(facts)) if ww_deps else set(), wr=set(_wr(facts)), real_time=_any_real_time(facts.ops)
    )


def _ww(facts: Facts) -> Iterator[Edge]:
    for key, writers in facts.writer_of.items():
        log = facts.log(key)
        for value, writer in writers.items():
            index = log.index.get(value, 0)
            if index:
                before = facts.writer(key, log.order[index - 1])
                if before is not writer:
                    yield before.index, writer.index


def _wr(facts: Facts) -> Iterator[Edge]:
    for key, readers_of in facts.readers_of.items():
        for value, readers in readers_of.items():
            writer = facts.writer(key, value)
            for reader in readers:
                if reader is not writer:
                    yield writer.index, reader.index


def _any_real_time(ops: Sequence[Op]) -> bool:
    first = next((op.index for op in ops if op.type == OK and op.f in TRANSACTIONS), None)
    last = next((op.index for op in reversed(ops) if op.type == INVOKE and op.f in TRANSACTIONS), None)
    return first is not None and last is not None and first < last
