"""
What executors do to find the values that a partition has twice, or that its log lacks, whatever their number.

Values are dealt out by their hashes, so that equal ones meet. This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from checkers.spark.claims import is_unanswered
from checkers.spark.reading import Found, Key, Packed, opened
from checkers.spark.rows import NONE, Bools, Ints, Rows, together

# What hashes are of: acknowledged without an offset, claimed of the leader's log, sent.
TOLD: Final = "told"
CLAIMED: Final = "claimed"
SENT: Final = "sent"

# A partition and a share of its values.
Share: TypeAlias = tuple[Key, int]
Dealt: TypeAlias = tuple[Share, tuple[str, Ints]]


def is_told(rows: Rows) -> Bools:
    """Return True for each produce that was acknowledged without an offset."""
    return is_unanswered(rows) & rows.equal("outcome", "ok")


@dataclass(frozen=True, slots=True)
class Hashes:
    """Take the hashes of produces of some partitions."""

    keys: frozenset[Key]
    what: str
    which: Callable[[Rows], Bools] | None = None

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        """Yield the hashes of each of these partitions, in a column that says what they are."""
        for table in tables:
            rows = Rows(table)
            if self.which is not None:
                rows = rows.where(self.which(rows))
            hashes = rows["hash"]
            for part, places in rows.groups("part"):
                if (run, part) in self.keys:
                    yield (run, part), pa.table({self.what: hashes[places]})


def as_claimed(item: Found, *, keys: frozenset[Key]) -> Iterator[Found]:
    """Yield the hashes of a partition's claims (checkers/spark/landed.py), if it is one of these."""
    key, claims = item
    if key in keys:
        yield key, claims.select(["hash"]).rename_columns([CLAIMED])


def deal(items: Iterable[Packed], *, shares: int) -> Iterator[Dealt]:
    """Yield the shares of each partition's hashes; the one column says what they are."""
    for key, table in opened(items):
        (what,) = table.column_names
        hashes = Rows(table)[what]
        number = hashes % shares
        for share in np.unique(number).tolist():
            yield (key, share), (what, hashes[number == share])


def doubted(item: tuple[Share, Iterable[tuple[str, Ints]]], *, most: int) -> tuple[Key, Ints]:
    """Return the hashes of one share that the log lacks, or that were sent more than once, at most so many."""
    (key, _), dealt = item
    by_what: dict[str, list[Ints]] = {TOLD: [NONE], CLAIMED: [NONE], SENT: [NONE]}
    for what, hashes in dealt:
        by_what[what].append(hashes)
    missing = np.setdiff1d(np.concatenate(by_what[TOLD]), np.concatenate(by_what[CLAIMED]))
    values, count = np.unique(np.concatenate(by_what[SENT]), return_counts=True)
    return key, together([missing, values[count > 1]])[:most]
