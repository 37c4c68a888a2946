"""
Make the ops of a partition from rows of its tables, whole or abridged. This module imports nothing of Spark.

An abridged partition has all of its events, and of produces, batches and reads what was selected. Batches that
were not selected come as spans: what stands between two selected batches of one replica.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final, TypeAlias

from checkers.facts.abridged import Abridged, AbridgedOps
from checkers.facts.sequence import in_order
from harness.events import Batch, Produce
from harness.history.file import unreadable
from harness.model import HistoryError, Op, OpType, Source
from harness.tables.rows import digest_text

Row: TypeAlias = Mapping[str, Any]

EVENT: Final = "event"
PRODUCE: Final = "produce"
BATCH: Final = "batch"
RECORD: Final = "record"
READ: Final = "read"
SPAN: Final = "span"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """
    What is said of a partition beside its rows.

    Attributes:
        place: its topic and partition.
        replicas: the replica of each log of which rows are used, by the log's place in the manifest.
        sends: how many produces it has in all; None if its rows have all of them.
        beyond: why a part of what is in doubt was not selected, "" if all of it was.
    """

    place: tuple[str, int]
    replicas: Mapping[int, str]
    sends: int | None = None
    beyond: str = ""


def assemble(rows: Iterable[Row], part: Context) -> AbridgedOps:
    """
    Return the ops of one partition in index order, with the global ones.

    Args:
        rows: the rows, in any order, each with its `piece`: what it is a row of.
        part: what else is known of it.

    Raises:
        HistoryError: spans and batches of a log do not follow each other.
    """
    pieces: dict[str, list[Row]] = {}
    events: list[Op] = []
    for row in rows:
        # Most rows of a partition that is judged whole; an op takes less memory than its row.
        if row["piece"] == EVENT:
            events.append(event_of(row))
        else:
            pieces.setdefault(row["piece"], []).append(row)
    topic, partition = part.place
    ops = [*_with_records(events, pieces.pop(READ, ()))]
    ops += [op for row in pieces.get(PRODUCE, ()) for op in produce_of(row, topic, partition)]
    ops += _logs(pieces, part)
    found = AbridgedOps(in_order(ops))
    if part.sends is not None:
        found.sends = part.sends - len(pieces.get(PRODUCE, ()))
    return found


def event_of(row: Row) -> Op:
    """Return the op in a row of events; a row that is no op makes its own run unknown, no other."""
    try:
        value = json.loads(row["value"])
        if type(value) is not dict:
            raise TypeError(f"value is {value!r:.80}")
        return Op(
            index=row["index"],
            time_ns=row["time_ns"],
            source=Source(row["source"]),
            process=row["process"],
            type=OpType(row["type"]),
            f=row["f"],
            value=value,
        )
    except (ValueError, TypeError, RecursionError) as error:
        return unreadable(f"row {row['index']}: {error!r}; expected an op", row["index"])


def _with_records(events: Iterable[Op], shown: Iterable[Row]) -> Iterator[Op]:
    """Yield the events; a read has the records that it showed again."""
    records: dict[int, list[Row]] = {}
    for row in shown:
        records.setdefault(row["read"], []).append(row)
    for op in events:
        theirs = records.get(op.index)
        if theirs is None or op.source is not Source.CLIENT:
            yield op
            continue
        theirs.sort(key=_RANK)
        yield replace(op, value={**op.value, "records": [[each["offset"], each["value"]] for each in theirs]})


def produce_of(row: Row, topic: str, partition: int) -> tuple[Op, Op]:
    """Return the two ops of a produce."""
    about: dict[str, Any] = {"topic": topic, "partition": partition}
    about |= {name: row[name] for name in ("name", "acks", "codec", "value")}
    digest = "" if row["digest"] is None else digest_text(row["digest"])
    sent = Produce(**about, digest=digest)
    ended = Produce(**about, offset=row["offset"], error=row["error"])
    process = row["process"]
    return (
        Op.of(sent, index=row["invoked"], time_ns=row["invoked_ns"], process=process, type=OpType.INVOKE),
        Op.of(ended, index=row["done"], time_ns=row["done_ns"], process=process, type=OpType(row["outcome"])),
    )


def _logs(pieces: Mapping[str, Sequence[Row]], part: Context) -> Iterator[Op]:
    """Yield the batches of all logs; those that were not selected as few as possible."""
    records: dict[int, list[Row]] = {}
    for row in pieces.get(RECORD, ()):
        records.setdefault(row["batch"], []).append(row)
    logs: dict[int, list[Row]] = {log: [] for log in part.replicas}
    for row in (*pieces.get(BATCH, ()), *pieces.get(SPAN, ())):
        if row["log"] in logs:
            logs[row["log"]].append(row)
    for log, replica in part.replicas.items():
        for row in _joined(sorted(logs[log], key=_NUMBER), replica):
            theirs = sorted(records.get(row["index"], ()), key=_OFFSET) if row["piece"] == BATCH else []
            yield _batch(row, theirs, replica, part.place)


def _joined(rows: Sequence[Row], replica: str) -> Iterator[Row]:
    """Yield the rows of one log, spans of one epoch that follow each other as one."""
    before: dict[str, Any] | None = None
    for row in rows:
        if before is not None and row["number"] != before["number"] + before["count"]:
            raise HistoryError(
                f"{replica}: batch {row['number']} of its log follows batch {before['number']} and "
                f"{before['count'] - 1} more; expected no batch to be missing or to be there twice"
            )
        if (
            before is not None
            and before["piece"] == row["piece"] == SPAN
            and before["last"] + 1 == row["base"]
            and _SAME(before) == _SAME(row)
        ):
            before["last"], before["count"] = row["last"], before["count"] + row["count"]
            continue
        if before is not None:
            yield before
        before = dict(row)
    if before is not None:
        yield before


def _batch(row: Row, records: Sequence[Row], replica: str, place: tuple[str, int]) -> Op:
    about: dict[str, Any] = dict(zip(("topic", "partition"), place, strict=True))
    about |= {name: row[name] for name in ("base", "last", "epoch", "magic")}
    if row["piece"] == SPAN:
        about |= {"crc": 0, "codec": row["codec"], "position": 0, "segment": "", "records": ()}
        batch: Batch = Abridged(**about, stands_for=row["count"])
    else:
        about |= {name: row[name] for name in ("crc", "codec", "position", "segment", "problem", "control")}
        about["records"] = tuple((each["offset"], digest_text(each["digest"]), each["value"]) for each in records)
        whole = row["odd"] or len(records) == row["last"] - row["base"] + 1
        batch = Batch(**about) if whole else Abridged(**about)
    return Op.of(batch, index=row["index"], time_ns=row["time_ns"], process=replica, type=OpType.OK)


# What all batches of a span share.
_SAME: Final = itemgetter("epoch", "magic", "codec")

_NUMBER: Final = itemgetter("number")
_OFFSET: Final = itemgetter("offset")
_RANK: Final = itemgetter("rank")
