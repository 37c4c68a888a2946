"""The first look of Spark's check (checkers/spark/fold.py, checkers/spark/landed.py), as DuckDB does it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

_QUERIES: Final = (
    """
    select log, "offset" >> 12, min(part), count(*), bit_xor(hash("offset", hash)),
        bit_xor(hash("offset", hash, digest))
    from '{tables}/records.parquet' group by 1, 2
    """,
    """
    select part, told >> 12, acks, codec, outcome, count(*), bit_xor(hash(told, hash)),
        bit_xor(hash(told, hash, digest)), bool_and(digest is not null), bool_and(rising),
        min(invoked), max(invoked),
        max(case when told < greatest(floor, behind) then greatest(floor, behind) + 1 end)
    from (select *, case when outcome = 'ok' and "offset" >= 0 then "offset" end as told
        from '{tables}/produces.parquet')
    group by 1, 2, 3, 4, 5
    """,
    """
    select log, base >> 12, stretch, codec, min(part), count(*), bool_or(odd), max(last),
        bit_xor(hash(base, last, epoch, magic, crc, codec)),
        min(base), min(number), min("index"), min(time_ns), min(epoch), min(magic)
    from '{tables}/batches.parquet' group by 1, 2, 3, 4
    """,
    """
    select "read", "offset" >> 12, min(part), count(*), bit_xor(hash("offset", hash)), min("offset")
    from '{tables}/reads.parquet' group by 1, 2
    """,
    # Of a made history, the first of the three logs of a partition is the leader's.
    """
    select part, hash, min("offset"), min(sent), count(*)
    from '{tables}/records.parquet' join
        (select part, hash, digest as sent from '{tables}/produces.parquet'
        where outcome <> 'fail' and coalesce("offset", -1) < 0) using (part, hash)
    where log % 3 = 0 group by 1, 2
    """,
)


def seconds(tables: Path) -> float:
    """Fold all tables of a made history with two threads, and return the seconds that it takes."""
    import duckdb

    began = time.monotonic()
    with duckdb.connect(config={"threads": 2}) as connection:
        for query in _QUERIES:
            connection.execute(query.format(tables=tables)).fetchall()
    return time.monotonic() - began
