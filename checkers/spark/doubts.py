"""
Find the offsets of a large partition at which the rules must look, from its folded rows.

The first look is at buckets of 4,096 offsets and says where to look again; the last one is at single offsets, so
that it is exact. This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from checkers.spark.compare import unlike
from checkers.spark.head import Part
from checkers.spark.reading import Key
from checkers.spark.rows import Rows, Span, joined, lowest, spans_of, together, within

# What a finding says; [first, end) are offsets, unless it says something else.
LOOK: Final = "look"  # look again here
DOUBT: Final = "doubt"  # the rules must look here, whatever evidence says
FIRST: Final = "first"  # the index of a read, and the first offset that it showed
SAMPLE: Final = "sample"  # the index of the invoke of one produce of its sort
OFFSET: Final = "offset"  # in doubt
HASH: Final = "hash"  # of a value that is in doubt
BEFORE: Final = "before"  # the base of the batch before an odd one
# What rows of produces come from that were picked as samples.
SAMPLED: Final = "sampled"
BEYOND: Final = "beyond"  # how many offsets are in doubt, if they are too many

Finding: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """
    What the first look found in one partition, which later ones need.

    Attributes:
        firsts: the index of each read that showed a record -> the first offset that it showed.
        doubts: [first, end) ranges of offsets at which the rules must look, whatever evidence says.
        samples: the indexes of invokes.
    """

    firsts: Mapping[int, int] = field(default_factory=dict)
    doubts: tuple[Span, ...] = ()
    samples: frozenset[int] = frozenset()


def first_look(table: pa.Table, part: Part, shift: int) -> list[Finding]:
    """Return where to look again, and what is in doubt whatever evidence says, from rows of `fold`."""
    rows = Rows(table)
    shown = rows.of("reads").table.group_by("read").aggregate([("first", "min")])
    firsts = dict(zip(shown.column("read").to_pylist(), shown.column("first_min").to_pylist(), strict=True))
    sorts = _final(rows, part).table.group_by(["log", "epoch", "magic", "codec"])
    ends = sorts.aggregate([("base", "min"), ("last", "max")])
    edges = [*ends.column("base_min").to_pylist(), *ends.column("last_max").to_pylist(), *firsts.values()]
    sorts = rows.of("produces").table.group_by(["acks", "codec", "outcome"])
    samples = sorts.aggregate([("invoked", "min"), ("invoked_last", "max")])
    picked = {*samples.column("invoked_min").to_pylist(), *samples.column("invoked_last_max").to_pylist()}
    return [
        *look(table, part, Known(firsts=firsts), shift),
        *((FIRST, read, first) for read, first in firsts.items()),
        *((DOUBT, offset, offset + 1) for offset in edges),
        *((DOUBT, first, end) for first, end in part.head.doubts),
        *((SAMPLE, invoked, 0) for invoked in picked),
    ]


def look(table: pa.Table, part: Part, known: Known, shift: int) -> list[Finding]:
    """Return where to look again: where evidence differs, and where something is late or odd."""
    rows = Rows(table)
    differs = unlike(rows, part, known.firsts, shift)
    spans = [(first << shift, end << shift) for first, end in spans_of(differs)]
    late, batches = _late(rows), _final(rows, part)
    spans += zip((late["bucket"] << shift).tolist(), late["late"].tolist(), strict=True)
    # Batches may end in other buckets than they begin.
    begun = batches.where((batches["odd"] > 0) | np.isin(batches["bucket"], differs))
    spans += zip((begun["bucket"] << shift).tolist(), (begun["last"] + 1).tolist(), strict=True)
    # Something odd may end before it begins, and is looked at all the same.
    return [(LOOK, first, max(first + 1, end)) for first, end in spans]


def last_look(table: pa.Table, part: Part, known: Known, most: int) -> list[Finding]:
    """Return the offsets that are in doubt, at most so many, and the values there, from rows of `each`."""
    rows = Rows(table)
    sampled, batches = rows.of(SAMPLED), _final(rows, part)
    differs = unlike(rows, part, known.firsts, 0)
    late, odd = _late(rows), batches.where(batches["odd"] > 0)
    begun = batches.where((batches["odd"] > 0) | np.isin(batches["base"], differs))
    there = sampled.where(sampled.known("bucket"))["bucket"].tolist()
    spans = [
        *spans_of(differs),
        *known.doubts,
        *zip(late["bucket"].tolist(), late["late"].tolist(), strict=True),
        *zip(begun["base"].tolist(), (np.maximum(begun["base"], begun["last"]) + 1).tolist(), strict=True),
        *((offset, offset + 1) for offset in there),
    ]
    offsets = joined(spans)
    count = sum(end - first for first, end in offsets)
    kept = lowest(offsets, most)
    held = rows.of("records", "produces", "landed", "reads")
    values = held.where(within(held["bucket"], kept) & held.known("bucket"))["hash"]
    return [
        *((OFFSET, first, end) for first, end in kept),
        *((HASH, value, 0) for value in together([values, sampled["hash"]]).tolist()),
        *((BEFORE, base, 0) for base in odd.where(odd.known("before"))["before"].tolist()),
        *([(BEYOND, count, 0)] if count > most else []),
    ]


def look_again(rows: pa.Table, part: Part, *, known: Mapping[Key, Known], shift: int) -> list[Finding]:
    """Return what `look` does, with what is known of each partition."""
    return look(rows, part, known[part.key], shift)


def look_last(rows: pa.Table, part: Part, *, known: Mapping[Key, Known], most: int) -> list[Finding]:
    """Return what `last_look` does, with what is known of each partition."""
    return last_look(rows, part, known[part.key], most)


def _late(rows: Rows) -> Rows:
    produces = rows.of("produces")
    return produces.where(produces.known("late") & produces.known("bucket"))


def _final(rows: Rows, part: Part) -> Rows:
    """Return the batches of final logs."""
    batches = rows.of("batches")
    return batches.where(np.isin(batches["log"], [*part.starts]))
