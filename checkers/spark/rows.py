"""The columns of one table as arrays of numbers. This module imports nothing of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
# [first, end) of offsets.
Span: TypeAlias = tuple[int, int]

NONE: Final[Ints] = np.empty(0, dtype=np.int64)


class Rows:
    """Rows of a table, whose columns are read as numbers, null as 0."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def of(self, *who: str) -> Rows:
        """Return the rows that come from these tables."""
        names = self.table.column("who").combine_chunks()
        wanted = [place for place, name in enumerate(names.dictionary.to_pylist()) if name in who]
        return self.where(np.isin(names.indices.to_numpy(), wanted))

    def where(self, kept: Bools) -> Rows:
        """Return some of the rows."""
        return Rows(self.table.filter(pa.array(kept)))

    def __getitem__(self, name: str) -> Ints:
        """Return a column."""
        column = self.table.column(name)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int64())
        found: Ints = pc.fill_null(column, 0).to_numpy()
        return found

    def known(self, name: str) -> Bools:
        """Return True for each row in which the column is not null."""
        found: Bools = self.table.column(name).is_valid().to_numpy()
        return found

    def values(self, name: str) -> list[int]:
        """Return the values of a column, each once, without null."""
        return [each for each in pc.unique(self.table.column(name)).to_pylist() if each is not None]

    def equal(self, name: str, text: str) -> Bools:
        """Return True for each row in which the column is this text."""
        found: Bools = pc.fill_null(pc.equal(self.table.column(name), text), False).to_numpy()
        return found

    def hashes(self, name: str) -> Ints:
        """Return 64 bits of the text of each row, the same in every process."""
        codes = self.table.column(name).combine_chunks().dictionary_encode()
        of_text = [
            int.from_bytes(blake2b(str(text).encode(), digest_size=8).digest(), "big", signed=True)
            for text in codes.dictionary.to_pylist()
        ]
        found: Ints = np.array(of_text, dtype=np.int64)[codes.indices.to_numpy()]
        return found

    def groups(self, name: str) -> list[tuple[int, Ints]]:
        """Return the values of a column, rising, each with the places of its rows; null is left out."""
        values = self.values(name)
        if len(values) == 1 and not self.table.column(name).null_count:
            return [(values[0], np.arange(len(self)))]
        there = np.flatnonzero(self.known(name))
        numbers = self[name][there]
        order = np.argsort(numbers, kind="stable")
        found, first = np.unique(numbers[order], return_index=True)
        return [*zip(found.tolist(), np.split(there[order], first[1:]), strict=True)] if len(found) else []

    def each(self, name: str) -> Iterator[tuple[int, Rows]]:
        """Yield the rows of each value of a column, values rising; null is left out."""
        groups = self.groups(name)
        if len(groups) == 1 and len(groups[0][1]) == len(self):
            yield groups[0][0], self
            return
        # Rows are taken once, and sliced: to filter them anew for each of hundreds of values takes far longer.
        rows = self.table.take(pa.array(np.concatenate([NONE, *(places for _, places in groups)])))
        begin = 0
        for value, places in groups:
            yield value, Rows(rows.slice(begin, len(places)))
            begin += len(places)

    def __len__(self) -> int:
        return int(self.table.num_rows)


def together(numbers: Iterable[Ints]) -> Ints:
    """Return numbers, each once and rising."""
    return np.unique(np.concatenate([NONE, *numbers]))


# --- ranges of offsets -----------------------------------------------------------------------------------------
def spans_of(numbers: Ints) -> list[Span]:
    """Return rising numbers as [first, end) ranges."""
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    first = numbers[np.concatenate(([0], breaks + 1))]
    last = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    return [*zip(first.tolist(), (last + 1).tolist(), strict=True)]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return ranges in order, those that touch each other as one."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    return found


def lowest(spans: Iterable[Span], most: int) -> list[Span]:
    """Return the ranges up to so many numbers, the lowest."""
    found: list[Span] = []
    for first, end in spans:
        if most <= 0:
            break
        found.append((first, min(end, first + most)))
        most -= end - first
    return found


def numbers_in(spans: Iterable[Span], shift: int = 0) -> Iterator[int]:
    """Yield the numbers in ranges, or of their buckets; one that two ranges share may come twice."""
    for first, end in spans:
        yield from range(first >> shift, ((end - 1) >> shift) + 1)


def within(numbers: Ints, spans: Sequence[Span]) -> Bools:
    """Return for each number whether it is in one of the ranges, which are in order."""
    if not spans:
        return np.zeros(len(numbers), dtype=bool)
    firsts, ends = np.array(spans, dtype=np.int64).T
    place = np.searchsorted(firsts, numbers, side="right") - 1
    found: Bools = (place >= 0) & (numbers < ends[np.maximum(place, 0)])
    return found
