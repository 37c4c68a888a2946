"""
Find the values that are in doubt wherever they stand: sent more than once, or acknowledged without an offset and
not in the leader's log.

No executor has all values of a partition: they are dealt out by their hashes, so that equal ones meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from checkers.spark.landed import is_unanswered
from checkers.spark.reading import Key, Scan
from checkers.spark.rows import NONE, Bools, Ints, Rows, together
from checkers.spark.scan import Parts, Tables
from checkers.spark.sums import Sums

# Values that one executor compares.
_TOGETHER: Final = 1_000_000
_TOLD, _CLAIMED, _SENT = "told", "claimed", "sent"

# A partition and a share of its values.
_Share: TypeAlias = tuple[Key, int]
_Dealt: TypeAlias = tuple[_Share, tuple[str, Ints]]


def in_doubt_anywhere(
    tables: Tables, sums: Mapping[Key, Sums], keys: Sequence[Key], claims: Parts, most: int
) -> dict[Key, Ints]:
    """
    Return the hashes of such values of each partition that has some; of more than `most`, at least so many.

    Args:
        tables: of the runs.
        sums: of each partition.
        keys: the partitions to look at.
        claims: see checkers/spark/landed.py.
        most: how many values of a partition are wanted.
    """
    told = frozenset(key for key in keys if key in sums and sums[key].told)
    again = frozenset(key for key in keys if key in sums and sums[key].again)
    if not told and not again:
        return {}
    sent = sum(sums[key].sends for key in told | again)
    shares = -(-sent // _TOGETHER)
    scans = [
        Scan.all("produces", work, {run for run, _ in work.keys}, ("part", "outcome", "offset", "hash"))
        for work in (_Hashes(told, _TOLD, is_told), _Hashes(again, _SENT))
        if work.keys
    ]
    dealt = tables.scan(*scans).flatMap(partial(_deal, shares=shares))
    claimed = claims.filter(lambda item: item[0] in told).map(_as_claimed).flatMap(partial(_deal, shares=shares))
    # Hashes are spread evenly, so that a share with more than twice its part says that there are too many.
    each = 2 * most // shares + 1_000
    found: dict[Key, list[Ints]] = {}
    for key, hashes in (
        tables.union(dealt, claimed).groupByKey(tables.tasks).map(partial(_doubted, most=each)).collect()
    ):
        found.setdefault(key, []).append(hashes)
    return {key: together(of) for key, of in found.items() if any(map(len, of))}


def is_told(rows: Rows) -> Bools:
    """Return True for each produce that was acknowledged without an offset."""
    return is_unanswered(rows) & rows.equal("outcome", "ok")


@dataclass(frozen=True, slots=True)
class _Hashes:
    """Take the hashes of produces of some partitions."""

    keys: frozenset[Key]
    what: str
    which: Callable[[Rows], Bools] | None = None

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        for table in tables:
            rows = Rows(table)
            if self.which is not None:
                rows = rows.where(self.which(rows))
            for part in rows.values("part"):
                if (run, part) in self.keys:
                    hashes = rows["hash"][rows["part"] == part]
                    yield (run, part), pa.table({self.what: hashes})


def _as_claimed(item: tuple[Key, pa.Table]) -> tuple[Key, pa.Table]:
    key, claims = item
    return key, claims.select(["hash"]).rename_columns([_CLAIMED])


def _deal(item: tuple[Key, pa.Table], *, shares: int) -> Iterator[_Dealt]:
    """Yield the shares of a partition's hashes; the one column says what they are."""
    key, table = item
    (what,) = table.column_names
    hashes = Rows(table)[what]
    number = hashes % shares
    for share in np.unique(number).tolist():
        yield (key, share), (what, hashes[number == share])


def _doubted(item: tuple[_Share, Iterable[tuple[str, Ints]]], *, most: int) -> tuple[Key, Ints]:
    (key, _), dealt = item
    by_what: dict[str, list[Ints]] = {_TOLD: [NONE], _CLAIMED: [NONE], _SENT: [NONE]}
    for what, hashes in dealt:
        by_what[what].append(hashes)
    missing = np.setdiff1d(np.concatenate(by_what[_TOLD]), np.concatenate(by_what[_CLAIMED]))
    values, count = np.unique(np.concatenate(by_what[_SENT]), return_counts=True)
    return key, together([missing, values[count > 1]])[:most]
