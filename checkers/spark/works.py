"""
What executors do with rows of tables (checkers/spark/reading.py): keep some, and fold them or not.

This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from checkers.spark.fold import by_part, each, folds
from checkers.spark.reading import Found, Key
from checkers.spark.rows import Bools, Rows, Span, within

Parts: TypeAlias = Iterator[Found]


@dataclass(frozen=True, slots=True)
class Spans:
    """Rows of some partitions whose offset, or base, is in ranges."""

    of: Mapping[Key, Sequence[Span]]
    column: str = "offset"

    def kept(self, run: int, table: pa.Table) -> pa.Table:
        """Return those of a run among these rows."""
        rows = Rows(table)
        found = np.zeros(len(rows), dtype=bool)
        offsets, known = rows[self.column], rows.known(self.column)
        for part, places in rows.groups("part"):
            found[places] = within(offsets[places], self.of.get((run, part), ()))
        return rows.where(found & known).table


@dataclass(frozen=True, slots=True)
class Fold:
    """Fold rows of a table, all or those in some ranges."""

    table: str
    shift: int
    among: Spans | None = None

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Parts:
        """Yield the buckets of each partition."""
        if self.among is not None:
            tables = (self.among.kept(run, table) for table in tables)
        yield from keyed(run, by_part(folds(self.table, tables, self.shift), self.table))


@dataclass(frozen=True, slots=True)
class Singly:
    """Mark single rows of a table that are in some ranges."""

    table: str
    among: Spans

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Parts:
        """Yield the rows of each partition as if each were folded alone."""
        for table in tables:
            yield from keyed(run, by_part(each(self.table, self.among.kept(run, table)), self.table))


@dataclass(frozen=True, slots=True)
class Picked:
    """Mark the produces that have one of these invokes."""

    invoked: Mapping[int, frozenset[int]]
    who: str

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Parts:
        """Yield them as if each were folded alone."""
        for table in tables:
            rows = Rows(table)
            some = rows.where(is_among(rows, "invoked", self.invoked[run]))
            yield from keyed(run, by_part(each("produces", some.table), self.who))


@dataclass(frozen=True, slots=True)
class Take:
    """Take rows as they are, those in some ranges, of some invokes, or of some partitions; call them a piece."""

    piece: str
    among: Spans | None = None
    invoked: Mapping[int, frozenset[int]] | None = None
    parts: Mapping[int, frozenset[int]] | None = None

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Parts:
        """Yield the rows of each partition."""
        for table in tables:
            for part, rows in by_part(self._kept(run, table)):
                yield (run, part), named(rows, self.piece)

    def _kept(self, run: int, table: pa.Table) -> pa.Table:
        if self.among is not None:
            return self.among.kept(run, table)
        name, chosen = ("invoked", self.invoked) if self.invoked is not None else ("part", self.parts)
        rows = Rows(table)
        return rows.where(is_among(rows, name, (chosen or {}).get(run, frozenset()))).table


@dataclass(frozen=True, slots=True)
class Events:
    """Take events once for each partition that they are about; those about none for all of their run."""

    parts: Mapping[int, frozenset[int]]
    piece: str

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Parts:
        """Yield the events of each partition."""
        for table in tables:
            rows = Rows(table)
            of_all = rows.where(~rows.known("part")).table
            mine = {part: found.table for part, found in rows.each("part")}
            for part in sorted(self.parts[run]):
                found = [table for table in (of_all, mine.get(part)) if table is not None and len(table)]
                if found:
                    yield (run, part), named(pa.concat_tables(found).drop_columns(["part"]), self.piece)


def keyed(run: int, tables: Iterable[tuple[int, pa.Table]]) -> Parts:
    """Yield the tables of a run's partitions."""
    for part, table in tables:
        yield (run, part), table


def named(rows: pa.Table, piece: str) -> pa.Table:
    """Return rows with what they are a piece of, and that each stands for itself if it does not say so."""
    if "count" not in rows.column_names:
        rows = rows.append_column("count", pa.array([1] * len(rows), pa.int64()))
    return rows.append_column("piece", pa.array([piece] * len(rows), pa.string()))


def is_among(rows: Rows, name: str, numbers: frozenset[int]) -> Bools:
    """Return True for each row whose number is one of these."""
    found: Bools = rows.known(name) & np.isin(rows[name], np.array(sorted(numbers), dtype=np.int64))
    return found
