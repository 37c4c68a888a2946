"""
Take the batches that are in doubt, and all others as spans: what stands between two batches of one log.

This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from checkers.spark import assemble
from checkers.spark.fold import COLUMNS, by_part, fold
from checkers.spark.reading import Found, Key
from checkers.spark.rows import Ints, Rows
from checkers.spark.works import is_among, named
from harness.tables.places import LAST, SHIFT

# How far offsets are shifted to say which batches are chosen, and into which spans others are folded.
FINE: Final = 6
_SPAN: Final = ("log", "number", "n", "base", "last", "epoch", "magic", "codec", "index", "time_ns")
# What is read of batches: to fold them, and to judge them.
BATCH_COLUMNS: Final = (*COLUMNS["batches"], "place", "position", "segment", "control", "problem")


@dataclass(frozen=True, slots=True)
class Touched:
    """
    Take the batches of some places: those that are chosen whole, the others as spans.

    Attributes:
        places: in each run.
        fines: rising numbers of ranges of 64 offsets of each partition; a batch that begins or ends in one is
            chosen.
    """

    places: Mapping[int, frozenset[int]]
    fines: Mapping[Key, Ints]

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        """Yield the batches and spans of each partition."""
        for table in tables:
            rows = Rows(table)
            rows = rows.where(is_among(rows, "place", self.places[run]))
            for part, of_part in by_part(rows.table):
                mine = Rows(of_part)
                chosen = self._chosen(mine, (run, part))
                yield (run, part), named(mine.where(chosen).table, assemble.BATCH)
                others = mine.where(~chosen).table
                folds = fold(
                    "batches", others.append_column("part", pa.array([part] * len(others), pa.int64())), FINE
                )
                yield (run, part), _as_spans(folds)

    def _chosen(self, rows: Rows, key: Key) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        fines = self.fines.get(key, np.empty(0, dtype=np.int64))
        first, last = rows["base"] >> FINE, rows["last"] >> FINE
        # One of several ranges may have its chosen record in any.
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            np.isin(first, fines) | np.isin(last, fines) | (last > first + 1)
        )
        return found


def untouched(item: Found, *, places: Mapping[Key, Ints], shift: int) -> Iterator[Found]:
    """
    Yield the spans of all batches of a partition that are in no touched place.

    Args:
        item: folded rows, of batches or others.
        places: of each partition, as numbers of 4,096 offsets; of other partitions nothing is taken.
        shift: of offsets, to the numbers of the buckets of folded rows.
    """
    key, table = item
    rows = Rows(table).of("batches")
    if key in places and len(rows):
        near = np.minimum(rows["bucket"] >> (SHIFT - shift), LAST)
        yield key, _as_spans(rows.where(~np.isin(near, places[key])).table)


def _as_spans(folds: pa.Table) -> pa.Table:
    names = ["count" if name == "n" else name for name in _SPAN]
    return named(folds.select(list(_SPAN)).rename_columns(names), assemble.SPAN)
