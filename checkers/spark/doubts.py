"""Find the offsets of large partitions at which the rules must look, whatever the rest of the history is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from checkers.spark.evidence import LOG, Evidence
from checkers.spark.fold import BUCKET, Folded, bucket_of, fold_claims, fold_records, fold_shown, unlike
from checkers.spark.tables import PART, near, ranges_of

# Up to so many rows in doubt are compared offset by offset at once, and kept in memory meanwhile.
_FEW_ROWS: Final = 2_000_000
# Rows of one offset: those of three logs, of what was acknowledged and of a read.
_ROWS_OF_OFFSET: Final = 5


def doubts_of(evidence: Evidence, most: int) -> DataFrame:
    """
    Return (PART, offset) of all that is in doubt, each once; of one range at most so many offsets, and one more.

    In doubt are the offsets at which not all evidence agrees; those at which something is late (a record below one
    that was acknowledged before it was sent) or odd; those at which logs, epochs and reads begin and end; and one
    produce of each sort.
    """
    spans = _known(evidence).localCheckpoint()
    shift = evidence.coarse
    ends = f"explode(array(shiftright(first, {shift}), shiftright(end - 1, {shift}))) as bucket"
    buckets = _coarse(evidence).union(spans.selectExpr(*PART, ends)).distinct().localCheckpoint()
    found = _exact(evidence, buckets).union(spans).where("end > first")
    offsets = F.expr(f"explode(sequence(first, least(end - 1, first + {most}))) as offset")
    return found.select(*PART, offsets).distinct().localCheckpoint()


def _known(evidence: Evidence) -> DataFrame:
    """Return (PART, first, end) of what is in doubt whether evidence agrees or not."""
    ends = evidence.stretches.groupBy(*PART, "log", "epoch", "magic", "codec").agg(
        F.min("base").alias("low"), F.max("last").alias("high")
    )
    here = "first + 1 as end"
    spans = [
        evidence.spans("doubts"),
        ends.select(*PART, F.explode(F.array("low", "high")).alias("first")).selectExpr(*PART, "first", here),
        evidence.reads.where("first is not null").selectExpr(*PART, "first", here),
        evidence.samples.where("offset >= 0").selectExpr(*PART, "offset as first", "offset + 1 as end"),
        _of_batches(evidence.odd),
    ]
    return reduce(DataFrame.unionByName, spans)


def _of_batches(batches: DataFrame) -> DataFrame:
    return batches.selectExpr(*PART, "base as first", "greatest(base, last) + 1 as end")


def _coarse(evidence: Evidence) -> DataFrame:
    """Return the buckets of the first pass that are in doubt."""
    shift, tables = evidence.coarse, evidence.tables
    logs = fold_records(tables["records"], shift).join(evidence.logs, list(LOG))
    claims = evidence.sorts.where("bucket is not null").select(*BUCKET, "n", "full", "plain", "told")
    claims = claims.unionByName(fold_claims(evidence.landed, shift)).join(evidence.leaders, list(PART))
    batches = evidence.stretches.where("last >= start").groupBy(*BUCKET, "log", "leads")
    marks = batches.agg(F.sum("n").alias("n"), F.bit_xor("full").alias("full"))
    found = unlike(
        Folded(
            shift=shift,
            logs=logs.where(f"bucket >= shiftright(start, {shift})").select(
                *BUCKET, "n", "full", "plain", "leads"
            ),
            claims=claims.where(f"bucket >= shiftright(leader_start, {shift})").drop("leader_start"),
            shown=fold_shown(tables["reads"], shift).join(evidence.keys, list(PART), "left_semi"),
            reads=evidence.reads,
            batches=marks.select(*BUCKET, "n", "full", "leads"),
        )
    )
    return found.union(evidence.sorts.where("late").select(*BUCKET))


def _exact(evidence: Evidence, buckets: DataFrame) -> DataFrame:
    """Return (PART, first, end) of all that is in doubt within these buckets of the first pass."""
    coarse = evidence.coarse
    ranges = ranges_of(buckets, "bucket", 1 << coarse)

    def part(name: str, column: str, *columns: str) -> DataFrame:
        found = _within(near(evidence.tables[name], column, ranges), column, coarse, buckets)
        return found.select(*PART, *columns)

    logs = evidence.logs.drop("part")
    records = part("records", "offset", "log", "offset", "digest", "hash")
    records = records.join(logs, list(LOG)).where("offset >= start")
    answered = part("produces", "offset", "offset", "digest", "hash", "floor", "behind", "outcome")
    answered = answered.where("outcome = 'ok' and offset >= 0").join(evidence.leaders, list(PART))
    late = answered.where("offset < floor or offset < behind")
    claims = answered.where("offset >= leader_start").select(*PART, "offset", "digest", "hash")
    claims = claims.unionByName(_within(evidence.landed, "offset", coarse, buckets))
    shown = part("reads", "offset", "read", "offset", "hash")
    rows = buckets.count() * (_ROWS_OF_OFFSET << coarse)
    few = rows <= _FEW_ROWS
    evidence.tables.expect(rows)
    if few:
        records, claims, shown = (rows.localCheckpoint() for rows in (records, claims, shown))
    passes = [(coarse, 0)] if few else [(coarse, evidence.fine), (evidence.fine, 0)]
    offsets = _passes(evidence, (records, claims, shown), buckets, passes)
    evidence.tables.expect(0)
    batches = part("batches", "base", "log", "base", "last", "epoch", "magic", "crc", "codec")
    return (
        offsets.selectExpr(*PART, "bucket as first", "bucket + 1 as end")
        .union(late.selectExpr(*PART, "offset as first", "greatest(floor, behind) + 1 as end"))
        .union(_of_batches(_unlike_batches(batches.join(logs, list(LOG)).where("last >= start"))))
    )


def _passes(
    evidence: Evidence,
    rows: tuple[DataFrame, DataFrame, DataFrame],
    buckets: DataFrame,
    passes: Sequence[tuple[int, int]],
) -> DataFrame:
    """Compare records, claims and what was shown in smaller and smaller buckets; return those of the last pass."""
    records, claims, shown = rows
    left = buckets
    for before, shift in passes:
        logs = fold_records(_within(records, "offset", before, left), shift).join(evidence.logs, list(LOG))
        found = unlike(
            Folded(
                shift=shift,
                logs=logs.select(*BUCKET, "n", "full", "plain", "leads"),
                claims=fold_claims(_within(claims, "offset", before, left), shift),
                shown=fold_shown(_within(shown, "offset", before, left), shift),
                reads=evidence.reads,
            )
        )
        left = found.localCheckpoint()
    return left


def _within(rows: DataFrame, column: str, shift: int, buckets: DataFrame) -> DataFrame:
    """Return the rows whose offset is in one of the buckets."""
    kept = rows.withColumn("bucket", bucket_of(column, shift))
    return kept.join(F.broadcast(buckets), list(BUCKET), "left_semi").drop("bucket")


def _unlike_batches(batches: DataFrame) -> DataFrame:
    """Return (PART, base, last) of batches that are not the same in every log that has a batch there."""
    code = F.xxhash64("last", "epoch", "magic", "crc", "codec")
    same = (
        batches.withColumn("code", code)
        .groupBy(*PART, "base")
        .agg(
            F.min("code").alias("one"),
            F.max("code").alias("other"),
            F.bool_or("leads").alias("led"),
            F.max("last").alias("last"),
        )
    )
    return same.where("not led or one <> other")
