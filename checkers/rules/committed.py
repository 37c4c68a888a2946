"""
What a leader's high watermark has passed is on every electable replica, until a fault takes it.

The rule follows commits, cuts and the ISR through the history, so it finds what the final logs no longer show: a
member of the ISR that truncated a committed record and copied it again was electable without it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from checkers.definition import Definition
from checkers.facts.acked import acked_records, last_fetch, written_by
from checkers.facts.committed import Commit
from checkers.facts.compacted import kept_commits
from checkers.facts.copies import copied, copies_of
from checkers.facts.fates import Cause, End, end_of
from checkers.facts.isr import IsrState, isr_at, isr_of_command, isr_states
from checkers.facts.known_gaps import fetched_since_return
from checkers.facts.moments import anomaly, margin_ns
from checkers.facts.quorum import is_quorum
from checkers.facts.replica_log import Change, Piece, Replay, ReplicaLog
from checkers.facts.view import at, final_leader, leaders_log, offsets_text
from checkers.facts.window import is_forked, may_lack
from checkers.rules.loss import committed_record, judge_loss
from checkers.rules.lost import anomalies_of
from checkers.rules.seen_without import seen_without
from harness.events import Follower, Leader
from harness.model import Anomaly, Kind, Op, events_of, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.NOT_REPLICATED,
        formula="commit(r, o) at c, and a node n of the ISR whose copy of r at o ended at e > c by no fault; or "
        "n joined the ISR at e > c without r, while its leader had it; where brokers emit no events, commit(r, o) "
        "is ok(produce r, acks=all, o), and e is a fetch of n from at or below o",
        words="A replica that may be elected lacks a record that a leader's high watermark had passed, and no "
        "fault took it.",
        evidence="broker: append, truncate, recovered, high-watermark, leader, follower; metadata: state; "
        "fabric: fetch, fetched, hold, held, release, delay, learned; client: produce; nemesis",
        unchecked="never; but where brokers emit no events, a cut that no fetch shows, or that a fault, a late "
        "watch of the metadata or a held fetch may explain, is not found; and where a quorum has what is "
        "committed, no single replica must have it.",
        source="hachikuji/kafka-specification, StrongIsr",
    ),
    Definition(
        kind=Kind.COMMITTED_LOST,
        formula="commit(r, o), and final leader's log at o is not r, and not the proof that permits a loss; or "
        "ok(produce r, acks=1, o), the final leader had r in its epoch, with no fault of it since, and lacks r",
        words="A record is lost, whatever its acks, though a leader's high watermark had passed it and the proof "
        "of a permitted loss does not hold, or though its leader led on with it until the end.",
        evidence="broker: append, truncate, recovered, high-watermark; log; fabric: fetch",
        unchecked="A copy whose origin is unknown: the loss is unchecked.",
        source="KIP-101, Scenario 1",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Missing:
    """Committed offsets that a member of the ISR lacks from this op on."""

    node: str
    first: int
    end: int
    commit: Commit
    op: Op
    text: str


def committed(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find replicas of the ISR without what is committed, and losses of committed records that no client was told of.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One NOT_REPLICATED anomaly for each node and event; then the losses, as `lost` returns them.
    """
    if is_quorum(ops) or not copies_of(ops).reported:
        return seen_without(ops)
    commits = kept_commits(ops)
    if not commits:
        return []
    found = [*_taken(ops), *_joined(ops, commits)]
    return [*_not_replicated(ops, found), *_lost(ops, commits)]


# --- copies that ended, and members that joined --------------------------------------------------------------
def _taken(ops: Sequence[Op]) -> Iterator[_Missing]:
    """Yield what members of the ISR lost of committed records, though no fault took it."""
    by_origin: dict[int, list[Commit]] = {}
    for commit in kept_commits(ops):
        by_origin.setdefault(commit.origin, []).append(commit)
    logs: dict[str, ReplicaLog] = {}
    begun: dict[tuple[str, int], int] = {}
    for change in copies_of(ops).in_order:
        log = logs.setdefault(change.node, ReplicaLog())
        before = log.slice(change.first, change.end)
        log.follow(change)
        if change.origin is not None:
            begun[change.node, change.origin] = change.op.index
        for first, end, origin in before:
            for commit in by_origin.get(origin, ()):
                start, stop = max(first, commit.first), min(end, commit.end)
                if origin == change.origin or start >= stop or not _electable(ops, change, commit):
                    continue
                held = logs[change.leader].at(start) if change.leader in logs else None
                since = begun.get((change.node, origin), -1)
                ended = end_of(ops, change, start, since, held == origin, origin=origin)
                if not ended.by_fault and ended.cause not in (Cause.FOLLOWED, Cause.MOVED):
                    yield _missing(change, commit, start, stop, ended)


def _missing(change: Change, commit: Commit, first: int, end: int, ended: End) -> _Missing:
    return _Missing(node=change.node, first=first, end=end, commit=commit, op=change.op, text=ended.text)


def _electable(ops: Sequence[Op], change: Change, commit: Commit) -> bool:
    """Return True if the node was in the ISR when it lost the records, after they were committed."""
    if change.op.index < commit.op.index:
        return False
    # A truncation carries out a command, whose ISR the watch of the metadata may show later.
    obeyed = [
        op
        for kind in (Follower, Leader)
        for op, _ in events_of(ops, kind)
        if op.process == change.node and op.index <= change.op.index
    ]
    last = max(obeyed, key=lambda op: op.index, default=None)
    isr = isr_at(ops, change.op.index)
    return change.node in isr and (last is None or change.node in isr_of_command(ops, last))


def _joined(ops: Sequence[Op], commits: Sequence[Commit]) -> Iterator[_Missing]:
    """Yield what replicas lacked of committed records when they joined the ISR, while their leader had it."""
    replay = Replay(copies_of(ops).in_order)
    commit_indexes = [commit.op.index for commit in commits]
    joins = _Joins(commits)
    for state in isr_states(ops):
        replay.to(state.op.index - 1)
        known = bisect_left(commit_indexes, state.op.index) if state.joined else 0
        for node in state.joined:
            if state.leader in (None, node) or (fetched := fetched_since_return(ops, node, state.op)) < 0:
                continue
            for commit in joins.lacking(node, replay.logs.get(node, ReplicaLog()), known):
                lacked = _lacked(ops, state, node, commit, replay.logs)
                yield from (each for each in lacked if each.first < fetched)


def _piece(commit: Commit) -> Piece:
    return commit.first, commit.end, commit.origin


class _Joins:
    """
    Which commits a replica may lack when it joins, without a look at all of them each time.

    A log that has a commit goes on to have it until it is changed below the commit's end.
    """

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._commits = commits
        self._ends = np.array([commit.end for commit in commits], dtype=np.int64)
        self._seen: dict[str, int] = {}  # how many commits each node has been compared with
        self._lacks: dict[str, list[int]] = {}  # the places of those that it lacked then

    def lacking(self, node: str, log: ReplicaLog, known: int) -> list[Commit]:
        """Return the commits, of the first `known` ones, of which the node's log lacks something now."""
        seen = self._seen.get(node, 0)
        changed = np.flatnonzero(self._ends[:seen] > log.changed_from).tolist()
        places = sorted({*range(seen, known), *self._lacks.get(node, ()), *changed})
        lacks = [place for place in places if log.lacks(_piece(self._commits[place]))]
        log.changed_from = log.end
        self._seen[node], self._lacks[node] = known, lacks
        return [self._commits[place] for place in lacks]


def _lacked(
    ops: Sequence[Op],
    state: IsrState,
    node: str,
    commit: Commit,
    logs: Mapping[str, ReplicaLog],
) -> Iterator[_Missing]:
    leading = state.leader or ""
    leader = logs.get(leading, ReplicaLog())
    for first, end in logs.get(node, ReplicaLog()).lacks(_piece(commit)):
        if leader.lacks((first, end, commit.origin)):
            continue
        missing = (first, end, commit.origin)
        # On real machines brokers' events and the watch of the metadata race, so the replay alone proves nothing;
        # a fetch is recorded before it is passed on.
        behind = last_fetch(ops, node, leading, state.op.index) <= first
        forked = is_forked(ops, leading, first, state.op.index)
        forked = forked or may_lack(ops, node, first, commit.origin, state.op.index)
        if not forked and (not margin_ns(ops) or behind or _never_copied(ops, node, missing, state.op)):
            text = f"joined the ISR at {at(state.op)} without it"
            yield _Missing(node=node, first=first, end=end, commit=commit, op=state.op, text=text)


def _never_copied(ops: Sequence[Op], node: str, piece: Piece, joined: Op) -> bool:
    """Return True if the node had not copied any of these records when it joined."""
    until = joined.time_ns + margin_ns(ops)  # a copy made before may be reported so much later
    return not any(change.node == node and change.op.time_ns <= until for change in copied(ops, piece))


def _not_replicated(ops: Sequence[Op], found: Iterable[_Missing]) -> Iterator[Anomaly]:
    groups: dict[tuple[str, int], list[_Missing]] = {}
    for each in found:
        groups.setdefault((each.node, each.op.index), []).append(each)
    for (node, index), group in sorted(groups.items(), key=lambda item: item[0][1]):
        ranges = ranges_of(offset for each in group for offset in range(each.first, each.end))
        commit = group[0].commit.op
        text = f"{node}, of the ISR, lacks what {commit.process} committed at {offsets_text(ranges)} at "
        text += f"{at(commit)}: it {group[0].text}"
        proof = (index, *(each.commit.op.index for each in group))
        yield anomaly(ops, Kind.NOT_REPLICATED, text, proof, [node], None, ranges)


# --- losses --------------------------------------------------------------------------------------------------
def _lost(ops: Sequence[Op], commits: Sequence[Commit]) -> list[Anomaly]:
    """Return the losses of committed records that no client was told of; `lost` judges the others."""
    leader, log = final_leader(ops), leaders_log(ops)
    if leader is None or log is None or leader.node is None:
        return []
    final = ReplicaLog()
    for change in copies_of(ops).in_order:
        if change.node == leader.node:
            final.follow(change)
    told = {(acked.offset, op.index) for acked in acked_records(ops) if (op := written_by(ops, acked)) is not None}
    origins = {op.index: op for op in ops}
    losses = [
        judge_loss(ops, committed_record(ops, offset, origins[commit.origin], commit.op), log, None)
        for commit in commits
        if commit.origin in origins
        for first, end in final.lacks(_piece(commit))
        for offset in range(max(first, log.start), end)
        if (offset, commit.origin) not in told
    ]
    return anomalies_of(ops, losses)
