"""
The search for lost and diverged records (checkers/spark/search.py), as DuckDB does it: fold, compare, look again.

It does not apply the rules, nor does it compare reads and batches; these are folded, as all tables are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Of a made history, the first of the three logs of a partition is the leader's.
_FOLDS: Final = (
    """
    create temp table logs as select part, log, "offset" >> 12 as bucket, count(*) as n,
        bit_xor(hash("offset", hash)) as plain, bit_xor(hash("offset", hash, digest)) as whole
    from '{tables}/records.parquet' group by 1, 2, 3
    """,
    """
    create temp table claims as select part, told >> 12 as bucket, acks, codec, outcome, count(*) as n,
        bit_xor(hash(told, hash)) as plain, bit_xor(hash(told, hash, digest)) as whole,
        bool_and(digest is not null) as is_said, bool_and(rising) as is_rising, min(invoked), max(invoked),
        max(case when told < greatest(floor, behind) then greatest(floor, behind) + 1 end) as late
    from (select *, case when outcome = 'ok' and "offset" >= 0 then "offset" end as told
        from '{tables}/produces.parquet')
    group by 1, 2, 3, 4, 5
    """,
    """
    create temp table stretches as select log, base >> 12 as bucket, stretch, codec, min(part), count(*),
        bool_or(odd), max(last), bit_xor(hash(base, last, epoch, magic, crc, codec)),
        min(base), min(number), min("index"), min(time_ns), min(epoch), min(magic)
    from '{tables}/batches.parquet' group by 1, 2, 3, 4
    """,
    """
    create temp table shown as select "read", "offset" >> 12 as bucket, min(part), count(*),
        bit_xor(hash("offset", hash)), min("offset")
    from '{tables}/reads.parquet' group by 1, 2
    """,
    """
    create temp table landed as select part, stands as "offset", hash, sent as digest from (
        select part, hash, min("offset") as stands, min(sent) as sent, count(*) as n
        from '{tables}/records.parquet' join
            (select part, hash, digest as sent from '{tables}/produces.parquet'
            where outcome <> 'fail' and coalesce("offset", -1) < 0) using (part, hash)
        where log % 3 = 0 group by 1, 2) where n = 1
    """,
)
_DIRTY: Final = """
    create temp table dirty as
    with led as (select * from logs where log % 3 = 0),
    all_claims as (
        select part, bucket, n, whole from claims where bucket is not null
        union all select part, "offset" >> 12, 1, hash("offset", hash, digest) from landed),
    claimed as (select part, bucket, sum(n) as n, bit_xor(whole) as whole from all_claims group by 1, 2)
    select distinct part, bucket from (
        select logs.part, logs.bucket from logs left join led using (part, bucket)
        where led.n is null or logs.n <> led.n or logs.whole <> led.whole
        union all
        select part, bucket from claimed full join led using (part, bucket)
        where claimed.n is null or led.n is null or claimed.n <> led.n or claimed.whole <> led.whole)
"""
_DIVERGED: Final = """
    select part, "offset" from '{tables}/records.parquet'
    where ("offset" >> 12) in (select bucket from dirty)
        and (part, "offset" >> 12) in (select (part, bucket) from dirty)
    group by 1, 2 having count(distinct digest) > 1
"""
_LOST: Final = """
    select part, "offset" from '{tables}/produces.parquet' as sent
    where outcome = 'ok' and ("offset" >> 12) in (select bucket from dirty)
        and (part, "offset" >> 12) in (select (part, bucket) from dirty)
        and not exists (select 1 from '{tables}/records.parquet' as there
            where there.part = sent.part and there.hash = sent.hash and there."offset" = sent."offset"
            and ("offset" >> 12) in (select bucket from dirty))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """
    What DuckDB took, in seconds, and what it found.

    Attributes:
        fold_s: the folds alone.
        all_s: the whole search.
        lost: (part, offset) of acknowledged records that no log has there.
        diverged: (part, offset) at which logs have other records.
    """

    fold_s: float
    all_s: float
    lost: frozenset[tuple[int, int]]
    diverged: frozenset[tuple[int, int]]


def searched(tables: Path) -> Searched:
    """Search all tables of a made history with two threads."""
    import duckdb

    began = time.monotonic()
    with duckdb.connect(config={"threads": 2}) as connection:
        for query in _FOLDS:
            connection.execute(query.format(tables=tables))
        folded = time.monotonic()
        connection.execute(_DIRTY)
        lost, diverged = (
            frozenset(connection.execute(query.format(tables=tables)).fetchall()) for query in (_LOST, _DIVERGED)
        )
        ended = time.monotonic()
    return Searched(fold_s=folded - began, all_s=ended - began, lost=lost, diverged=diverged)
