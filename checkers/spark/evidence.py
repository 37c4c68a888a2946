"""
What is known of large partitions after one look at each table: folded logs and claims, and samples of all sorts.

Each query runs when it is first asked for, and its result is kept: a few rows for each 4,096 offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from checkers.spark.fold import SHIFTS, bucket_of
from checkers.spark.tables import PART, RUN, Tables, near, ranges_of

# What a log is known by: the number of its run, and its place in the manifest of the run.
LOG: Final = (RUN, "log")
# More values than these are not sent to every executor.
_BROADCAST_MAX: Final = 2_000_000
# More logs than these are not told to the reader of Parquet.
_LOGS_MAX: Final = 64
_INT: Final = pa.int64()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    One partition of one run.

    Attributes:
        run: the number of the run.
        part: the partition's place in the run's manifest.
        head: what is known of it (checkers/spark/head.py), as JSON data.
        logs: the place of each log in the manifest, by the index of its snapshot.
    """

    run: int
    part: int
    topic: str
    partition: int
    head: Mapping[str, Any]
    logs: Mapping[int, int]

    @property
    def key(self) -> dict[str, int]:
        """The columns by which rows are grouped."""
        return {"run": self.run, "part": self.part}


class Evidence:
    """
    The tables of some partitions of which most may be left out.

    Attributes:
        tables: the tables of their runs, with other partitions too.
        parts: the partitions.
        coarse: how far offsets are shifted for the first look.
        fine: and for the second.
        keys: (PART) of the partitions.
        logs: (PART, LOG, replica, start, leads) of their final logs.
        leaders: (PART, leader_start) of the logs that are compared with claims and reads.
    """

    def __init__(self, tables: Tables, parts: Sequence[Part], shifts: Sequence[int] = SHIFTS) -> None:
        self.tables = tables
        self.parts = parts
        self.coarse, self.fine, _ = shifts
        self.keys = tables.small([part.key for part in parts])
        logs = [
            {
                **part.key,
                "log": part.logs[index],
                "replica": node,
                "start": start,
                "leads": node == part.head["leader"],
            }
            for part in parts
            for node, index, start, _ in part.head["logs"]
        ]
        fields = (("log", pa.int32()), ("replica", pa.string()), ("start", _INT), ("leads", pa.bool_()))
        self.logs = tables.small(logs, *fields)
        self.leaders = self.logs.where("leads").select(*PART, F.col("start").alias("leader_start"))

    def spans(self, name: str) -> DataFrame:
        """Return (PART, first, end) of the ranges of offsets that the heads have under that name."""
        rows = [{**part.key, "first": first, "end": end} for part in self.parts for first, end in part.head[name]]
        return self.tables.small(rows, ("first", _INT), ("end", _INT))

    @property
    def batches(self) -> DataFrame:
        """The batches of final logs."""
        return self.tables["batches"].join(self.logs.select(*LOG, "start", "leads"), list(LOG))

    @property
    def records(self) -> DataFrame:
        """The records of final logs, also those below their starts."""
        return self.tables["records"].join(self.logs.select(*LOG), list(LOG), "left_semi")

    @cached_property
    def odd(self) -> DataFrame:
        """The batches of final logs that are odd."""
        return self.batches.where("odd").localCheckpoint()

    @cached_property
    def stretches(self) -> DataFrame:
        """The batches of final logs, folded: those of a row follow each other, in one epoch, format and codec."""
        keys = [*LOG, bucket_of("base", self.coarse), "epoch", "magic", "codec", "stretch"]
        folded = (
            self.tables["batches"]
            .groupBy(*keys)
            .agg(
                F.count("*").alias("n"),
                F.bit_xor(F.xxhash64("base", "last", "epoch", "magic", "crc", "codec")).alias("full"),
                F.min("base").alias("base"),
                F.max("last").alias("last"),
                F.min("number").alias("number"),
                F.min("index").alias("index"),
                F.min("time_ns").alias("time_ns"),
            )
        )
        return folded.join(self.logs, list(LOG)).localCheckpoint()

    @cached_property
    def sorts(self) -> DataFrame:
        """The produces, folded by the sort of their outcome; bucket is null for those without an offset."""
        offset = F.expr("if(outcome = 'ok' and offset >= 0, offset, null)")
        keys = [*PART, bucket_of("offset", self.coarse), "acks", "codec", "outcome"]
        folded = (
            self.tables["produces"]
            .withColumn("offset", offset)
            .groupBy(*keys)
            .agg(
                F.count("*").alias("n"),
                F.bit_xor(F.xxhash64("offset", "hash", "digest")).alias("full"),
                F.bit_xor(F.xxhash64("offset", "hash")).alias("plain"),
                F.bool_and(F.col("digest").isNotNull()).alias("told"),
                F.bool_or(F.expr("offset < floor or offset < behind")).alias("late"),
                F.bool_and("rising").alias("rising"),
                F.min("invoked").alias("first"),
                F.max("invoked").alias("last"),
            )
        )
        return folded.join(self.keys, list(PART), "left_semi").localCheckpoint()

    def has_sorts(self, condition: str) -> bool:
        """Return True if there are produces of such a sort."""
        return bool(self.sorts.where(condition).limit(1).count())

    @cached_property
    def samples(self) -> DataFrame:
        """(PART, hash, offset) of the first and the last produce of each sort."""
        ends = self.sorts.groupBy(*PART, "acks", "codec", "outcome").agg(
            F.min("first").alias("first"), F.max("last").alias("last")
        )
        picked = ends.select(*PART, F.explode(F.array("first", "last")).alias("invoked")).distinct()
        picked = picked.localCheckpoint()
        produces = near(self.tables["produces"], "invoked", ranges_of(picked, "invoked"))
        produces = produces.join(F.broadcast(picked), [*PART, "invoked"], "left_semi")
        return produces.select(*PART, "hash", "offset").localCheckpoint()

    @cached_property
    def landed(self) -> DataFrame:
        """
        (PART, offset, digest, hash) of produces without an offset, whose value the leader's log has once.

        A value that it has twice is no claim, so that both places are in doubt.
        """
        counted = self.sorts.where("bucket is null and outcome <> 'fail'").agg(F.sum("n").alias("n")).first()
        count = (counted and counted["n"]) or 0
        if not count:
            return self.tables.small([], ("offset", _INT), ("digest", _INT), ("hash", _INT))
        unanswered = self.tables["produces"].where("outcome <> 'fail' and coalesce(offset, -1) < 0")
        unanswered = unanswered.select(
            "hash", F.col("digest").alias("sent"), *(F.col(name).alias(f"its_{name}") for name in PART)
        )
        if count <= _BROADCAST_MAX:
            unanswered = F.broadcast(unanswered)
        leading = self.logs.where("leads").select(*LOG, "start")
        logs = [(row["run"], row["log"]) for row in leading.toArrow().to_pylist()]
        theirs = " or ".join(f"(run = {run} and log = {log})" for run, log in logs)
        records = self.tables["records"].where(theirs if len(logs) <= _LOGS_MAX else "true")
        # One key is quicker to look up than three; few other partitions have the same value.
        there = records.select(*PART, "log", "offset", "hash").join(unanswered, "hash")
        there = there.where(" and ".join(f"{name} = its_{name}" for name in PART))
        once = (
            there.join(leading, list(LOG))
            .where("offset >= start")
            .groupBy(*PART, "hash")
            .agg(F.count("*").alias("n"), F.first("offset").alias("offset"), F.first("sent").alias("digest"))
        )
        return once.where("n = 1").select(*PART, "offset", "digest", "hash").localCheckpoint()

    @cached_property
    def reads(self) -> DataFrame:
        """(PART, read, first, low, high) of each read: below high it must show what the leader has from low on."""
        heads = [
            {**part.key, "read": index, "high": high} for part in self.parts for index, high in part.head["reads"]
        ]
        reads = self.tables.small(heads, ("read", _INT), ("high", _INT)).where("high > 0")
        first = self.tables["reads"].where("place = 0").select(*PART, "read", F.col("offset").alias("first"))
        found = reads.join(first, [*PART, "read"], "left").join(self.leaders, list(PART))
        low = "if(leader_start > 0, greatest(leader_start, coalesce(first, leader_start)), 0) as low"
        return found.selectExpr(*PART, "read", "first", "high", low).localCheckpoint()
