"""
Find the values that are in doubt wherever they stand: sent more than once, or acknowledged without an offset and
not in the leader's log.

No executor has all values of a partition: they are dealt out by their hashes, so that equal ones meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from checkers.spark.dealt import SENT, TOLD, Hashes, as_claimed, deal, doubted, is_told
from checkers.spark.reading import Key, Scan, each_table
from checkers.spark.rows import Ints, together
from checkers.spark.scan import Parts, Tables
from checkers.spark.sums import Sums

# Values that one executor compares.
_TOGETHER: Final = 1_000_000


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
        for work in (Hashes(told, TOLD, is_told), Hashes(again, SENT))
        if work.keys
    ]
    dealt = tables.scan(*scans).mapPartitions(partial(deal, shares=shares))
    claimed = claims.mapPartitions(partial(each_table, partial(as_claimed, keys=told)))
    claimed = claimed.mapPartitions(partial(deal, shares=shares))
    # Hashes are spread evenly, so that a share with more than twice its part says that there are too many.
    each = 2 * most // shares + 1_000
    found: dict[Key, list[Ints]] = {}
    shared = dealt.union(claimed).groupByKey(tables.tasks)
    for key, hashes in shared.map(partial(doubted, most=each)).collect():
        found.setdefault(key, []).append(hashes)
    return {key: together(of) for key, of in found.items() if any(map(len, of))}
