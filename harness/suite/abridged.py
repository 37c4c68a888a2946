"""
Read of a large run what its result and its report need, from its tables.

A history of ten million ops would take 28 GB. Of its bulk there is only what an anomaly's proof names; everything
is counted all the same, while it is read, and given to the ops as facts, which are then not derived from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.facts.acked import Acked, acked_records
from checkers.facts.activity import Counts, count
from checkers.facts.fact import give
from checkers.facts.view import setup_of
from checkers.verdict import Records, records_of
from harness.history.abridged import AbridgedRun
from harness.kafka_errors import ACKS_ALL
from harness.model import Anomaly, HistoryError, Op, OpType
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.report.limits import ANOMALIES_MAX, PROOF_ROWS_MAX
from harness.run.store import Run
from harness.suite.abridged_ops import Selection, batches_of, select_batches, select_events, select_produces
from harness.tables.writer import ensure_tables

# Acknowledged records that may be named in a text; of more, only those of the scenario's own groups.
RECORDS_MAX: Final = 200_000


def read_abridged(run: Run, anomalies: Sequence[Anomaly]) -> AbridgedRun:
    """
    Return the ops of a large run that its result and its report need.

    Args:
        run: the run; its tables are made from its lines if they are not whole.
        anomalies: what was found in it; the ops that a report shows as their proof are among those returned.

    Raises:
        OSError: the tables cannot be read or written.
        TablesError: the run has no lines from which to make them.
    """
    manifest = ensure_tables(run.history)
    chosen, counts = Selection(named_by(anomalies)), Counts()
    select_events(run.tables, chosen, _counting(counts))
    select_produces(run.tables, chosen)
    select_batches(run.tables, chosen)
    chosen.ops.sort(key=lambda op: op.index)
    _count_produces(run.tables, counts)
    left_out = chosen.seen - Counter(op.f for op in chosen.ops)
    found = AbridgedRun.of(chosen.ops, manifest.ops, dict(left_out))
    give(found, count, counts)
    give(found, records_of, _records(run.tables, setup_names(found), acked_records(found)))
    return found


def named_by(anomalies: Iterable[Anomaly]) -> set[int]:
    """Return the indexes of the ops that a report shows of these anomalies."""
    named: set[int] = set()
    for anomaly in [*anomalies][:ANOMALIES_MAX]:
        named.update(anomaly.proof[:PROOF_ROWS_MAX])
        if anomaly.fates:
            named.update(index for index, _ in anomaly.fates.marks)
            named.update(copy.begun for copy in anomaly.fates.copies)
            named.update(copy.ended for copy in anomaly.fates.copies if copy.ended is not None)
    return named


def setup_names(ops: Sequence[Op]) -> tuple[str, ...]:
    """Return the names of the scenario's groups of records."""
    try:
        setup = setup_of(ops)
    except HistoryError:
        return ()
    return tuple(setup.records) if setup else ()


def _counting(counts: Counts) -> Callable[[Op], None]:
    def look(op: Op) -> None:
        with suppress(HistoryError):  # what cannot be read has made the run unknown, and does not count
            counts.add(op)

    return look


def _count_produces(folder: Path, counts: Counts) -> None:
    """Count the acknowledged records, and those of the schedule that were acknowledged with acks=all."""
    final = pa.array(sorted(FINAL_RECORDS), pa.string())
    for rows in batches_of(folder, "produces", ["name", "value", "acks", "outcome"]):
        sent = rows.filter(pc.equal(rows["outcome"], OpType.OK.value))
        counts.records_sent += sent.num_rows
        counts.bytes_sent += pc.sum(pc.binary_length(sent["value"])).as_py() or 0
        mine = pc.invert(pc.is_in(sent["name"], final))
        counts.acked += pc.sum(pc.and_(pc.equal(sent["acks"], ACKS_ALL), mine)).as_py() or 0


def _records(folder: Path, names: Sequence[str], irregular: Sequence[Acked]) -> Records:
    """
    Return each name's acknowledged offsets: of all names, or of these alone if there are too many offsets.

    Args:
        irregular: those that are events, as they do not fit the table of produces.
    """
    found: dict[str, dict[int, int]] = {name: {} for name in names}
    everything = sum(rows.num_rows for rows in _oks(folder)) <= RECORDS_MAX
    own = pa.array(() if everything else _few(folder, names), pa.string())
    for rows in _oks(folder):
        mine = rows if everything else rows.filter(pc.is_in(rows["name"], own))
        for row in mine.to_pylist():
            found.setdefault(row["name"] or row["value"], {})[row["offset"]] = row["done"]
    for acked in irregular if everything else ():
        if acked.offset >= 0:
            found.setdefault(acked.name, {})[acked.offset] = acked.index
    return found


def _few(folder: Path, names: Sequence[str]) -> list[str]:
    """Return those names that have few records; a name is only used if all of its records are known."""
    numbers: Counter[str] = Counter()
    for rows in _oks(folder):
        mine = rows["name"].filter(pc.is_in(rows["name"], pa.array(names, pa.string())))
        for each in pc.value_counts(mine).to_pylist():
            numbers[each["values"]] += each["counts"]
    left, few = RECORDS_MAX, []
    for name in names:
        if numbers[name] <= left:
            left -= numbers[name]
            few.append(name)
    return few


def _oks(folder: Path) -> Iterator[pa.Table]:
    for rows in batches_of(folder, "produces", ["name", "value", "outcome", "offset", "done"]):
        told = pc.and_(pc.equal(rows["outcome"], OpType.OK.value), pc.greater_equal(rows["offset"], 0))
        yield rows.filter(told)
