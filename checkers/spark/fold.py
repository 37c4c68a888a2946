"""
Find where not all evidence agrees, without shuffling records: fold, compare, and look again where it differs.

Rows are folded into buckets of offsets: how many there are, and the exclusive or of their hashes. A bucket is *in
doubt* if two logs differ in it, if the leader's log differs from what was acknowledged, or if a read showed other
records than the leader's log has. The first pass has buckets of 4,096 offsets, the last one of single offsets, so
that it is exact. Each pass looks only at the buckets that the pass before it left in doubt.

An offset that no pass finds is one at which all replicas hold the same record, which was sent once and
acknowledged there (or not answered, and stands nowhere else), and which every read showed. More may be found than
the rules will find, never less: tests/checkers/spark/test_large.py compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from checkers.spark.tables import PART

# How far offsets are shifted in each pass.
SHIFTS: Final = (12, 6, 0)
BUCKET: Final = (*PART, "bucket")
# The roles of rows that are compared.
_LEADER: Final = "leader"
_LOG: Final = "log"
_CLAIM: Final = "claim"
_READ: Final = "read"
_LEADERS_BATCHES: Final = "leader_batches"
_BATCHES: Final = "batches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """
    What is compared in buckets of one size.

    Attributes:
        shift: how far their offsets are shifted.
        logs: what `fold_records` returns, with PART and `leads`.
        claims: what `fold_claims` returns.
        shown: what `fold_shown` returns.
        reads: (PART, low, high) of each read: below high it must show what the leader's log has from low on.
        batches: (BUCKET, leads, n, full) of each log's batches, by their first offset; None if not compared.
    """

    shift: int
    logs: DataFrame
    claims: DataFrame
    shown: DataFrame
    reads: DataFrame
    batches: DataFrame | None = None


def mark(*columns: str) -> Column:
    """Return the exclusive or of the hashes of rows: equal for equal rows, whatever their order."""
    return F.bit_xor(F.xxhash64(*columns))


def bucket_of(column: str, shift: int) -> Column:
    """Return the number of an offset's bucket."""
    return F.expr(f"shiftright({column}, {shift})").alias("bucket")


def fold_records(records: DataFrame, shift: int) -> DataFrame:
    """Return (run, log, bucket, n, full, plain) of final logs; plain is without the digest."""
    return records.groupBy("run", "log", bucket_of("offset", shift)).agg(
        F.count("*").alias("n"),
        mark("offset", "hash", "digest").alias("full"),
        mark("offset", "hash").alias("plain"),
    )


def fold_claims(claims: DataFrame, shift: int) -> DataFrame:
    """Return (BUCKET, n, full, plain, told) of what was acknowledged; told is true if all digests are known."""
    return claims.groupBy(*PART, bucket_of("offset", shift)).agg(
        F.count("*").alias("n"),
        mark("offset", "hash", "digest").alias("full"),
        mark("offset", "hash").alias("plain"),
        F.bool_and(F.col("digest").isNotNull()).alias("told"),
    )


def fold_shown(shown: DataFrame, shift: int) -> DataFrame:
    """Return (BUCKET, read, n, plain) of what each read showed."""
    return shown.groupBy(*PART, "read", bucket_of("offset", shift)).agg(
        F.count("*").alias("n"), mark("offset", "hash").alias("plain")
    )


def unlike(folded: Folded) -> DataFrame:
    """Return the buckets in doubt, each once, as BUCKET."""
    shift, with_batches = folded.shift, folded.batches is not None
    compared = _rows(folded).groupBy(*BUCKET)
    found = compared.agg(
        *_total(_LEADER, "n", "full", "plain"),
        *_total(_CLAIM, "n", "full", "plain"),
        F.expr(f"bool_and(told) filter (where who = '{_CLAIM}')").alias("told"),
        *_range(_LOG, "n", "full"),
        *_range(_READ, "n", "plain"),
        F.expr(f"count(*) filter (where who = '{_READ}')").alias("reads"),
        *(_total(_LEADERS_BATCHES, "n", "full") if with_batches else ()),
        *(_range(_BATCHES, "n", "full") if with_batches else ()),
    )
    last = F.expr(f"shiftright(high - 1, {shift})").alias("last")
    spans = folded.reads.select(*PART, F.struct(bucket_of("low", shift).alias("first"), last).alias("span"))
    wanted = "if(spans is null, 0, size(filter(spans, span -> bucket between span.first and span.last)))"
    doubts = [
        _differ(_LOG, _LEADER, "n", "full"),
        "(leader_n is null) <> (claim_n is null) or leader_n <> claim_n",
        # Where clients did not say what they sent, only values are compared.
        "if(told, leader_full <> claim_full, leader_plain <> claim_plain)",
        _differ(_READ, _LEADER, "n", "plain"),
        f"leader_n is not null and reads <> {wanted}",
        *([_differ(_BATCHES, _LEADERS_BATCHES, "n", "full")] if with_batches else []),
    ]
    of_reads = F.broadcast(spans.groupBy(*PART).agg(F.collect_list("span").alias("spans")))
    in_doubt = " or ".join(f"coalesce({doubt}, false)" for doubt in doubts)
    return found.join(of_reads, list(PART), "left").where(in_doubt).select(*BUCKET)


def _rows(folded: Folded) -> DataFrame:
    """Return all folded rows, each with its role."""

    def role(leader: str, other: str) -> Column:
        return F.when(F.col("leads"), leader).otherwise(other)

    rows = [
        folded.logs.withColumn("who", role(_LEADER, _LOG)),
        folded.claims.withColumn("who", F.lit(_CLAIM)),
        folded.shown.withColumn("who", F.lit(_READ)),
    ]
    if folded.batches is not None:
        rows.append(folded.batches.withColumn("who", role(_LEADERS_BATCHES, _BATCHES)))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows)


def _total(who: str, *columns: str) -> list[Column]:
    """Return the columns of all rows that have this role, as if they were one row."""
    how = {"n": "sum"}
    return [
        F.expr(f"{how.get(column, 'bit_xor')}({column}) filter (where who = '{who}')").alias(f"{who}_{column}")
        for column in columns
    ]


def _range(who: str, *columns: str) -> list[Column]:
    """Return the lowest and the highest of the columns of all rows that have this role."""
    return [
        F.expr(f"{edge}({column}) filter (where who = '{who}')").alias(f"{who}_{edge}_{column}")
        for column in columns
        for edge in ("min", "max")
    ]


def _differ(who: str, other: str, *columns: str) -> str:
    """Return the condition that any of the first differs from the second, or that there is no second."""
    each = [f"{who}_{edge}_{column} <> {other}_{column}" for column in columns for edge in ("min", "max")]
    return f"{who}_min_n is not null and ({other}_n is null or " + " or ".join(each) + ")"
