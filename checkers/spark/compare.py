"""
Compare the folded rows of one partition: what logs hold, what was acknowledged, and what reads showed.

A bucket of offsets is *unlike* if a log differs there from the leader's, if the leader's log differs from what was
acknowledged, or if a read showed other records than it has. An offset at which nothing is unlike is one at which
all replicas hold the same record, which was sent once and acknowledged there (or not answered, and stands nowhere
else), and which every read showed. More may be found than the rules will find, never less:
tests/checkers/spark/test_large.py compares the two. This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from checkers.spark.head import Part
from checkers.spark.rows import NONE, Bools, Ints, Rows, together


@dataclass(frozen=True, slots=True)
class Fold:
    """The rows of one log, read or client: each bucket once, rising, with its count and marks."""

    bucket: Ints
    n: Ints
    marks: dict[str, Ints]

    @staticmethod
    def of(rows: Rows, *marks: str) -> Fold:
        """Return the rows, those of one bucket as one."""
        bucket = rows["bucket"]
        order = np.argsort(bucket, kind="stable")
        bucket = bucket[order]
        first = np.flatnonzero(np.concatenate(([True], bucket[1:] != bucket[:-1]))) if len(bucket) else NONE
        if not len(first):
            return Fold(NONE, NONE, dict.fromkeys(marks, NONE))
        n = np.add.reduceat(rows["n"][order], first)
        xor = {mark: np.bitwise_xor.reduceat(rows[mark][order], first) for mark in marks}
        return Fold(bucket[first], n, xor)

    def at(self, buckets: Ints) -> tuple[Bools, Ints]:
        """Return whether it has each of these buckets, and its place."""
        if not len(self.bucket):
            return np.zeros(len(buckets), dtype=bool), np.zeros(len(buckets), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.bucket, buckets), len(self.bucket) - 1)
        return self.bucket[place] == buckets, place

    def unlike(self, led: Fold, *marks: str) -> Ints:
        """Return its buckets in which the leader's log has nothing, another number or another mark."""
        there, place = led.at(self.bucket)
        if not len(led.bucket):
            return self.bucket
        differs = ~there | (self.n != led.n[place])
        for mark in marks:
            differs |= self.marks[mark] != led.marks[mark][place]
        found: Ints = self.bucket[differs]
        return found


def unlike(rows: Rows, part: Part, firsts: Mapping[int, int], shift: int) -> Ints:
    """
    Return the buckets in which not all evidence agrees, rising.

    Args:
        rows: of checkers/spark/fold.py, of one partition.
        part: the partition.
        firsts: the index of each read that showed a record -> the first offset that it showed.
        shift: of offsets, to the number of their bucket.
    """
    records, batches = rows.of("records"), rows.of("batches")
    logs = _by_log(records.where(records["bucket"] >= _starts(records, part) >> shift), part, "plain", "full")
    led = logs.pop(part.leads)
    found = [log.unlike(led, "full") for log in logs.values()]
    found += _claimed(rows.of("produces", "landed"), led, part.starts[part.leads] >> shift)
    found += _shown(rows.of("reads"), led, part, firsts, shift)
    stretches = _by_log(batches.where(batches["last"] >= _starts(batches, part)), part, "full")
    leading = stretches.pop(part.leads)
    found += [log.unlike(leading, "full") for log in stretches.values()]
    return together(found)


def _starts(rows: Rows, part: Part) -> Ints:
    """Return the start of the log of each row; of one that is no final log, an offset beyond all."""
    log = rows["log"]
    found = np.full(len(rows), np.iinfo(np.int64).max)
    for each, start in part.starts.items():
        found[log == each] = start
    return found


def _by_log(rows: Rows, part: Part, *marks: str) -> dict[int, Fold]:
    log = rows["log"]
    return {each: Fold.of(rows.where(log == each), *marks) for each in part.starts}


def _claimed(claims: Rows, led: Fold, start: int) -> list[Ints]:
    """Compare what was acknowledged, or landed without an answer, with the leader's log, both ways."""
    claims = claims.where(claims.known("bucket") & (claims["bucket"] >= start))
    acked = Fold.of(claims, "plain", "full")
    there, place = led.at(acked.bucket)
    differs = ~there
    if len(led.bucket):
        # Where clients did not say what they sent, only values are compared.
        untold = np.isin(acked.bucket, claims.where(claims["told"] == 0)["bucket"])
        full = acked.marks["full"] != led.marks["full"][place]
        plain = acked.marks["plain"] != led.marks["plain"][place]
        differs |= (acked.n != led.n[place]) | np.where(untold, plain, full)
    return [acked.bucket[differs], led.bucket[~acked.at(led.bucket)[0]]]


def _shown(reads: Rows, led: Fold, part: Part, firsts: Mapping[int, int], shift: int) -> list[Ints]:
    """Compare what each read showed with the leader's log, below the high watermark that it was told."""
    found, start = [], part.starts[part.leads]
    of = reads["read"]
    for index, high in part.head.reads:
        shown = Fold.of(reads.where(of == index), "plain")
        low = max(start, firsts.get(index, start)) if start > 0 else 0
        wanted = (led.bucket >= low >> shift) & (led.bucket <= (high - 1) >> shift)
        found += [shown.unlike(led, "plain"), led.bucket[wanted & ~shown.at(led.bucket)[0]]]
    return found
