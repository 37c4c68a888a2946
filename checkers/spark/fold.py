"""
Fold rows into buckets of offsets: how many there are, and the exclusive or of their hashes.

Equal numbers mean equal rows, whatever their order. Buckets are small beside records: a row for each 4,096 offsets
of a log, of what was acknowledged, of a read. So no record is shuffled; checkers/spark/compare.py compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Produces without an answer whose value the leader's log has; they have the columns of `landed_in`.
LANDED: Final = "landed"
WHO: Final = "who"

_PLAIN: Final = "xxhash64(offset, hash) as plain"
_FULL: Final = "xxhash64(plain, digest) as full"
_TOLD: Final = "digest is not null as told"
# Of an answered produce: the offset after the highest that was acknowledged before it was sent, or to its process.
_LATE: Final = "if(offset < greatest(floor, behind), greatest(floor, behind) + 1, null) as late"
# An acknowledgement with acks=0 has no offset, or -1.
_ANSWERED: Final = "if(outcome = 'ok' and offset >= 0, offset, null) as offset"
_SAID: Final = ("hash", "digest", "floor", "behind", "acks", "codec", "outcome", "rising", "invoked")
# What of a batch must be the same in every log.
_BATCH: Final = "xxhash64(base, last, epoch, magic, crc, codec) as full"
_NUMBERS: Final = ("base", "number", "index", "time_ns", "epoch", "magic")

# Each table's steps from its rows to marked rows: (run, part, offset, marks, …).
_MARKED: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "records": (
        ("run", "part", "log", "offset", "hash", "digest", _PLAIN),
        ("run", "part", "log", "offset", "hash", "plain", _FULL),
    ),
    "produces": (
        ("run", "part", _ANSWERED, *_SAID),
        ("*", _PLAIN, _TOLD, _LATE),
        ("*", _FULL),
    ),
    LANDED: (("*", _PLAIN, _TOLD), ("*", _FULL)),
    "batches": (
        ("run", "part", "log", "base as offset", _BATCH, "stretch", "codec", *_NUMBERS, "last", "odd", "before"),
    ),
    "reads": (("run", "part", "read", "offset", "hash", _PLAIN),),
}
_COUNT: Final = ("count(*) as n", "min(part) as part")
_XOR: Final = ("bit_xor(plain) as plain", "bit_xor(full) as full")
# Each table's keys of a bucket, and what is kept of it.
_FOLDED: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "records": (("run", "log", "bucket"), (*_COUNT, *_XOR)),
    "produces": (
        ("run", "part", "bucket", "acks", "codec", "outcome"),
        (
            *("count(*) as n", *_XOR, "bool_and(told) as told", "max(late) as late", "bool_and(rising) as rising"),
            *("min(invoked) as invoked", "max(invoked) as invoked_last"),
        ),
    ),
    LANDED: (("run", "part", "bucket"), ("count(*) as n", *_XOR, "bool_and(told) as told")),
    # A stretch has one epoch, format and codec.
    "batches": (
        ("run", "log", "bucket", "stretch", "codec"),
        (
            *(*_COUNT, "bit_xor(full) as full", *(f"min({name}) as {name}" for name in _NUMBERS)),
            *("max(last) as last", "bool_or(odd) as odd"),
        ),
    ),
    "reads": (
        ("run", "read", "bucket"),
        (*_COUNT, "bit_xor(plain) as plain", "min(offset) as first"),
    ),
}
# What remains of single rows; each table has some of it.
_OF_EACH: Final = (
    *("run", "part", "log", "read", "hash", "plain", "full", "told", "late"),
    *("base", "last", "before", "odd"),
)


def fold(name: str, rows: DataFrame, shift: int) -> DataFrame:
    """
    Return the rows of a table folded into buckets.

    Args:
        name: of the table, or LANDED.
        rows: its rows, or some of them.
        shift: of offsets, to the number of their bucket.
    """
    keys, kept = _FOLDED[name]
    marked = _marked(name, rows).withColumn("bucket", F.expr(f"shiftright(offset, {shift})"))
    return marked.groupBy(*keys).agg(*map(F.expr, kept)).withColumn(WHO, F.lit(name))


def each(name: str, rows: DataFrame) -> DataFrame:
    """Return the rows of a table as if each were folded alone, with what the last look needs beside it."""
    marked = _marked(name, rows)
    kept = [column for column in marked.columns if column in _OF_EACH]
    return marked.selectExpr(*kept, "offset as bucket", "1L as n", f"'{name}' as {WHO}")


def _marked(name: str, rows: DataFrame) -> DataFrame:
    for columns in _MARKED[name]:
        rows = rows.selectExpr(*columns)
    return rows
