"""
The dependencies between operations: which must come before which.

ww: who sent a value comes before who sent the next value of the version order. wr: who sent a value comes before
who polled it. Real time: an `ok` completion comes before what is invoked after it; nothing follows from `info` and
`fail`. No operation depends on itself, and there are no rw edges: jepsen.tests.kafka has them commented out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TypeAlias

from checkers.jepsen.facts import Facts
from checkers.jepsen.history import INVOKE, OK, TRANSACTIONS, Op

# From and to: the indices of two completions.
Edge: TypeAlias = tuple[int, int]


def ww(facts: Facts, ops: Iterable[Op]) -> Iterator[Edge]:
    """Yield the ww edges to these operations, one as often as values prove it."""
    for op in ops:
        for key, pairs in op.sends.items():
            log, writers = facts.log(key), facts.writer_of[key]
            for pair in pairs:
                index = log.index.get(pair[1], 0)
                # Of a value that was sent twice the last sender counts.
                if index and writers[pair[1]] is op:
                    before = facts.writer(key, log.order[index - 1])
                    if before is not op:
                        yield before.index, op.index


def wr(facts: Facts, ops: Iterable[Op]) -> Iterator[Edge]:
    """
    Yield the wr edges to these operations, one as often as values prove it.

    Raises:
        CheckerCrashError: a value was polled that nobody is known to have sent.
    """
    for op in ops:
        for key, pairs in op.polls.items():
            writers = facts.writer_of.get(key, {})
            for pair in pairs:
                writer = writers.get(pair[1]) or facts.writer(key, pair[1])
                if writer is not op:
                    yield writer.index, op.index


def any_real_time(facts: Facts) -> bool:
    """Return True if a transaction was invoked after the `ok` completion of another."""
    first = next((op.index for op in facts.transactions if op.type == OK), None)
    last = next((op.index for op in reversed(facts.ops) if op.type == INVOKE and op.f in TRANSACTIONS), None)
    return first is not None and last is not None and first < last


def real_time(ops: Iterable[Op]) -> Iterator[Edge]:
    """
    Yield real time as a chain of barriers, since from each completion to each later invocation would be quadratic.

    An edge leads from each `ok` completion to its barrier, from each barrier to the next, and from the last one
    before an invocation to the operation that is invoked. The barrier of an operation is -1 minus its index.
    """
    events: list[tuple[int, Op]] = []
    for op in ops:
        assert op.invocation is not None, "facts pair each completion with its invocation"
        events.append((op.invocation.index, op))
        if op.type == OK:
            events.append((op.index, op))
    barrier = 0
    for place, op in sorted(events, key=lambda event: event[0]):
        if place != op.index:
            if barrier:
                yield barrier, op.index
            continue
        if barrier:
            yield barrier, -1 - place
        barrier = -1 - place
        yield op.index, barrier


def suspects(facts: Facts, backward: Iterable[Edge]) -> dict[int, Op]:
    """
    Return the operations that may be in a cycle, by index, in order.

    Real time leads from an earlier completion to a later one, and so do most other edges. A cycle comes back, and
    each part of its way back lies within an edge that leads backward: what lies within none is in no cycle.

    Args:
        backward: the edges from a completion to an earlier one.
    """
    change: dict[int, int] = {}
    for later, earlier in backward:
        change[earlier] = change.get(earlier, 0) + 1
        change[later + 1] = change.get(later + 1, 0) - 1
    places = sorted(change)
    depths = [*accumulate(change[place] for place in places)]
    found: dict[int, Op] = {}
    at, depth = 0, 0
    for op in facts.transactions if places else ():
        while at < len(places) and places[at] <= op.index:
            depth = depths[at]
            at += 1
        if depth:
            found[op.index] = op
    return found
