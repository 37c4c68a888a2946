"""
Search large partitions for what is in doubt, and send no records around: fold, compare, look again.

Each look is one job, and reads only the places that the one before it left. The first looks at all rows in buckets
of 4,096 offsets, the last one at single offsets. If much is left, a look at smaller buckets comes between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa

from checkers.spark import doubts as say
from checkers.spark.claims import fold_claims, single_claims
from checkers.spark.doubts import Finding, Known, first_look, look_again, look_last
from checkers.spark.executor import finder
from checkers.spark.fold import COLUMNS
from checkers.spark.head import Part
from checkers.spark.reading import Found, Key, Scan, each_key, each_table
from checkers.spark.rows import Span, joined, lowest, numbers_in
from checkers.spark.scan import Parts, Tables
from checkers.spark.works import Fold, Picked, Singly, Spans
from harness.tables.places import SHIFT, place_of

TABLES: Final = ("records", "produces", "batches", "reads")

_Look: TypeAlias = Callable[[pa.Table, Part], list[Finding]]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """
    What is looked at next: whole buckets of offsets of some partitions.

    Attributes:
        spans: [first, end) ranges of these offsets.
        count: how many buckets.
        beyond: partitions that have more of them, with the number of offsets in all.
    """

    spans: Mapping[Key, Sequence[Span]]
    count: int
    beyond: dict[Key, int]

    @staticmethod
    def of(spans: Mapping[Key, Iterable[Span]], shift: int, most: int) -> _Left:
        """Return the buckets of these ranges, at most so many of a partition."""
        buckets = {
            key: joined((first >> shift, (end - 1 >> shift) + 1) for first, end in of) for key, of in spans.items()
        }
        sizes = {key: sum(end - first for first, end in of) for key, of in buckets.items()}
        return _Left(
            spans={
                key: [(first << shift, end << shift) for first, end in lowest(of, most)]
                for key, of in buckets.items()
            },
            count=sum(min(size, most) for size in sizes.values()),
            beyond={key: size << shift for key, size in sizes.items() if size > most},
        )

    def scans(self, work: Callable[[str, Spans], Fold | Singly]) -> list[Scan]:
        """Return the scans of all tables that do this work with the rows there."""
        places: dict[int, set[int]] = {}
        for (run, part), spans in self.spans.items():
            places.setdefault(run, set()).update(
                place_of(part, bucket << SHIFT) for bucket in numbers_in(spans, SHIFT)
            )
        runs = {run: frozenset(values) for run, values in places.items()}
        return [
            Scan(
                table=name,
                columns=COLUMNS[name],
                work=work(name, Spans(self.spans, "base" if name == "batches" else "offset")),
                runs=runs,
            )
            for name in TABLES
        ]


def folded(tables: Tables, runs: Iterable[int], shift: int) -> Parts:
    """Return all rows of these runs folded into buckets (checkers/spark/fold.py), by partition."""
    numbers = [*runs]
    return tables.scan(*(Scan.all(name, Fold(name, shift), numbers, COLUMNS[name]) for name in TABLES))


def search(tables: Tables, parts: Sequence[Part], folds: Parts, claims: Parts, limits: Limits) -> Doubts:
    """
    Return what is in doubt in partitions.

    Args:
        tables: of their runs.
        parts: the partitions.
        folds: all rows of their runs, and no others, in the buckets of the first look, gathered by partition.
        claims: see checkers/spark/landed.py.
        limits: how far to look.
    """
    by_key = {part.key: part for part in parts}

    def found_by(rows: Parts, how: _Look, *, single: bool = False) -> dict[Key, list[Finding]]:
        found: dict[Key, list[Finding]] = {key: [] for key in by_key}
        for key, finding in rows.mapPartitions(partial(each_key, finder(by_key, how, single=single))).collect():
            found[key].append(finding)
        return found

    shift = limits.coarse
    whole = tables.gather(folds, _each(claims, fold_claims, shift=shift, among=None))
    first = found_by(whole, partial(first_look, shift=shift))
    known = {key: _known(found) for key, found in first.items()}
    left = _Left.of({key: _spans(first[key], say.LOOK, say.DOUBT) for key in first}, shift, limits.buckets)
    beyond = left.beyond
    if left.count > limits.few:
        fine = limits.fine
        rows = tables.scan(*left.scans(lambda name, among: Fold(name, fine, among)))
        landed = _each(claims, fold_claims, shift=fine, among=Spans(left.spans))
        again = found_by(tables.gather(rows, landed), partial(look_again, known=known, shift=fine))
        spans = {key: [*_spans(again[key], say.LOOK), *known[key].doubts] for key in known}
        left = _Left.of(spans, fine, limits.buckets)
        beyond |= left.beyond
    rows = tables.scan(*left.scans(Singly), _samples(known))
    landed = _each(claims, single_claims, among=Spans(left.spans))
    last = found_by(tables.gather(rows, landed), partial(look_last, known=known, most=limits.offsets), single=True)
    return Doubts(
        offsets={key: _spans(last[key], say.OFFSET) for key in last},
        hashes={key: _numbers(last[key], say.HASH) for key in last},
        befores={key: _numbers(last[key], say.BEFORE) for key in last},
        beyond=beyond | {key: count for key in last for count in _numbers(last[key], say.BEYOND)},
    )


def _each(claims: Parts, work: Callable[..., Iterator[Found]], **how: Any) -> Parts:
    """Return what the work makes of the claims of each partition, where they are."""
    return claims.mapPartitions(partial(each_table, partial(work, **how)), preservesPartitioning=True)


def _samples(known: Mapping[Key, Known]) -> Scan:
    invoked: dict[int, set[int]] = {}
    for (run, _), of_part in known.items():
        invoked.setdefault(run, set()).update(of_part.samples)
    runs = {run: frozenset(of_run) for run, of_run in invoked.items()}
    work = Picked(runs, say.SAMPLED)
    return Scan(table="produces", columns=COLUMNS["produces"], work=work, runs=runs, by="invoked")


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
