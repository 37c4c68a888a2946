"""What Jepsen reports without bearing on the verdict: values consumed twice, and how far behind polls were."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from checkers.jepsen.history import ASSIGN, INFO, OK, POLL, SEND, SUBSCRIBE, TXN, Key, Op, Value


def consume_counts(ops: Sequence[Op]) -> dict[str, Any]:
    """Return how often `ok` operations of a subscribed process polled each value, and the values polled again."""
    subscribed: set[int] = set()
    counts: dict[int, Counter[tuple[Key, Value]]] = {}
    for op in ops:
        if op.type != OK:
            continue
        if op.f == SUBSCRIBE:
            subscribed.add(op.process)
        elif op.process in subscribed:
            mine = counts.setdefault(op.process, Counter())
            mine.update((key, pair[1]) for key, pairs in op.polls.items() for pair in pairs)
    distribution = Counter(count for mine in counts.values() for count in mine.values())
    dups: dict[Key, dict[Value, int]] = {}
    for mine in counts.values():
        for (key, value), count in mine.items():
            if count > 1:
                dups.setdefault(key, {})[value] = count
    return {
        "distribution": {str(count): number for count, number in sorted(distribution.items())},
        "dup-counts": {str(key): {str(value): count for value, count in of.items()} for key, of in dups.items()},
    }


def worst_realtime_lag(ops: Sequence[Op]) -> dict[str, Any]:
    """
    Return the poll that was furthest behind, with its lag in seconds: a lower bound.

    A key's lag is the time from when something past all that the process had polled was known to be in the log,
    until the poll began. If no poll was ever behind, the first one is returned, with 0.
    """
    known = _known(ops)
    polled_to: dict[int, dict[Key, int]] = {}
    worst: dict[str, Any] | None = None
    for op in ops:
        if op.type != OK:
            continue
        mine = polled_to.get(op.process, {})
        if op.f == ASSIGN:
            polled_to[op.process] = {key: mine.get(key, -1) for key in op.value}
        elif op.f == SUBSCRIBE:
            polled_to[op.process] = {}
        elif op.f in (POLL, TXN):
            polled_to[op.process] = mine
            for key, offset in _highest(op):
                mine[key] = max(mine.get(key, -1), offset)
            assert op.invocation is not None, "facts pair each completion with its invocation"
            began = op.invocation.time
            for key, offset in mine.items():
                lag = max(began - _known_at(known.get(key), offset + 1, began), 0)
                if worst is None or lag > worst["lag"]:
                    worst = {"key": key, "process": op.process, "time": began, "lag": lag}
    if worst is None:
        return {"lag": 0.0, "time": 0.0}
    return {**worst, "lag": worst["lag"] / 1e9, "time": worst["time"] / 1e9}


def _known(ops: Sequence[Op]) -> dict[Key, tuple[list[int], list[int]]]:
    """Return of each key the offsets that were higher than any before, and when each was first seen."""
    found: dict[Key, tuple[list[int], list[int]]] = {}
    for op in ops:
        if op.type in (OK, INFO):
            for key, offset in _highest(op):
                if offset >= 0:
                    offsets, times = found.setdefault(key, ([], []))
                    if not offsets or offset > offsets[-1]:
                        offsets.append(offset)
                        times.append(op.time)
    return found


def _known_at(known: tuple[list[int], list[int]] | None, offset: int, never: int) -> int:
    if known is None:
        return never
    place = bisect_left(known[0], offset)
    return known[1][place] if place < len(known[0]) else never


def _highest(op: Op) -> Iterator[tuple[Key, int]]:
    """Yield the keys that an operation polled or sent to, each with its highest offset; -1 if none is known."""
    found: dict[Key, int] = {}
    for key, pairs in op.polls.items() if op.f in (POLL, TXN) else ():
        found[key] = max((pair[0] for pair in pairs if pair[0] is not None), default=-1)
    for key, pairs in op.sends.items() if op.f in (SEND, TXN) else ():
        offsets = [pair[0] for pair in pairs if pair[0] is not None]
        if offsets:
            found[key] = max(found.get(key, 0), *offsets)
    yield from found.items()
