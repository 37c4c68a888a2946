"""
Select the rows by which the rules judge partitions of large runs: all of a partition, or what is in doubt of it.

With what is in doubt (checkers/spark/search.py) go all produces of the values there, wherever they were
acknowledged, and the records at those offsets. Everything else is left out; of the batches there remain spans
(checkers/facts/abridged.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from checkers.spark import assemble
from checkers.spark.anywhere import in_doubt_anywhere
from checkers.spark.assemble import Context
from checkers.spark.batches import BATCH_COLUMNS, FINE, Touched, untouched
from checkers.spark.head import Part
from checkers.spark.landed import landed
from checkers.spark.reading import Key, Scan, each_table, opened
from checkers.spark.rows import Ints, Rows, numbers_in, spans_of
from checkers.spark.scan import Parts, Tables
from checkers.spark.search import Doubts, Limits, search
from checkers.spark.sent import Sent, landed_at
from checkers.spark.sought import Sought
from checkers.spark.sums import Sums
from checkers.spark.works import Events, Spans, Take
from harness.tables.manifest import Manifest
from harness.tables.places import LAST, SHIFT, place_of
from harness.tables.schema import SCHEMAS

# What each table's rows are a piece of.
_PIECES: Final = {
    "produces": assemble.PRODUCE,
    "batches": assemble.BATCH,
    "records": assemble.RECORD,
    "reads": assemble.READ,
}


def pieces(
    tables: Tables,
    parts: Sequence[Part],
    folds: Parts,
    sums: Mapping[Key, Sums],
    manifests: Sequence[Manifest],
    *,
    limits: Limits,
) -> tuple[Parts, dict[Key, Context]]:
    """
    Return all rows by which the partitions are judged, each with its `piece` (checkers/spark/assemble.py).

    Args:
        tables: the tables of the runs.
        parts: every partition of the runs.
        folds: all rows of all runs, in the buckets of the first look, gathered by partition.
        sums: of each partition that has produces.
        manifests: of the runs.
        limits: how far to look for what is in doubt.

    Returns:
        The rows by partition, and what is known of each partition beside them.
    """
    parts = [_with_digests(part, sums) for part in parts]
    whole = [part for part in parts if part.head.why]
    abridged = [part for part in parts if not part.head.why]
    scans = [events_of(parts, assemble.EVENT), *_all_of(whole)]
    about = {part.key: Context(place=part.place, replicas=part.replicas(part.logs)) for part in whole}
    if not abridged:
        return tables.gather(tables.scan(*scans)), about
    claims = landed(tables, abridged, {key: each.unanswered for key, each in sums.items()})
    doubts = search(tables, abridged, folds, claims, limits)
    choice = _Choice(tables=tables, keys=[part.key for part in abridged], sums=sums, claims=claims, limits=limits)
    chosen, places = choice.scans(doubts, {run: manifest.reach for run, manifest in enumerate(manifests)})
    about |= {part.key: _context(part, sums, doubts.beyond) for part in abridged}
    spans = partial(untouched, places=places, shift=limits.coarse)
    rest = folds.mapPartitions(partial(each_table, spans), preservesPartitioning=True)
    return tables.gather(tables.scan(*scans, *chosen), rest), about


def events_of(parts: Iterable[Part], piece: str = "") -> Scan:
    """Return the scan of the events of partitions, each once for each partition that it is about."""
    return Scan.all("events", Events(_by_run(part.key for part in parts), piece), {part.run for part in parts})


def _by_run(keys: Iterable[Key]) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for run, part in keys:
        found.setdefault(run, set()).add(part)
    return {run: frozenset(parts) for run, parts in found.items()}


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


def _all_of(parts: Sequence[Part]) -> list[Scan]:
    of = _by_run(part.key for part in parts)
    return [Scan.all(name, Take(piece, parts=of), of) for name, piece in _PIECES.items()] if of else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The rows of partitions of which most is left out."""

    tables: Tables
    keys: Sequence[Key]
    sums: Mapping[Key, Sums]
    claims: Parts
    limits: Limits

    def scans(self, doubts: Doubts, reach: Mapping[int, int]) -> tuple[list[Scan], dict[Key, Ints]]:
        """
        Return the scans that take them, and the places of each partition from which batches are taken.

        Args:
            doubts: what is in doubt.
            reach: that of each run's manifest.
        """
        offsets: dict[Key, set[int]] = {key: {*numbers_in(doubts.offsets.get(key, ()))} for key in self.keys}
        invoked: dict[int, set[int]] = {run: set() for run, _ in self.keys}
        for key, rows in self._sent(self._values(doubts)):
            offsets[key].update(rows["offset"][rows.known("offset")].tolist())
            invoked[key[0]].update(rows["invoked"][rows.known("invoked")].tolist())
        rising: dict[Key, Ints] = {key: np.array(sorted(of), dtype=np.int64) for key, of in offsets.items()}
        spans = Spans({key: spans_of(of) for key, of in rising.items()})
        near = _places({key: {*(of >> SHIFT).tolist()} for key, of in rising.items()})
        sends = {run: frozenset(of) for run, of in invoked.items()}
        batches, places = self._batches(rising, doubts.befores, reach)
        return [
            _scan("produces", Take(assemble.PRODUCE, invoked=sends), sends, "invoked"),
            _scan("records", Take(assemble.RECORD, among=spans), near),
            _scan("reads", Take(assemble.READ, among=spans), near),
            batches,
        ], places

    def _values(self, doubts: Doubts) -> dict[Key, Sought]:
        """Return the values that are in doubt, and those that are so wherever they stand."""
        most = self.limits.offsets
        more = in_doubt_anywhere(self.tables, self.sums, self.keys, self.claims, most)
        doubts.beyond |= {key: most for key, hashes in more.items() if len(hashes) > most}
        none: Ints = np.empty(0, dtype=np.int64)
        return {
            key: Sought(
                np.union1d(np.array(doubts.hashes.get(key, ()), dtype=np.int64), more.get(key, none)[:most])
            )
            for key in self.keys
        }

    def _sent(self, values: Mapping[Key, Sought]) -> Iterator[tuple[Key, Rows]]:
        """
        Yield where these values were sent and landed: the invoke of each produce, and offsets that it was told.

        Of all produces only these columns are read; their rows are read afterwards, by their invokes.
        """
        runs = {run for run, _ in values}
        sent = self.tables.scan(Scan.all("produces", Sent(values), runs, ("part", "hash", "offset", "invoked")))
        claimed = self.claims.mapPartitions(partial(each_table, partial(landed_at, values=values)))
        for key, table in opened([*sent.collect(), *claimed.collect()]):
            yield key, Rows(table)

    def _batches(
        self, offsets: Mapping[Key, Ints], befores: Mapping[Key, Sequence[int]], reach: Mapping[int, int]
    ) -> tuple[Scan, dict[Key, Ints]]:
        """Return the scan of the batches of these offsets and before odd ones, and in which places they are."""
        places: dict[Key, set[int]] = {}
        fines: dict[Key, Ints] = {}
        for key, of in offsets.items():
            before = np.array(befores.get(key, ()), dtype=np.int64)
            fines[key] = np.union1d(of >> FINE, before >> FINE)
            own = np.unique(of >> SHIFT).tolist()
            places[key] = {max(0, place - back) for place in own for back in range(reach[key[0]] + 1)}
            places[key].update((before >> SHIFT).tolist())
        near = _places(places)
        clamped = {key: np.array(sorted({min(each, LAST) for each in of}), np.int64) for key, of in places.items()}
        return _scan("batches", Touched(near, fines), near, columns=BATCH_COLUMNS), clamped


def _scan(
    table: str,
    work: Take | Touched,
    runs: Mapping[int, frozenset[int]],
    by: str = "place",
    columns: tuple[str, ...] = (),
) -> Scan:
    every = tuple(SCHEMAS[table].names)
    return Scan(table=table, columns=columns or every, work=work, runs=runs, by=by)


def _places(of: Mapping[Key, Iterable[int]]) -> dict[int, frozenset[int]]:
    """Return the places of each run, from numbers of 4,096 offsets of its partitions."""
    found: dict[int, set[int]] = {}
    for (run, part), numbers in of.items():
        found.setdefault(run, set()).update(place_of(part, number << SHIFT) for number in numbers)
    return {run: frozenset(places) for run, places in found.items()}
