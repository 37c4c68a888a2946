"""
Select the rows by which the rules judge partitions of large runs: all of a partition, or what is in doubt of it.

With what is in doubt (checkers/spark/search.py) go all produces of the values there, wherever they were
acknowledged, and the records at those offsets. Everything else is left out; of the batches there remain spans
(checkers/facts/abridged.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from checkers.spark import assemble
from checkers.spark.assemble import Context
from checkers.spark.doubts import numbers_in
from checkers.spark.fold import fold
from checkers.spark.head import Part
from checkers.spark.landed import UNANSWERED, landed
from checkers.spark.search import TABLES, Doubts, Key, Limits, search
from checkers.spark.tables import PART, RUN, Tables, union
from harness.tables.places import LAST, SHIFT, place_of
from harness.tables.schema import Manifest

_AT: Final = (*PART, "offset")
_VALUE: Final = (*PART, "hash")
_INT: Final = pa.int64()
# How far offsets are shifted to say which batches are chosen, and into which spans others are folded.
_FINE: Final = 6
_BATCH: Final = ("index", "time_ns", "base", "last", "epoch", "magic", "crc", "codec", "position", "segment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """
    How many produces a partition has.

    Attributes:
        sends: all.
        unanswered: without an offset, and not refused.
        told: acknowledged without an offset.
        unsaid: of which the client did not say what it sent.
        again: in buckets of which one value was perhaps sent before.
    """

    sends: int
    unanswered: int
    told: int
    unsaid: int
    again: int


def pieces(
    tables: Tables, parts: Sequence[Part], rows: DataFrame, manifests: Sequence[Manifest], limits: Limits
) -> tuple[DataFrame, dict[Key, Context]]:
    """
    Return all rows by which the partitions are judged, each with its `piece` (checkers/spark/assemble.py).

    Args:
        tables: the tables of the runs.
        parts: every partition of the runs.
        rows: those of `folded`, of all runs.
        manifests: of the runs.
        limits: how far to look for what is in doubt.

    Returns:
        The rows, and what is known of each partition beside them.
    """
    sums = _sums(rows)
    parts = [_with_digests(part, sums) for part in parts]
    whole = [part for part in parts if part.head.why]
    abridged = [part for part in parts if not part.head.why]
    found = [_piece(events_by_part(tables, parts), assemble.EVENT)]
    about = {part.key: Context(place=part.place, replicas=part.replicas(part.logs)) for part in whole}
    if whole:
        found += _all_of(tables, whole)
    if abridged:
        claims = landed(tables, abridged, {key: each.unanswered for key, each in sums.items()})
        doubts = search(tables, abridged, rows, claims, limits)
        choice = _Choice(tables=tables, parts=abridged, sums=sums, folded=rows, claims=claims, limits=limits)
        found += choice.rows(doubts, {run: manifest.reach for run, manifest in enumerate(manifests)})
        about |= {part.key: _context(part, sums, doubts.beyond) for part in abridged}
    return union(found), about


def events_by_part(tables: Tables, parts: Sequence[Part]) -> DataFrame:
    """Return events once for each partition that they are about; those about none for all of their run."""
    chosen = tables.keys(parts).select(RUN, F.col("part").alias("its_part"))
    events = tables.all("events", {part.run for part in parts})
    found = events.join(chosen, RUN).where("part is null or part = its_part")
    return found.drop("part").withColumnRenamed("its_part", "part")


def folded(tables: Tables, runs: Collection[int], shift: int) -> DataFrame:
    """Return all rows of these runs, folded into buckets (checkers/spark/fold.py)."""
    return union(fold(name, tables.all(name, runs), shift) for name in TABLES).localCheckpoint()


def _sums(folded: DataFrame) -> dict[Key, Sums]:
    counted = (
        folded.where("who = 'produces'")
        .groupBy(*PART)
        .agg(
            *(
                F.expr(f"sum({value}) as {name}")
                for name, value in {
                    "sends": "n",
                    "unanswered": "if(bucket is null and outcome <> 'fail', n, 0)",
                    "told": "if(bucket is null and outcome = 'ok', n, 0)",
                    "unsaid": "if(told, 0, n)",
                    "again": "if(rising, 0, n)",
                }.items()
            )
        )
    )
    rows = counted.toArrow().to_pylist()
    return {(row.pop("run"), row.pop("part")): Sums(**row) for row in rows}


def _with_digests(part: Part, sums: Mapping[Key, Sums]) -> Part:
    """Return the partition; all of it must be judged if clients did not say what they sent."""
    # What the raw client sent can be guessed of older histories, from all values at once (checkers/facts/sent.py).
    if part.head.why or part.key not in sums or not sums[part.key].unsaid:
        return part
    return replace(part, head=replace(part.head, why="clients did not say what they sent"))


def _context(part: Part, sums: Mapping[Key, Sums], beyond: Mapping[Key, int]) -> Context:
    text = ""
    if part.key in beyond:
        text = (
            f"evidence differs at {beyond[part.key]} offsets or more; the lowest of them were judged, others not"
        )
    return Context(
        place=part.place,
        replicas=part.replicas(part.starts),
        sends=sums[part.key].sends if part.key in sums else 0,
        beyond=text,
    )


def _piece(rows: DataFrame, name: str) -> DataFrame:
    return rows.withColumn("piece", F.lit(name))


def _all_of(tables: Tables, parts: Sequence[Part]) -> list[DataFrame]:
    runs = {part.run for part in parts}

    def of(name: str) -> DataFrame:
        return tables.all(name, runs).join(tables.keys(parts), list(PART), "left_semi")

    return [
        _piece(of("produces"), assemble.PRODUCE),
        _as_batches(of("batches")),
        _piece(of("records"), assemble.RECORD),
        _piece(of("reads"), assemble.READ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The rows of partitions of which most is left out."""

    tables: Tables
    parts: Sequence[Part]
    sums: Mapping[Key, Sums]
    folded: DataFrame
    claims: DataFrame
    limits: Limits

    def rows(self, doubts: Doubts, reach: Mapping[int, int]) -> list[DataFrame]:
        """Return all of them; reach is that of each run's manifest."""
        offsets: dict[Key, set[int]] = {key: {*numbers_in(spans)} for key, spans in doubts.offsets.items()}
        invoked: dict[int, set[int]] = {}
        for row in self._sent(self._values(doubts)):
            if row["offset"] is not None:
                offsets.setdefault((row["run"], row["part"]), set()).add(row["offset"])
            if row["invoked"] is not None:
                invoked.setdefault(row["run"], set()).add(row["invoked"])
        chosen = self._numbers("offset", offsets)
        places: dict[int, set[int]] = {}
        for (run, part), numbers in offsets.items():
            places.setdefault(run, set()).update(place_of(part, number) for number in numbers)

        def at(name: str) -> DataFrame:
            return self.tables.among(name, {"place": places}).join(chosen, list(_AT), "left_semi")

        return [
            _piece(self.tables.among("produces", {"invoked": invoked}), assemble.PRODUCE),
            _piece(at("records"), assemble.RECORD),
            _piece(at("reads"), assemble.READ),
            *self._batches(offsets, doubts.befores, reach),
        ]

    def _sent(self, hashes: DataFrame) -> list[dict[str, Any]]:
        """
        Return where these values were sent and landed: the invoke of each produce, and offsets that it was told.

        Of all produces only these columns are read; their rows are read afterwards, by their invokes.
        """
        # One key is quicker to look up than three; few other partitions have the same value.
        sent = self._produces().join(F.broadcast(hashes.select("hash").distinct()), "hash", "left_semi")
        sent = sent.join(F.broadcast(hashes), list(_VALUE), "left_semi")
        told = sent.selectExpr(*PART, "if(offset >= 0, offset, null) as offset", "invoked")
        landed = self.claims.join(F.broadcast(hashes), list(_VALUE), "left_semi").select(*_AT)
        found: list[dict[str, Any]] = union([told, landed]).toArrow().to_pylist()
        return found

    def _produces(self) -> DataFrame:
        return self.tables.all("produces", {part.run for part in self.parts})

    def _numbers(self, column: str, numbers: Mapping[Key, Iterable[int]]) -> DataFrame:
        rows = [{"run": run, "part": part, column: each} for (run, part), of in numbers.items() for each in of]
        return self.tables.small(rows, (column, _INT))

    def _values(self, doubts: Doubts) -> DataFrame:
        """Return (PART, hash) of the values that are in doubt, and of those that are so wherever they stand."""
        found = self._numbers("hash", doubts.hashes)
        told = [part for part in self.parts if part.key in self.sums and self.sums[part.key].told]
        again = [part for part in self.parts if part.key in self.sums and self.sums[part.key].again]
        more: list[DataFrame] = []
        if told:
            # Acknowledged without an offset, and not in the leader's log.
            mine = self._produces().where(f"outcome = 'ok' and {UNANSWERED}").select(*_VALUE)
            mine = mine.join(self.tables.keys(told), list(PART), "left_semi")
            more.append(mine.join(self.claims, list(_VALUE), "left_anti"))
        if again:
            mine = self._produces().join(self.tables.keys(again), list(PART), "left_semi")
            more.append(mine.groupBy(*_VALUE).agg(F.count("*").alias("n")).where("n > 1").select(*_VALUE))
        if not more:
            return found
        most = self.limits.offsets
        some = union(more).distinct().limit(most + 1).localCheckpoint()
        if some.count() > most:
            doubts.beyond |= {part.key: most for part in (*told, *again)}
        return found.union(some).distinct().localCheckpoint()

    def _batches(
        self, offsets: Mapping[Key, Iterable[int]], befores: Mapping[Key, Sequence[int]], reach: Mapping[int, int]
    ) -> list[DataFrame]:
        """Return the batches of these offsets and before odd ones, and all others as spans."""
        fines = {key: {each >> _FINE for each in of} for key, of in offsets.items()}
        places: dict[Key, set[int]] = {}
        for key, of in offsets.items():
            own = {each >> SHIFT for each in of}
            places[key] = {max(0, place - back) for place in own for back in range(reach[key[0]] + 1)}
        for key, bases in befores.items():
            fines.setdefault(key, set()).update(base >> _FINE for base in bases)
            places.setdefault(key, set()).update(base >> SHIFT for base in bases)
        by_run: dict[int, set[int]] = {}
        for (run, part), of_part in places.items():
            by_run.setdefault(run, set()).update(place_of(part, each << SHIFT) for each in of_part)
        touched = self.tables.among("batches", {"place": by_run})
        for edge in ("base", "last"):
            fine = self._numbers(f"fine_{edge}", fines).withColumn(f"at_{edge}", F.lit(True))
            touched = touched.withColumn(f"fine_{edge}", F.expr(f"shiftright({edge}, {_FINE})"))
            touched = touched.join(fine, [*PART, f"fine_{edge}"], "left")
        # A batch of several ranges may have its chosen record in any.
        is_chosen = "at_base or at_last or fine_last > fine_base + 1"
        touched = touched.withColumn("chosen", F.expr(f"coalesce({is_chosen}, false)"))
        others = fold("batches", touched.where("not chosen"), _FINE)
        mine = self.folded.where("who = 'batches'").join(self.tables.keys(self.parts), list(PART), "left_semi")
        down = SHIFT - self.limits.coarse
        mine = mine.withColumn("near", F.expr(f"least(shiftright(bucket, {down}), {LAST}L)"))
        clamped = {key: {min(each, LAST) for each in of} for key, of in places.items()}
        untouched = mine.join(self._numbers("near", clamped), [*PART, "near"], "left_anti")
        spans = [each.withColumnRenamed("n", "count").drop("who") for each in (others, untouched)]
        return [
            _as_batches(touched.where("chosen")),
            *(_piece(each.select(*_SPAN), assemble.SPAN) for each in spans),
        ]


_SPAN: Final = (*PART, "log", "number", "count", "base", "last", "epoch", "magic", "codec", "index", "time_ns")


def _as_batches(batches: DataFrame) -> DataFrame:
    rows = batches.select(*PART, *_BATCH, "log", "number", "control", "problem", "odd")
    return _piece(rows.withColumn("count", F.lit(1).cast("long")), assemble.BATCH)
