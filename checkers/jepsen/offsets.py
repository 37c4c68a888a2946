"""Two rules about offsets: one offset has one value, and one value has one offset. Source: jepsen.tests.kafka."""

from __future__ import annotations

from collections.abc import Iterator

from checkers.jepsen.facts import Facts
from checkers.jepsen.finding import Finding
from checkers.jepsen.history import CheckerCrashError, Key, Value
from checkers.jepsen.order import KeyLog


def inconsistent_offsets(facts: Facts) -> Iterator[Finding]:
    """
    Yield each offset of a key at which two values or more were seen.

    Raises:
        CheckerCrashError: Jepsen sorts the values, and they are of two sorts.
    """
    for key, log in facts.logs.items():
        for index, values in sorted(log.values.items()):
            yield Finding(
                kind="inconsistent-offsets",
                key=key,
                values=tuple(in_order(values, f"at offset {log.offsets[index]} of key {key!r}")),
                offsets=(log.offsets[index],),
                more={"index": index},
            )


def duplicate(facts: Facts) -> Iterator[Finding]:
    """Yield each value of a key that was seen at two offsets or more."""
    for key, log in facts.logs.items():
        if log.first is not log.last:
            yield from _duplicates(key, log)


def _duplicates(key: Key, log: KeyLog) -> Iterator[Finding]:
    again = {value for value, index in log.first.items() if log.last[value] != index}
    places: dict[Value, list[int]] = {value: [] for value in log.first if value in again}
    if again:
        for index, offset in enumerate(log.offsets):
            for value in log.at(index):
                if value in again:
                    places[value].append(offset)
    for value, offsets in places.items():
        yield Finding(kind="duplicate", key=key, values=(value,), offsets=tuple(offsets))


def in_order(values: list[Value] | set[Value], where: str) -> list[Value]:
    """
    Return values sorted.

    Args:
        where: where they are, for the error.

    Raises:
        CheckerCrashError: they are of two sorts, which cannot be compared.
    """
    try:
        return sorted(values)
    except TypeError as error:
        raise CheckerCrashError(
            "mixed-values", f"integers and strings {where}; values of one key must be of one sort"
        ) from error
