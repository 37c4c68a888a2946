"""
What was deleted on purpose: the offset below which clients asked for it, or the age and size of a log allowed it.

What is below that offset at the end of the run is promised to nobody any more, at no time of the run. Checker
`deleted` holds every move of a log's start against the same evidence.
Source:  KIP-107, DeleteRecords; Kafka's retention.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from checkers.facts.fact import fact
from checkers.facts.moments import moments
from checkers.facts.view import final_logs, key_of, run_setup_of
from harness.effect import Effect, nature_of
from harness.events import AlterTopic, DeleteRecords, Ended, Injection, LogStart, Recovered, Stopped, Truncate
from harness.model import Op, OpType, events_of

# In place of an offset, in a request: all that is committed.
ALL_COMMITTED: Final = -1
# Why a log's start moved, as brokers say: a client asked, the leader's log starts there, or it was old, or large.
ASKED: Final = "delete-records"
FOLLOWED: Final = "leader"
RETENTION: Final = ("retention-time", "retention-size")
# How the settings of a topic begin that have its brokers delete by retention.
_LIMITS: Final = "retention."


@fact
def deleted_before(ops: Sequence[Op]) -> int:
    """Return the offset below which records were deleted on purpose at any time of the run, 0 for none."""
    return max(asked_before(ops, None), retained_before(ops), unreported_before(ops))


def asked_before(ops: Sequence[Op], index: int | None) -> int:
    """
    Return the highest offset before which a client had asked to delete by that op, None for the end of the run.

    A request for all that is committed is worth what it was answered; without an answer that can be known, what
    brokers did about requests, or how far any final log begins.
    """
    highest, unknown = 0, False
    for op, event in events_of(ops, DeleteRecords):
        if index is not None and op.index > index and op.type is OpType.INVOKE:
            break
        if event.before != ALL_COMMITTED:
            highest = max(highest, event.before if op.type is not OpType.FAIL else 0)
        elif op.type is OpType.OK:
            highest = max(highest, event.low_watermark or 0)
        else:
            unknown |= op.type is OpType.INVOKE
    if unknown:
        done = [move.to for _, move in events_of(ops, LogStart) if move.reason == ASKED]
        highest = max(highest, *done, *(() if done else (log.start for log in final_logs(ops).values())), 0)
    return highest


@fact
def retained_before(ops: Sequence[Op]) -> int:
    """
    Return the highest offset before which a broker deleted what was too old or too much, 0 for none.

    What it deleted past its own high watermark was not its to delete.
    """
    moves = [(op, move) for op, move in events_of(ops, LogStart) if move.reason in RETENTION]
    highs = [high_watermark_before(ops, op) for op, _ in moves]
    return max(
        (move.to if high is None else min(move.to, high) for (_, move), high in zip(moves, highs, strict=True)),
        default=0,
    )


@fact
def unreported_before(ops: Sequence[Op]) -> int:
    """
    Return the highest offset at which logs start since a process that was to delete has failed, 0 for none.

    A step whose last write failed reports nothing: neither does it say what it had deleted before that. It was to
    delete by retention, or as an earlier request for all that is committed asked, which no answer followed.
    """
    moves = [(op, move) for op, move in events_of(ops, LogStart)]
    since = 0 if _retains(ops) else _unanswered_since(ops)
    failed = {op.process: op.index for op, _ in events_of(ops, Ended) if since is not None and op.index > since}
    if not failed:
        return 0
    followed = (move.to for op, move in moves if move.reason == FOLLOWED and op.index > min(failed.values()))
    return max([*followed, *(log.start for node, log in final_logs(ops).items() if node in failed)], default=0)


def _retains(ops: Sequence[Op]) -> bool:
    """Return True if brokers deleted by retention, or were to: the only time may be one that nobody reports."""
    setup, (topic, _) = run_setup_of(ops), key_of(ops)
    altered = (event.setting for _, event in events_of(ops, AlterTopic) if event.topic == topic)
    asked = any(setting.startswith(_LIMITS) for setting in altered)
    told = any(move.reason in RETENTION for _, move in events_of(ops, LogStart))
    return asked or told or (setup is not None and bool(setup.retains))


def _unanswered_since(ops: Sequence[Op]) -> int | None:
    """Return the op of the first request for all that is committed that got no answer, None if each got one."""
    asked: dict[str, int] = {}
    unanswered: list[int] = []
    for op, event in events_of(ops, DeleteRecords):
        if event.before == ALL_COMMITTED and op.type is OpType.INVOKE:
            asked[op.process] = op.index
        elif event.before == ALL_COMMITTED:
            begun = asked.pop(op.process, op.index)
            unanswered += [begun] if op.type is OpType.INFO else []
    return min([*unanswered, *asked.values()], default=None)


def high_watermark_before(ops: Sequence[Op], op: Op) -> int | None:
    """Return what the process of a broker's op had said last of its high watermark, None if it had not."""
    whens, highs = _said(ops).get(op.process, ([], []))
    place = bisect_left(whens, op.index)
    return highs[place - 1] if place else None


@fact
def _said(ops: Sequence[Op]) -> Mapping[str, tuple[list[int], list[int | None]]]:
    """Return each process's moments, and the high watermark after each."""
    found: dict[str, tuple[list[int], list[int | None]]] = {}
    for moment in moments(ops):
        whens, highs = found.setdefault(moment.op.process, ([], []))
        whens.append(moment.op.index)
        highs.append(moment.after.high_watermark)
    return found


def ended_since(ops: Sequence[Op], node: str, index: int, start: int) -> bool:
    """Return True if the node's log ended below that offset, or was deleted, or lost its disk, since that op."""
    if any(op.process == node and op.index > index and cut.end < start for op, cut in events_of(ops, Truncate)):
        return True
    found = ((op, log) for op, log in events_of(ops, Recovered) if op.process == node)
    if any(op.index > index and log.log_end_offset < start for op, log in found):
        return True  # its unflushed end was lost with the power
    if any(op.process == node and op.index > index for op, _ in events_of(ops, Stopped)):
        return True
    lost = ((op, fault) for op, fault in events_of(ops, Injection) if nature_of(op).effect is Effect.DISK_LOST)
    return any(node in fault.nodes and op.index > index for op, fault in lost)
