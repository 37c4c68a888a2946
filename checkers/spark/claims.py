"""
What executors do to find where the values of produces without an answer stand in the leader's log.

This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from checkers.spark.fold import LANDED, by_part, each, fold
from checkers.spark.reading import Found, Grouped, Key, Packed, packed
from checkers.spark.rows import Bools, Ints, Rows
from checkers.spark.sought import Sought
from checkers.spark.works import Spans, keyed

# The bits of a hash that say in which share it is; others say where a filter looks for it.
_SHARE_SHIFT: Final = 40


def is_unanswered(rows: Rows) -> Bools:
    """Return True for each produce that has no offset and may be in the log."""
    return ~rows.equal("outcome", "fail") & ~(rows.known("offset") & (rows["offset"] >= 0))


@dataclass(frozen=True, slots=True)
class Share:
    """One of equal shares of all hashes."""

    number: int
    of: int

    def has(self, hashes: Ints) -> Bools:
        """Return True for each hash that is in this share."""
        found: Bools = (hashes >> _SHARE_SHIFT) % self.of == self.number
        return found


def once(item: Grouped) -> Iterator[Packed]:
    """Yield the claims of a partition whose value stands in the log once."""
    rows = Rows(pa.concat_tables(item[1]))
    _, first, count = np.unique(rows["hash"], return_index=True, return_counts=True)
    yield from packed([(item[0], rows.table.take(pa.array(first[count == 1])))])


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Take the values of produces without an answer, those of one share."""

    keys: frozenset[Key]
    share: Share

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        """Yield hash and digest of these produces, by partition."""
        for table in tables:
            rows = Rows(table)
            mine = rows.where(is_unanswered(rows) & self.share.has(rows["hash"])).table
            found = keyed(run, by_part(mine.select(["part", "hash", "digest"])))
            yield from ((key, values) for key, values in found if key in self.keys)


@dataclass(frozen=True, slots=True)
class Values:
    """Values that were sent once without an answer; `told` is False if the client did not say its digest."""

    hashes: Sought
    digests: Ints
    told: Bools

    @staticmethod
    def of(rows: Rows) -> Values:
        """Return those in rows of (hash, digest)."""
        hashes, first, count = np.unique(rows["hash"], return_index=True, return_counts=True)
        once = first[count == 1]
        return Values(Sought(hashes[count == 1]), rows["digest"][once], rows.known("digest")[once])


def values_of(item: Grouped) -> Iterator[tuple[Key, Values]]:
    """Yield the values of a partition, from its rows of (hash, digest)."""
    key, tables = item
    yield key, Values.of(Rows(pa.concat_tables(tables)))


@dataclass(frozen=True, slots=True)
class Standing:
    """Find values in the leader's log of each partition, from where it begins."""

    values: Mapping[Key, Values]
    begins: Mapping[int, Mapping[int, tuple[int, int]]]

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        """Yield (offset, hash, digest) of the records that have one of the values, by partition."""
        for table in tables:
            rows = Rows(table)
            for log, of_log in rows.each("log"):
                part, start = self.begins[run].get(log, (-1, 0))
                values = self.values.get((run, part))
                if values is not None:
                    yield (run, part), _found(of_log.where(of_log["offset"] >= start), values)


def _found(rows: Rows, values: Values) -> pa.Table:
    there, place = values.hashes.within(rows["hash"])
    return pa.table(
        {
            "offset": rows["offset"][there],
            "hash": rows["hash"][there],
            "digest": pa.array(values.digests[place], mask=~values.told[place]),
        }
    )


def fold_claims(item: Found, *, shift: int, among: Spans | None) -> Iterator[Found]:
    """Yield the claims of a partition (checkers/spark/landed.py), all or those in some ranges, folded."""
    yield from keyed(item[0][0], by_part(fold(LANDED, _claims(item, among), shift), LANDED))


def single_claims(item: Found, *, among: Spans) -> Iterator[Found]:
    """Yield the claims of a partition that are in some ranges as if each were folded alone."""
    yield from keyed(item[0][0], by_part(each(LANDED, _claims(item, among)), LANDED))


def _claims(item: Found, among: Spans | None) -> pa.Table:
    (run, part), claims = item
    rows = claims.append_column("part", pa.array([part] * len(claims), pa.int64()))
    return rows if among is None else among.kept(run, rows)
