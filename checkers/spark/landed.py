"""
Find where the values of produces without an answer stand in the leader's log.

The values are sent to every executor, a share of them at a time if they are many, and each looks for them in the
records that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from checkers.spark.claims import Share, Standing, Unanswered, once, values_of
from checkers.spark.head import Part
from checkers.spark.reading import Key, Scan, each_key
from checkers.spark.scan import Parts, Tables

# Values that are sent to every executor at once.
_TOGETHER: Final = 2_000_000


def landed(tables: Tables, parts: Sequence[Part], unanswered: Mapping[Key, int]) -> Parts:
    """
    Return (offset, hash, digest) of unanswered produces whose value the leader's log has once, gathered.

    A value that was sent twice without an answer, or that the log has twice, is no claim, so that all its places
    are in doubt.

    Args:
        tables: of the runs.
        parts: the partitions to look at.
        unanswered: how many produces of each partition have no offset and may be in the log.
    """
    some = [part for part in parts if unanswered.get(part.key)]
    shares = -(-sum(unanswered[part.key] for part in some) // _TOGETHER)
    found = [tables.keep(_share(tables, some, Share(number, shares))) for number in range(shares)]
    return tables.gather(*(found or [tables.of([])]))


def _share(tables: Tables, parts: Sequence[Part], share: Share) -> Parts:
    runs = {part.run for part in parts}
    columns = ("part", "outcome", "offset", "hash", "digest")
    sent = tables.scan(
        Scan.all("produces", Unanswered(frozenset(part.key for part in parts), share), runs, columns)
    )
    begins: dict[int, dict[int, tuple[int, int]]] = {}
    for part in parts:
        begins.setdefault(part.run, {})[part.leads] = part.part, part.starts[part.leads]
    look = Standing(dict(each_key(values_of, sent.collect())), begins)
    leading = {run: frozenset(logs) for run, logs in begins.items()}
    records = Scan(table="records", columns=("log", "offset", "hash"), work=look, runs=leading, by="log")
    return tables.gather(tables.scan(records)).mapPartitions(partial(each_key, once), preservesPartitioning=True)
