"""
Search large partitions for what is in doubt, and shuffle no records: fold, compare, look again where they differ.

Each look is one job, and reads only the places that the one before it left. The first looks at all rows in buckets
of 4,096 offsets, the last one at single offsets. If much is left, a look at smaller buckets comes between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.spark import doubts as say
from checkers.spark.doubts import Finding, Known, first_look, joined, last_look, look, lowest, numbers_in
from checkers.spark.executor import FINDING_SCHEMA, finder
from checkers.spark.fold import LANDED, WHO, each, fold
from checkers.spark.head import Part, Span
from checkers.spark.tables import PART, Tables, union
from harness.tables.places import SHIFT, place_of

Key: TypeAlias = tuple[int, int]

TABLES: Final = ("records", "produces", "batches", "reads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    How far each look goes.

    Attributes:
        coarse: how far offsets are shifted in the first look.
        fine: and in the look between the first and the last.
        few: buckets of the first look that are looked at offset by offset at once.
        buckets: of one partition that are looked at again; beyond, the partition is unknown at best.
        offsets: of one partition that are in doubt; likewise.
    """

    coarse: int = SHIFT
    fine: int = 6
    few: int = 128
    buckets: int = 20_000
    offsets: int = 200_000


LIMITS: Final = Limits()


@dataclass(slots=True)
class Doubts:
    """
    What is in doubt.

    Attributes:
        offsets: [first, end) ranges of offsets of each partition.
        hashes: of the values there, and of one produce of each sort.
        befores: the bases of batches before odd ones.
        beyond: partitions in which more is in doubt than is looked at, with at least how many offsets.
    """

    offsets: dict[Key, list[Span]] = field(default_factory=dict)
    hashes: dict[Key, list[int]] = field(default_factory=dict)
    befores: dict[Key, list[int]] = field(default_factory=dict)
    beyond: dict[Key, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Left:
    """
    What is looked at next: buckets of offsets of some partitions.

    Attributes:
        beyond: partitions that have more of them, with the number of offsets in all.
    """

    tables: Tables
    landed: DataFrame
    shift: int
    buckets: dict[Key, list[Span]]
    beyond: dict[Key, int]

    @property
    def count(self) -> int:
        return sum(end - first for spans in self.buckets.values() for first, end in spans)

    def rows(self, name: str) -> DataFrame:
        """Return the rows of a table, or of LANDED, in these buckets."""
        if name == LANDED:
            return self._within(self.landed, "offset")
        places: dict[int, set[int]] = {}
        for (run, part), spans in self.buckets.items():
            offsets = (bucket << self.shift for bucket in numbers_in(spans))
            places.setdefault(run, set()).update(place_of(part, offset) for offset in offsets)
        rows = self.tables.among(name, {"place": places})
        return rows if self.shift == SHIFT else self._within(rows, "base" if name == "batches" else "offset")

    def _within(self, rows: DataFrame, column: str) -> DataFrame:
        keys = [
            {"run": run, "part": part, "bucket": bucket}
            for (run, part), spans in self.buckets.items()
            for bucket in numbers_in(spans)
        ]
        chosen = self.tables.small(keys, ("bucket", pa.int64()))
        bucket = F.expr(f"shiftright({column}, {self.shift})")
        return rows.withColumn("bucket", bucket).join(chosen, [*PART, "bucket"], "left_semi").drop("bucket")


def search(tables: Tables, parts: Sequence[Part], folded: DataFrame, landed: DataFrame, limits: Limits) -> Doubts:
    """
    Return what is in doubt in partitions.

    Args:
        tables: of their runs.
        parts: the partitions.
        folded: all rows of their runs, and no others, in the buckets of the first look.
        landed: see checkers/spark/landed.py.
        limits: how far to look.
    """
    by_key = {part.key: part for part in parts}

    def left_of(spans: Mapping[Key, Iterable[Span]], shift: int) -> _Left:
        buckets = {
            key: joined((first >> shift, (end - 1 >> shift) + 1) for first, end in spans[key]) for key in spans
        }
        sizes = {key: sum(end - first for first, end in buckets[key]) for key in buckets}
        return _Left(
            tables=tables,
            landed=landed,
            shift=shift,
            buckets={key: lowest(buckets[key], limits.buckets) for key in buckets},
            beyond={key: size << shift for key, size in sizes.items() if size > limits.buckets},
        )

    def found_by(
        rows: Iterable[DataFrame], how: Callable[[pa.Table, Part], list[Finding]]
    ) -> dict[Key, list[Finding]]:
        return _findings(union(rows), finder(by_key, how))

    shift = limits.coarse
    first = found_by([folded, fold(LANDED, landed, shift)], lambda rows, part: first_look(rows, part, shift))
    known = {key: _known(found) for key, found in first.items()}
    left = left_of({key: _spans(first[key], say.LOOK, say.DOUBT) for key in first}, shift)
    beyond = left.beyond
    if left.count > limits.few:
        fine = limits.fine
        again = found_by(
            (fold(name, left.rows(name), fine) for name in (*TABLES, LANDED)),
            lambda rows, part: look(rows, part, known[part.key], fine),
        )
        left = left_of({key: [*_spans(again.get(key, ()), say.LOOK), *known[key].doubts] for key in known}, fine)
        beyond |= left.beyond
    samples: dict[int, set[int]] = {}
    for (run, _), each_known in known.items():
        samples.setdefault(run, set()).update(each_known.samples)
    sampled = each("produces", tables.among("produces", {"invoked": samples})).withColumn(WHO, F.lit(say.SAMPLED))
    last = found_by(
        [*(each(name, left.rows(name)) for name in (*TABLES, LANDED)), sampled],
        lambda rows, part: last_look(rows, part, known[part.key], limits.offsets),
    )
    return Doubts(
        offsets={key: _spans(last[key], say.OFFSET) for key in last},
        hashes={key: _numbers(last[key], say.HASH) for key in last},
        befores={key: _numbers(last[key], say.BEFORE) for key in last},
        beyond=beyond | {key: count for key in last for count in _numbers(last[key], say.BEYOND)},
    )


def _findings(rows: DataFrame, find: Callable[[pa.Table], pa.Table]) -> dict[Key, list[Finding]]:
    found: dict[Key, list[Finding]] = {}
    table = rows.groupBy(*PART).applyInArrow(find, from_arrow_schema(FINDING_SCHEMA)).toArrow()
    columns: list[list[Any]] = [table.column(name).to_pylist() for name in FINDING_SCHEMA.names]
    for run, part, *finding in zip(*columns, strict=True):
        what, first, end = finding
        found.setdefault((run, part), []).append((what, first, end))
    return found


def _known(findings: Sequence[Finding]) -> Known:
    return Known(
        firsts=dict(_spans(findings, say.FIRST)),
        doubts=tuple(joined(_spans(findings, say.DOUBT))),
        samples=frozenset(_numbers(findings, say.SAMPLE)),
    )


def _spans(findings: Iterable[Finding], *what: str) -> list[Span]:
    return [(first, end) for each_what, first, end in findings if each_what in what]


def _numbers(findings: Iterable[Finding], what: str) -> list[int]:
    return [number for number, _ in _spans(findings, what)]
