"""
Find where the values of produces without an answer stand in the leader's log.

The values are sent to every executor, a share of them at a time if they are many, and each looks for them in the
records that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from checkers.spark.fold import by_part
from checkers.spark.head import Part
from checkers.spark.reading import Key, Scan
from checkers.spark.rows import Bools, Ints, Rows
from checkers.spark.scan import Parts, Tables
from checkers.spark.sought import Sought
from checkers.spark.works import keyed

# Values that are sent to every executor at once.
_TOGETHER: Final = 2_000_000
# The bits of a hash that say in which share it is; others say where a filter looks for it.
_SHARE_SHIFT: Final = 40


def landed(tables: Tables, parts: Sequence[Part], unanswered: Mapping[Key, int]) -> Parts:
    """
    Return (offset, hash, digest) of unanswered produces whose value the leader's log has once, by partition.

    A value that was sent twice without an answer, or that the log has twice, is no claim, so that all its places are
    in doubt.

    Args:
        tables: of the runs.
        parts: the partitions to look at.
        unanswered: how many produces of each partition have no offset and may be in the log.
    """
    some = [part for part in parts if unanswered.get(part.key)]
    shares = -(-sum(unanswered[part.key] for part in some) // _TOGETHER)
    found = [tables.keep(_share(tables, some, _Share(number, shares))) for number in range(shares)]
    return tables.union(*found) if found else tables.of([])


def is_unanswered(rows: Rows) -> Bools:
    """Return True for each produce that has no offset and may be in the log."""
    return ~rows.equal("outcome", "fail") & ~(rows.known("offset") & (rows["offset"] >= 0))


@dataclass(frozen=True, slots=True)
class _Share:
    number: int
    of: int

    def has(self, hashes: Ints) -> Bools:
        """Return True for each hash that is in this share."""
        found: Bools = (hashes >> _SHARE_SHIFT) % self.of == self.number
        return found


def _share(tables: Tables, parts: Sequence[Part], share: _Share) -> Parts:
    runs = {part.run for part in parts}
    columns = ("part", "outcome", "offset", "hash", "digest")
    sent = tables.scan(
        Scan.all("produces", _Unanswered(frozenset(part.key for part in parts), share), runs, columns)
    )
    values = {key: Rows(pa.concat_tables(some)) for key, some in _grouped(sent.collect()).items()}
    begins: dict[int, dict[int, tuple[int, int]]] = {}
    for part in parts:
        begins.setdefault(part.run, {})[part.leads] = part.part, part.starts[part.leads]
    look = _Standing({key: _Values.of(rows) for key, rows in values.items()}, begins)
    leading = {run: frozenset(logs) for run, logs in begins.items()}
    records = Scan(table="records", columns=("log", "offset", "hash"), work=look, runs=leading, by="log")
    return tables.scan(records).groupByKey(tables.tasks).mapValues(_once)


def _grouped(found: Iterable[tuple[Key, pa.Table]]) -> dict[Key, list[pa.Table]]:
    grouped: dict[Key, list[pa.Table]] = {}
    for key, table in found:
        grouped.setdefault(key, []).append(table)
    return grouped


def _once(tables: Iterable[pa.Table]) -> pa.Table:
    """Return the claims whose value stands in the log once."""
    rows = Rows(pa.concat_tables(tables))
    _, first, count = np.unique(rows["hash"], return_index=True, return_counts=True)
    return rows.table.take(pa.array(first[count == 1]))


@dataclass(frozen=True, slots=True)
class _Unanswered:
    """Take the values of produces without an answer, those of one share."""

    keys: frozenset[Key]
    share: _Share

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        for table in tables:
            rows = Rows(table)
            mine = rows.where(is_unanswered(rows) & self.share.has(rows["hash"])).table
            found = keyed(run, by_part(mine.select(["part", "hash", "digest"])))
            yield from ((key, values) for key, values in found if key in self.keys)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values that were sent once without an answer; `told` is False if the client did not say its digest."""

    hashes: Sought
    digests: Ints
    told: Bools

    @staticmethod
    def of(rows: Rows) -> _Values:
        """Return those in rows of (hash, digest)."""
        hashes, first, count = np.unique(rows["hash"], return_index=True, return_counts=True)
        once = first[count == 1]
        return _Values(Sought(hashes[count == 1]), rows["digest"][once], rows.known("digest")[once])


@dataclass(frozen=True, slots=True)
class _Standing:
    """Find values in the leader's log of each partition, from where it begins."""

    values: Mapping[Key, _Values]
    begins: Mapping[int, Mapping[int, tuple[int, int]]]

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        for table in tables:
            rows = Rows(table)
            for log in rows.values("log"):
                part, start = self.begins[run].get(log, (-1, 0))
                values = self.values.get((run, part))
                if values is not None:
                    mine = rows.where((rows["log"] == log) & (rows["offset"] >= start))
                    yield (run, part), _found(mine, values)


def _found(rows: Rows, values: _Values) -> pa.Table:
    there, place = values.hashes.within(rows["hash"])
    return pa.table(
        {
            "offset": rows["offset"][there],
            "hash": rows["hash"][there],
            "digest": pa.array(values.digests[place], mask=~values.told[place]),
        }
    )
