"""
Records are deleted as somebody asked, or as their age or number allows; never sooner, and never to come back.

`lost` and the other rules about promises leave out what was deleted on purpose; this one holds each move of a
log's start against who asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.deleted import (
    ASKED,
    FOLLOWED,
    asked_before,
    deleted_before,
    ended_since,
    high_watermark_before,
)
from checkers.facts.moments import anomaly, margin_ns, once
from checkers.facts.quorum import NOT_KNOWN, Promised, is_quorum, standing_of
from checkers.facts.view import at, final_logs, traits
from harness.events import DeleteRecords, LogStart, Read, Snapshot
from harness.model import Anomaly, Kind, Op, OpType, events_of

KINDS: Final = (
    Definition(
        kind=Kind.DELETED_EARLY,
        formula="log-start(n, to): to > high-watermark(n) then, or its reason is delete-records and no request of "
        "before was for an offset of to or more; or log-start(n, to) with the reason leader, a final log's start, "
        "or a read's: past all that clients had asked to delete, and retention had deleted",
        words="A log lost its oldest records before anybody had asked for it, or before they were committed.",
        evidence="runner: setup; broker: log-start, high-watermark, leader, follower, recovered; "
        "client: delete-records, alter-topic, read; log: snapshot",
        unchecked="A request for all that is committed, without an answer, may have been for any offset that was "
        "committed by then. A process that a disk error ended reports nothing of its last step: where logs start "
        "since may be what it had deleted, by retention or for such a request.",
        source="KIP-107; KAFKA-5634",
    ),
    Definition(
        kind=Kind.UNDELETED,
        formula="last log-start(n, to): final log(n) starts before to, and since then n was not told to delete "
        "the replica, cut nothing below to, and kept its disk; or, where a majority has what is committed: "
        "delete-records(to) was acknowledged, final log(n) starts before to and ends where the longest one does, "
        "and no faults may have taken the deletion from a majority",
        words="A replica's log starts below records that the replica had deleted: it forgot where it starts.",
        evidence="broker: log-start, truncate, stopped; client: delete-records; log: snapshot; nemesis",
        unchecked="Where all in sync have what is committed, broker events alone say what a replica had deleted.",
        source="KIP-107: the log start offset is kept in a checkpoint; of a group, it is an entry of its log",
    ),
)


def deleted(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find logs that start past what was to be deleted, or below what they had deleted.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each move of a start, each final log and each read.

    Source:  KIP-107 (DeleteRecords); KAFKA-5634 (deletion past the high watermark).
    """
    moves = list(_moves(ops))
    # Where brokers told of the move, what it left in logs and reads says nothing more.
    return once([*moves, *(() if moves else _seen(ops)), *_forgotten(ops), *_undone(ops)])


def _moves(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield moves of a start that nobody had asked for, or past the high watermark."""
    led = max((move.to for _, move in events_of(ops, LogStart) if move.reason != FOLLOWED), default=0)
    for op, move in events_of(ops, LogStart):
        high = high_watermark_before(ops, op)
        said = f"the log of {op.process} starts at {move.to} at {at(op)}"
        ranges = ((move.start, move.to),)
        if high is not None and move.to > high:
            text, early = f"{said}, past its high watermark, {high}", ((max(high, move.start), move.to),)
            yield anomaly(ops, Kind.DELETED_EARLY, text, [op.index], [op.process], None, early)
        most = asked_before(ops, op.index) if move.reason == ASKED else max(led, deleted_before(ops))
        if move.reason in (ASKED, FOLLOWED) and move.to > most:
            text = f"{said}, and {_asked(most)}"
            yield anomaly(ops, Kind.DELETED_EARLY, text, [op.index], [op.process], None, ranges)


def _seen(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield final logs and reads that begin past all that was deleted on purpose."""
    first = traits(ops).first_offset
    most = max(deleted_before(ops), first)
    for node, log in final_logs(ops).items():
        if log.start > most:
            text = f"the final log of {node} starts at {log.start}, and {_asked(most, first)}"
            yield anomaly(ops, Kind.DELETED_EARLY, text, [log.index], [node], None, ((most, log.start),))
    for op, read in events_of(ops, Read):
        if op.type is OpType.OK and (read.start or 0) > most:
            text = f"{op.process}'s read at {at(op)} began at {read.start}, and {_asked(most, first)}"
            yield anomaly(ops, Kind.DELETED_EARLY, text, [op.index], (), None, ((most, read.start or 0),))


def _asked(most: int, first: int = 0) -> str:
    return f"what was to be deleted ends at {most}" if most > first else "nothing was to be deleted"


def _forgotten(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield final logs that start below where their node last said that its log starts."""
    logs, margin = final_logs(ops), margin_ns(ops)
    read_at = {op.process: op.time_ns for op, _ in events_of(ops, Snapshot)}
    last: dict[str, tuple[Op, LogStart]] = {}
    for op, move in events_of(ops, LogStart):
        if op.process in logs and op.time_ns + margin < read_at[op.process]:
            last[op.process] = op, move
    for node, (op, move) in sorted(last.items()):
        log = logs[node]
        if log.start >= move.to or ended_since(ops, node, op.index, move.to):
            continue
        text = f"the final log of {node} starts at {log.start}; at {at(op)} it had been deleted up to {move.to}"
        yield anomaly(ops, Kind.UNDELETED, text, [op.index, log.index], [node], None, ((log.start, move.to),))


def _undone(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield final logs of a group that start below a deletion that a majority of it had acknowledged."""
    told = max(_acknowledged(ops), key=lambda each: each[0], default=None) if is_quorum(ops) else None
    if told is None:
        return
    start, asked, op = told
    standing = standing_of(ops, Promised(offset=NOT_KNOWN, asked=asked.index, told=op.index))
    if standing.lawful:
        return
    logs = final_logs(ops)
    longest = max((log.end for log in logs.values()), default=0)
    kept = dict(standing.kept)
    for node, log in sorted(logs.items()):
        if log.start < start and log.end == longest:
            text = (
                f"the final log of {node} starts at {log.start}; at {at(op)} {op.process} was told that all before"
                f" {start} is deleted, and no fault took that from a majority: {node} {kept.get(node, 'lost it')}"
            )
            yield anomaly(ops, Kind.UNDELETED, text, [op.index, log.index], [node], None, ((log.start, start),))


def _acknowledged(ops: Sequence[Op]) -> Iterator[tuple[int, Op, Op]]:
    """Yield where the log was to start by each deletion that was acknowledged, the request, and the answer."""
    asked: dict[str, Op] = {}
    for op, event in events_of(ops, DeleteRecords):
        if op.type is OpType.INVOKE:
            asked[op.process] = op
        elif op.type is OpType.OK and event.low_watermark is not None:
            yield event.low_watermark, asked.get(op.process, op), op
