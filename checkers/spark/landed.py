"""Find where the values of produces without an answer stand in the leader's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from checkers.spark.head import Part
from checkers.spark.tables import PART, RUN, Tables

# More values than these are not sent to every executor.
_BROADCAST_MAX: Final = 2_000_000
FIELDS: Final = (("offset", pa.int64()), ("place", pa.int64()), ("digest", pa.int64()), ("hash", pa.int64()))
UNANSWERED: Final = "outcome <> 'fail' and coalesce(offset, -1) < 0"


def landed(tables: Tables, parts: Sequence[Part], unanswered: Mapping[tuple[int, int], int]) -> DataFrame:
    """
    Return (PART, offset, place, digest, hash) of unanswered produces whose value the leader's log has once.

    A value that it has twice is no claim, so that both places are in doubt.

    Args:
        tables: of the runs.
        parts: the partitions to look at.
        unanswered: how many produces of each partition have no offset and may be in the log.
    """
    some = [part for part in parts if unanswered.get(part.key)]
    if not some:
        return tables.small([], *FIELDS)
    runs = {part.run for part in some}
    sent = tables.all("produces", runs).where(UNANSWERED)
    sent = sent.select("hash", F.col("digest").alias("sent"), *(F.col(name).alias(f"its_{name}") for name in PART))
    if sum(unanswered.values()) <= _BROADCAST_MAX:
        sent = F.broadcast(sent)
    leading = {run: {part.leads for part in some if part.run == run} for run in runs}
    records = tables.among("records", {"log": leading}).select(*PART, "log", "offset", "place", "hash")
    # One key is quicker to look up than three; few other partitions have the same value.
    there = records.join(sent, "hash").where(" and ".join(f"{name} = its_{name}" for name in PART))
    begins = tables.small(
        [{RUN: part.run, "part": part.part, "log": part.leads, "start": part.starts[part.leads]} for part in some],
        ("log", pa.int32()),
        ("start", pa.int64()),
    )
    once = (
        there.join(begins, [*PART, "log"])
        .where("offset >= start")
        .groupBy(*PART, "hash")
        .agg(
            *(F.min(name).alias(name) for name in ("offset", "place")), F.min("sent").alias("digest"), F.count("*")
        )
    )
    return once.where("`count(1)` = 1").select(*PART, *(name for name, _ in FIELDS)).localCheckpoint()
