"""
Select the rows by which the rules judge partitions of large runs: all of a partition, or what is in doubt of it.

With what is in doubt (checkers/spark/doubts.py) go all produces of the values there, wherever they were
acknowledged, and the records at those offsets. Everything else is left out; of the batches there remain spans
(checkers/facts/abridged.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from checkers.spark import assemble
from checkers.spark.doubts import doubts_of
from checkers.spark.evidence import LOG, Evidence, Part
from checkers.spark.fold import SHIFTS, bucket_of
from checkers.spark.tables import PART, RUN, Tables, near, ranges_of

# Offsets of one partition that are looked at; beyond, the partition is unknown at best.
DOUBTS_MAX: Final = 200_000
_AT: Final = (*PART, "offset")
_VALUE: Final = (*PART, "hash")


def pieces(tables: Tables, parts: Sequence[Part], shifts: Sequence[int] = SHIFTS) -> DataFrame:
    """
    Return all rows by which the partitions are judged, each with its `piece` (checkers/spark/assemble.py).

    Args:
        tables: the tables of the runs.
        parts: every partition of the runs.
        shifts: see checkers/spark/fold.py; in tests, buckets have fewer offsets.
    """
    keys = tables.small([part.key for part in parts])
    found = [_piece(events_by_part(tables["events"], keys), assemble.EVENT)]
    whole = [part.key for part in parts if part.head["why"]]
    abridged = [part for part in parts if not part.head["why"]]
    if whole:
        found += _all_of(tables, whole)
    if abridged:
        found += _in_doubt(Evidence(tables, abridged, shifts))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), found)


def events_by_part(events: DataFrame, keys: DataFrame) -> DataFrame:
    """Return events once for each partition that they are about; those about none for all of their run."""
    chosen = keys.select(RUN, F.col("part").alias("its_part"))
    found = events.join(chosen, RUN).where("part is null or part = its_part")
    return found.drop("part").withColumnRenamed("its_part", "part")


def _piece(rows: DataFrame, name: str) -> DataFrame:
    return rows.withColumn("piece", F.lit(name))


def _all_of(tables: Tables, keys: Sequence[Mapping[str, Any]]) -> list[DataFrame]:
    chosen = tables.small(keys)

    def of(name: str, piece: str) -> DataFrame:
        return _piece(tables[name].join(chosen, list(PART), "left_semi"), piece)

    return [
        of("produces", assemble.PRODUCE),
        _as_batches(of("batches", assemble.BATCH)),
        of("records", assemble.RECORD),
        of("reads", assemble.READ),
    ]


def _in_doubt(evidence: Evidence) -> list[DataFrame]:
    """Return the rows of partitions of which most is left out."""
    tables = evidence.tables
    doubts = doubts_of(evidence, DOUBTS_MAX)
    many = doubts.groupBy(*PART).agg(F.count("*").alias("count")).where(f"count > {DOUBTS_MAX}")
    if many.count():
        window = Window.partitionBy(*PART).orderBy("offset")
        lowest = doubts.withColumn("place", F.row_number().over(window)).where(f"place <= {DOUBTS_MAX}")
        doubts = lowest.drop("place").localCheckpoint()
    hashes = _values(evidence, doubts).localCheckpoint()
    # One key is quicker to look up than three; few other partitions have the same value.
    sent = tables["produces"].join(F.broadcast(hashes.select("hash").distinct()), "hash", "left_semi")
    sent = sent.join(F.broadcast(hashes), list(_VALUE), "left_semi").localCheckpoint()
    landed = evidence.landed.join(hashes, list(_VALUE), "left_semi").select(*_AT)
    offsets = doubts.union(sent.where("offset >= 0").select(*_AT)).union(landed).distinct().localCheckpoint()
    ranges = ranges_of(offsets, "offset")

    def at(rows: DataFrame) -> DataFrame:
        return near(rows, "offset", ranges).join(F.broadcast(offsets), list(_AT), "left_semi")

    # A record may stand twice in an odd batch, and then counts twice.
    odd = F.broadcast(evidence.odd.select(RUN, F.col("index").alias("batch")))
    others = at(evidence.records).join(odd, [RUN, "batch"], "left_anti")
    of_odd = near(evidence.records, "batch", ranges_of(evidence.odd, "index")).join(
        odd, [RUN, "batch"], "left_semi"
    )
    held = others.unionByName(of_odd).localCheckpoint()
    counted = evidence.sorts.groupBy(*PART).agg(F.sum("n").alias("count"))
    return [
        _piece(sent, assemble.PRODUCE),
        _piece(counted, assemble.SENDS),
        _piece(held, assemble.RECORD),
        _piece(at(tables["reads"]), assemble.READ),
        _piece(many, assemble.DOUBTS),
        *_batches(evidence, held),
    ]


def _values(evidence: Evidence, doubts: DataFrame) -> DataFrame:
    """Return (PART, hash) of the values at these offsets, of one of each sort, and of some that stand nowhere."""
    tables, ranges = evidence.tables, ranges_of(doubts, "offset")
    found = [
        near(rows, "offset", ranges).join(F.broadcast(doubts), list(_AT), "left_semi").select(*_VALUE)
        for rows in (evidence.records, tables["produces"], tables["reads"])
    ]
    found.append(evidence.samples.select(*_VALUE))
    mine = tables["produces"].join(evidence.keys, list(PART), "left_semi")
    if evidence.has_sorts("bucket is null and outcome = 'ok'"):
        # Acknowledged without an offset, and not in the leader's log.
        told = mine.where("outcome = 'ok' and coalesce(offset, -1) < 0").select(*_VALUE)
        found.append(told.join(evidence.landed, list(_VALUE), "left_anti"))
    if evidence.has_sorts("not rising"):
        again = mine.groupBy(*_VALUE).agg(F.count("*").alias("n")).where("n > 1")
        found.append(again.select(*_VALUE))
    return reduce(DataFrame.union, found).distinct()


def _batches(evidence: Evidence, held: DataFrame) -> list[DataFrame]:
    """Return the batches of the chosen records with those around them, and spans of all others."""
    batches = evidence.batches.withColumn("fine", bucket_of("base", evidence.fine))
    batches = batches.withColumn("bucket", bucket_of("base", evidence.coarse))
    index = held.select(*PART, F.col("batch").alias("index")).distinct().localCheckpoint()
    # An odd batch may have no record; what is odd may be the step from the batch before.
    around = evidence.odd.selectExpr(*PART, "log", "explode(array(number - 1, number)) as number").distinct()
    around = around.localCheckpoint()
    names = [*PART, "log", "bucket", "fine"]
    wanted = near(batches, "index", ranges_of(index, "index")).join(
        F.broadcast(index), [*PART, "index"], "left_semi"
    )
    stepped = near(batches, "number", ranges_of(around, "number"))
    stepped = stepped.join(F.broadcast(around), [*PART, "log", "number"], "left_semi")
    fine = wanted.select(*names).union(stepped.select(*names)).distinct().localCheckpoint()
    coarse = F.broadcast(fine.select(*LOG, "bucket").distinct())
    touched = near(batches, "base", ranges_of(fine, "bucket", 1 << evidence.coarse))
    touched = touched.join(coarse, [*LOG, "bucket"], "left_semi")
    chosen = touched.join(F.broadcast(fine), [*LOG, "fine"], "left_semi")
    others = touched.join(F.broadcast(fine), [*LOG, "fine"], "left_anti")
    spans = others.groupBy(*PART, "log", "replica", "stretch", "epoch", "magic", "codec", "fine").agg(
        F.count("*").alias("count"),
        *(F.min(name).alias(name) for name in ("number", "base", "index", "time_ns")),
        F.max("last").alias("last"),
    )
    untouched = evidence.stretches.join(coarse, [*LOG, "bucket"], "left_anti").withColumnRenamed("n", "count")
    columns = [*PART, "log", "number", "count", "base", "last", "epoch", "magic", "codec", "index", "time_ns"]
    return [
        _as_batches(_piece(chosen, assemble.BATCH)),
        *(
            _piece(each.select(F.col("replica").alias("process"), *columns), assemble.SPAN)
            for each in (spans, untouched)
        ),
    ]


def _as_batches(batches: DataFrame) -> DataFrame:
    names = ["index", "time_ns", "base", "last", "epoch", "magic", "crc", "codec", "position", "segment"]
    names += ["log", "number", "control", "problem", "odd", "piece"]
    return batches.select(*PART, F.col("replica").alias("process"), *names).withColumn(
        "count", F.lit(1).cast("long")
    )
