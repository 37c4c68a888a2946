"""
Which records were committed, when: those that a leader's high watermark passed while it led and had them.

Source:  KIP-101; hachikuji/kafka-specification, StrongIsr.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from checkers.facts.copies import copies_of
from checkers.facts.fact import fact, select
from checkers.facts.replica_log import UNKNOWN, Piece, Replay, ReplicaLog
from harness.events import Follower, HighWatermark, Leader, Started
from harness.model import Op, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """
    Records of one append that were committed at once.

    Attributes:
        first: the first offset.
        end: the offset after the last one.
        origin: the index of the leader's append.
        op: the high watermark that passed them.
    """

    first: int
    end: int
    origin: int
    op: Op


@fact
def commits_of(ops: Sequence[Op]) -> list[Commit]:
    """Return every commit of a known record that brokers reported, in index order; no record twice."""
    replay = Replay(copies_of(ops).in_order)
    leading: set[str] = set()
    done: dict[int, int] = {}  # the origin of an append -> the offset below which it is committed
    found: list[Commit] = []
    for op in select(ops, Source.BROKER, "leader", "follower", "started", "high-watermark"):
        replay.to(op.index)
        match op.event:
            case Leader():
                leading.add(op.process)
            case Follower() | Started():
                leading.discard(op.process)
            case HighWatermark(to=to) if op.process in leading and op.process in replay.logs:
                found += _passed(replay.logs[op.process], to, op, done)
    return found


def _passed(log: ReplicaLog, to: int, op: Op, done: dict[int, int]) -> list[Commit]:
    new: list[Piece] = []
    for first, end, origin in reversed(log.pieces):
        if origin == UNKNOWN:
            continue  # who has that record cannot be told
        stop, start = min(end, to), max(first, done.get(origin, 0))
        if start < stop:
            new.append((start, stop, origin))
        elif end <= to:
            break  # all below was committed before
    # A log that copied one append bit by bit has several pieces of it: none counts before all are known.
    new.reverse()
    done.update((origin, stop) for _, stop, origin in new)
    return [Commit(first=start, end=stop, origin=origin, op=op) for start, stop, origin in new]


def commit_of(ops: Sequence[Op], offset: int, origin: int) -> Op | None:
    """Return the high watermark that passed a record first, None if none was reported."""
    for commit in commits_by_origin(ops).get(origin, ()):
        if commit.first <= offset < commit.end:
            return commit.op
    return None


@fact
def commits_by_origin(ops: Sequence[Op]) -> Mapping[int, Sequence[Commit]]:
    """Return the commits of each append's records."""
    found: dict[int, list[Commit]] = {}
    for commit in commits_of(ops):
        found.setdefault(commit.origin, []).append(commit)
    return found
