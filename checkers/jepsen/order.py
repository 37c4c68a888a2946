"""
The log of each key as all operations together show it, and the version order that follows from it.

The log maps an offset to the values that were seen there. Offsets only order values: the *index* of an offset is
its place among those at which a value was seen, so that holes, such as transaction markers, do not count. The
version order has one value an index. Source: jepsen.tests.kafka, version-orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from checkers.jepsen.history import FAIL, INFO, INVOKE, TRANSACTIONS, Key, Op, Pairs, Value

_MASK: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, eq=False)
class KeyLog:
    """
    The log of one key.

    Attributes:
        offsets: where a value was seen, rising; an index is a place in this list.
        values: of an index with several values all of them, in the order in which they were seen.
        order: the version order: of each index its value, or one of its values.
        index: of a value of the version order its last index.
        first: of every value in the log its first index.
        last: of every value in the log its last index.
    """

    offsets: list[int]
    values: Mapping[int, list[Value]]
    order: list[Value]
    index: Mapping[Value, int]
    first: Mapping[Value, int]
    last: Mapping[Value, int]

    def at(self, index: int) -> list[Value]:
        """Return all values that were seen at an index."""
        return self.values.get(index) or [self.order[index]]

    def delta(self, before: Value, after: Value) -> int:
        """Return how many indices lie from one value to the other; 1 if one of the two has none."""
        one, two = self.index.get(before), self.index.get(after)
        return 1 if one is None or two is None else two - one


NO_LOG: Final = KeyLog([], {}, [], {}, {}, {})


class LogBuilder:
    """Collects what was seen at the offsets of each key."""

    def __init__(self) -> None:
        self._seen: dict[Key, dict[int, Value]] = {}
        self._several: dict[Key, dict[int, dict[Value, None]]] = {}

    def add(self, pairs_of: Mapping[Key, Pairs]) -> None:
        """Add what an operation sent or polled; a pair without an offset says nothing."""
        for key, pairs in pairs_of.items():
            seen = self._seen.get(key)
            for offset, value in pairs:
                if offset is None:
                    continue
                if seen is None:
                    seen = self._seen[key] = {}
                if seen.setdefault(offset, value) != value:
                    several = self._several.setdefault(key, {})
                    several.setdefault(offset, {seen[offset]: None})[value] = None

    def logs(self) -> dict[Key, KeyLog]:
        """Return the log of each key of which an offset is known."""
        return {key: _log(seen, self._several.get(key, {})) for key, seen in self._seen.items()}


def key_logs(ops: Iterable[Op], ok_polled: Mapping[Key, set[Value]]) -> dict[Key, KeyLog]:
    """
    Return the log of each key.

    Every poll is believed, whatever became of its operation. A send is believed if it must have happened.

    Args:
        ok_polled: of each key what `ok` operations polled.
    """
    builder = LogBuilder()
    for op in ops:
        if op.f not in TRANSACTIONS:
            continue
        sends, polls = op.strays or (op.sends, op.polls)
        if sends and must_have_committed(op, ok_polled):
            builder.add(sends)
        if polls:
            builder.add(polls)
    return builder.logs()


def must_have_committed(op: Op, ok_polled: Mapping[Key, set[Value]]) -> bool:
    """Return True if an operation is `ok`, or `info` and an `ok` operation polled something that it sent."""
    if op.type == INFO:
        return any(
            pair[1] in ok_polled[key] for key, pairs in op.sends.items() if key in ok_polled for pair in pairs
        )
    return op.type not in (FAIL, INVOKE)


def _log(seen: dict[int, Value], several: Mapping[int, Mapping[Value, None]]) -> KeyLog:
    offsets = sorted(seen)
    order = [seen[offset] for offset in offsets]
    values: dict[int, list[Value]] = {}
    if several:
        for index, offset in enumerate(offsets):
            if offset in several:
                values[index] = [*several[offset]]
                order[index] = min(values[index], key=_hash_order)
    index_of = {value: index for index, value in enumerate(order)}
    if not several and len(index_of) == len(order):
        return KeyLog(offsets, values, order, index_of, index_of, index_of)
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for index, value in enumerate(order):
        for each in values.get(index, (value,)):
            first.setdefault(each, index)
            last[each] = index
    return KeyLog(offsets, values, order, index_of, first, last)


# Jepsen keeps the values of an offset in a set of Clojure's, and takes the first. That is arbitrary but not
# random: it is the first in the order of their hashes, five bits at a time from the lowest.
def _hash_order(value: Value) -> tuple[int, ...]:
    hashed = _hash_of_int(value) if isinstance(value, int) else _hash_of_text(value)
    return tuple(hashed >> bits & 31 for bits in range(0, 32, 5))


def _hash_of_int(value: int) -> int:
    """Return the hash of a 64-bit integer: Murmur3 of its two halves with seed 0, and 0 of 0."""
    if value == 0:
        return 0
    return _finish(_mix(_mix(0, value & _MASK), value >> 32 & _MASK), 8)


def _hash_of_text(value: str) -> int:
    """Return the hash of a string: Murmur3 of Java's hash code of its UTF-16."""
    code = 0
    units = value.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & _MASK
    return 0 if code == 0 else _finish(_mix(0, code), 4)


def _mix(hashed: int, block: int) -> int:
    block = _rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotated(hashed ^ block, 13) * 5 + 0xE6546B64) & _MASK


def _finish(hashed: int, length: int) -> int:
    hashed ^= length
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _MASK
    return hashed ^ hashed >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK
