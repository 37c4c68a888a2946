"""
The ops of a large run that a report shows, from its tables, in memory that does not grow with them.

Of what is recorded of every record (produces, appends, batches, high watermarks, flushes, fetches) there is only
what is named; appends and batches that follow each other are joined, so that each log is known from end to end. Of
everything else there is the beginning of each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers.spark.assemble import event_of, produce_of
from harness.events import Batch
from harness.model import Op, OpType, Source
from harness.tables.manifest import table_path
from harness.tables.rows import digest_text

Look: TypeAlias = Callable[[Op], None]

# Of one kind of event, or of the stretches of one log. Far more than a page shows.
KIND_MAX: Final = 1_000
# Records of batches that are named.
RECORDS_MAX: Final = 10_000
# Rows in memory at a time.
_ROWS: Final = 16_384

_APPEND: Final = (Source.BROKER.value, "append")
# What brokers and followers say of every record.
_BULK: Final = frozenset(
    {
        (Source.BROKER.value, "high-watermark"),
        (Source.BROKER.value, "flush"),
        (Source.BROKER.value, "checkpoint"),
        (Source.FABRIC.value, "fetch"),
    }
)


class Selection:
    """
    Ops that are kept, and how many there were of each f.

    Attributes:
        named: the indexes of ops that are kept whatever they are.
        ops: what is kept.
        seen: f -> the number of ops.
    """

    def __init__(self, named: Collection[int]) -> None:
        self.named = frozenset(named)
        self.ops: list[Op] = []
        self.seen: Counter[str] = Counter()
        self._kept: Counter[tuple[Any, ...]] = Counter()

    def keep(self, op: Op, *kind: str) -> None:
        """Keep an op, unless there are many of its kind and it is not named."""
        self._kept[kind] += 1
        if self._kept[kind] <= KIND_MAX or op.index in self.named:
            self.ops.append(op)


# --- events ----------------------------------------------------------------------------------------------------
def select_events(folder: Path, chosen: Selection, look: Look) -> None:
    """
    Keep events.

    Args:
        folder: the run's tables.
        chosen: what is kept.
        look: is called with every event that is not of the bulk, kept or not.
    """
    joined = _Appends(chosen)
    for rows in batches_of(folder, "events", None):
        bulk = _bulk(rows)
        chosen.seen.update(bulk.column("f").to_pylist())
        named = pc.is_in(bulk.column("index"), pa.array(sorted(chosen.named), pa.int64()))
        for row in bulk.filter(named).to_pylist():
            chosen.keep(event_of(row))
        for row in rows.filter(pc.invert(_is_bulk(rows))).to_pylist():
            chosen.seen[row["f"]] += 1
            if (row["source"], row["f"]) == _APPEND:
                joined.add(row)
                continue
            joined.end(row["process"])
            op = event_of(row)
            look(op)
            chosen.keep(_without_records(op), row["source"], row["f"])
    joined.end()


def _is_bulk(rows: pa.Table) -> Any:
    pairs = pc.binary_join_element_wise(rows.column("source"), rows.column("f"), " ")
    return pc.is_in(pairs, pa.array([" ".join(pair) for pair in _BULK]))


def _bulk(rows: pa.Table) -> pa.Table:
    return rows.filter(_is_bulk(rows))


def _without_records(op: Op) -> Op:
    """Return a read without the empty list that stands for what it showed, and a poll without its records."""
    if op.source is not Source.CLIENT or "records" not in op.value:
        return op
    value = {name: each for name, each in op.value.items() if name != "records"}
    return Op(
        index=op.index, time_ns=op.time_ns, source=op.source, process=op.process, type=op.type, f=op.f, value=value
    )


class _Appends:
    """Joins appends of a broker that follow each other, until it says something else."""

    def __init__(self, chosen: Selection) -> None:
        self._chosen = chosen
        self._open: dict[str, dict[tuple[Any, ...], tuple[Op, int]]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the next append; one that is named stays alone."""
        op = event_of(row)
        value = op.value
        key = tuple(value.get(name) for name in ("topic", "partition", "epoch", "role"))
        mine = self._open.setdefault(op.process, {})
        first, end = mine.get(key, (op, None))
        alone = {op.index, first.index} & self._chosen.named
        if end == value.get("base") and not alone:
            mine[key] = (first, value.get("end", -1))
            return
        self._keep(mine.pop(key, None))
        mine[key] = (op, value.get("end", -1))

    def end(self, process: str | None = None) -> None:
        """Keep what was joined of one broker's appends, or of all."""
        for name in [*self._open] if process is None else [process] * (process in self._open):
            for joined in self._open.pop(name).values():
                self._keep(joined)

    def _keep(self, joined: tuple[Op, int] | None) -> None:
        if joined is None:
            return
        op, end = joined
        value = {**op.value, "end": end}
        self._chosen.keep(
            Op(
                index=op.index,
                time_ns=op.time_ns,
                source=op.source,
                process=op.process,
                type=op.type,
                f=op.f,
                value=value,
            ),
            *_APPEND,
        )


# --- produces and batches --------------------------------------------------------------------------------------
def select_produces(folder: Path, chosen: Selection) -> None:
    """Keep the produces that are named, each with its completion."""
    named = pa.array(sorted(chosen.named), pa.int64())
    for rows in batches_of(folder, "produces", None):
        chosen.seen["produce"] += 2 * rows.num_rows
        mine = pc.or_(pc.is_in(rows.column("invoked"), named), pc.is_in(rows.column("done"), named))
        for row in rows.filter(mine).to_pylist():
            for op in produce_of(row, row["topic"], row["partition"]):
                chosen.keep(op)


@dataclass(slots=True)
class _Stretch:
    """Batches of one log that follow each other, or one that is alone."""

    row: Mapping[str, Any]
    last: int
    alone: bool
    records: list[tuple[int, str, str]] = field(default_factory=list)


def select_batches(folder: Path, chosen: Selection) -> None:
    """Keep the stretches of each log, and the batches that are named with their records."""
    records = _records(folder, chosen.named)
    before: _Stretch | None = None
    for rows in batches_of(folder, "batches", None):
        chosen.seen["batch"] += rows.num_rows
        for stretch in _stretches(rows, chosen.named):
            if before is not None and _follows(before, stretch):
                before.last = stretch.last
                continue
            _keep_batch(chosen, before, records)
            before = stretch
    _keep_batch(chosen, before, records)


def _stretches(rows: pa.Table, named: Collection[int]) -> Iterator[_Stretch]:
    column = {name: rows.column(name).to_numpy() for name in ("log", "base", "last", "epoch", "magic", "index")}
    alone = rows.column("odd").to_numpy() | np.isin(column["index"], sorted(named))
    starts = np.ones(rows.num_rows, dtype=bool)
    starts[1:] = alone[1:] | alone[:-1] | (column["base"][1:] != column["last"][:-1] + 1)
    for name in ("log", "epoch", "magic"):
        starts[1:] |= column[name][1:] != column[name][:-1]
    places = [*np.flatnonzero(starts).tolist(), rows.num_rows]
    for first, end in pairwise(places):
        (row,) = rows.slice(first, 1).to_pylist()
        yield _Stretch(row=row, last=int(column["last"][end - 1]), alone=bool(alone[first]))


def _follows(before: _Stretch, after: _Stretch) -> bool:
    same = all(before.row[name] == after.row[name] for name in ("log", "epoch", "magic"))
    return same and not (before.alone or after.alone) and before.last + 1 == after.row["base"]


def _keep_batch(chosen: Selection, stretch: _Stretch | None, records: Mapping[int, list[Any]]) -> None:
    if stretch is None:
        return
    row = stretch.row
    about = {name: row[name] for name in ("topic", "partition", "base", "epoch", "magic", "codec")}
    if stretch.alone:
        names = ("crc", "position", "segment", "control", "problem")
        shown = {**{name: row[name] for name in names}, "records": tuple(records.get(row["index"], ()))}
    else:
        shown = {"crc": 0, "position": 0, "segment": "", "records": ()}
    batch = Batch(**about, **shown, last=stretch.last)
    op = Op.of(batch, index=row["index"], time_ns=row["time_ns"], process=row["replica"], type=OpType.OK)
    chosen.keep(op, "batch", str(row["log"]))


def _records(folder: Path, named: Collection[int]) -> dict[int, list[tuple[int, str, str]]]:
    """Return the records of the batches that are named, by the batch's index."""
    found: dict[int, list[tuple[int, str, str]]] = {}
    wanted, left = pa.array(sorted(named), pa.int64()), RECORDS_MAX
    for rows in batches_of(folder, "records", ["batch", "offset", "digest", "value"]):
        mine = rows.filter(pc.is_in(rows.column("batch"), wanted)).slice(0, left)
        left -= mine.num_rows
        for row in mine.to_pylist():
            found.setdefault(row["batch"], []).append((row["offset"], digest_text(row["digest"]), row["value"]))
        if not left:
            break
    return found


def batches_of(folder: Path, name: str, columns: list[str] | None) -> Iterable[pa.Table]:
    """Yield the rows of a table, some at a time."""
    with pq.ParquetFile(table_path(folder, name)) as file:
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            yield pa.Table.from_batches([batch])
