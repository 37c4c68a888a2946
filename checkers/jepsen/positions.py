"""
Rules about where a process polls: each poll goes on where the one before ended, over no value and not back.

A value whose index is not known is taken to follow directly. Source: jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from checkers.jepsen.facts import Facts
from checkers.jepsen.finding import SKIPPED_MAX, Finding
from checkers.jepsen.history import ASSIGN, INFO, OK, POLL, SUBSCRIBE, TXN, Key, Op, Value
from checkers.jepsen.order import NO_LOG, KeyLog


def between_polls(facts: Facts) -> Iterator[Finding]:
    """
    Yield each poll-skip and nonmonotonic-poll.

    In one process, the first value that an operation polled of a key lies more than one index past the last value
    of the operation before (skip), or at or before it (nonmonotonic). Only an `ok` operation moves the position.
    An `ok` or `info` assignment keeps the positions of the keys that it names, and forgets the others.
    """
    positions: dict[int, dict[Key, Op]] = {}
    for op in facts.ops:
        if op.f in (TXN, POLL):
            if not op.polls:
                continue
            mine = positions.setdefault(op.process, {})
            for key, pairs in op.polls.items():
                before = mine.get(key)
                if before is not None and pairs:
                    yield from _moved(facts.log(key), key, before, op)
            if op.type == OK:
                mine.update(dict.fromkeys(op.polls, op))
        elif op.f in (ASSIGN, SUBSCRIBE) and op.type in (OK, INFO):
            keep_named(positions, op)


def within_polls(facts: Facts) -> Iterator[Finding]:
    """
    Yield each int-poll-skip and int-nonmonotonic-poll.

    Within one operation, whatever became of it, all its polls of a key strung together: neighbours lie more than
    one index apart (skip), or the later is at or before the earlier (nonmonotonic). Not of a key that the
    operation's rebalance log names.
    """
    for op in facts.ops:
        for key, pairs in op.polls.items():
            if len(pairs) > 1 and key not in op.rebalanced:
                yield from neighbours(facts.logs.get(key, NO_LOG), key, op, op.polled(key), "poll")


def neighbours(log: KeyLog, key: Key, op: Op, values: list[Value], what: str) -> Iterator[Finding]:
    """
    Yield the neighbours that do not follow each other directly.

    Args:
        values: what an operation sent or polled, in order.
        what: "send" or "poll".
    """
    indices = [*map(log.index.get, values)]
    for place, (before, after) in enumerate(pairwise(indices)):
        if before is None or after is None or after - before == 1:
            continue
        one, two = values[place], values[place + 1]
        skips = after > before
        yield Finding(
            kind=f"int-{what}-skip" if skips else f"int-nonmonotonic-{what}",
            key=key,
            values=(one, two),
            offsets=(log.offsets[before], log.offsets[after]),
            ops=(op,),
            delta=after - before,
            skipped=_between(log, before, after),
        )


def keep_named(of_process: dict[int, dict[Key, Op]], op: Op) -> None:
    """Keep what is known of the keys that an assignment names, and forget the others of its process."""
    if op.process in of_process:
        named = set(op.value)
        mine = of_process[op.process]
        of_process[op.process] = {key: last for key, last in mine.items() if key in named}


def _moved(log: KeyLog, key: Key, before: Op, op: Op) -> Iterator[Finding]:
    if not before.polls[key]:
        return
    last, first = before.polls[key][-1][1], op.polls[key][0][1]
    delta = log.delta(last, first)
    if delta == 1:
        return
    one, two = log.index[last], log.index[first]
    yield Finding(
        kind="poll-skip" if delta > 1 else "nonmonotonic-poll",
        key=key,
        values=(last, first),
        offsets=(log.offsets[one], log.offsets[two]),
        ops=(before, op),
        delta=delta,
        skipped=_between(log, one, two),
    )


def _between(log: KeyLog, before: int, after: int) -> tuple[Value, ...]:
    """Return the values between two indices, the first SKIPPED_MAX of them."""
    return tuple(log.order[before + 1 : min(after, before + 1 + SKIPPED_MAX)])
