"""
The window of an upgrade from a version without epochs, in which KIP-101 allows the losses of that version.

A follower falls back to its high watermark as long as it or its leader is such a version, and as long as what it
cuts has no epoch, since such a version wrote it: the high watermark is late, so that a member of the ISR lacks for
a moment what is committed. If it is elected then, the record is lost; and who has it still keeps it, since it is
below its own high watermark: replicas differ from there on (KIP-101, Scenario 2). A run has this window if its own
protocol has epochs, and nodes were set back: where the version without epochs is itself what is tested, nothing is
allowed to it.
Source:  KIP-101, step 4.3, and Compatibility, Deprecation, and Migration Plan; KAFKA-7897.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from checkers.facts.copies import copies_of
from checkers.facts.deleted import ended_since
from checkers.facts.fact import fact
from checkers.facts.replica_log import Change, Replay, ReplicaLog
from checkers.facts.view import names_of, rules_of, run_setup_of
from harness.events import Append, Follower, Installed, Truncate
from harness.model import Op, events_of

_RULE: Final = "epochs"
# How brokers say that they fell back to the high watermark.
_FALLEN_BACK: Final = frozenset({"high-watermark", "no-epoch-information"})


@fact
def has_window(ops: Sequence[Op]) -> bool:
    """Return True if the run's own protocol has epochs, and nodes were set back to one that has none."""
    setup = run_setup_of(ops)
    own = setup is not None and setup.rules.get(_RULE) == "yes"
    return own and any(each.rules.get(_RULE) == "no" for _, each in events_of(ops, Installed))


def in_window(ops: Sequence[Op], change: Change, origin: int) -> bool:
    """
    Return True if a follower may have cut a record away, though nothing else took it.

    Args:
        change: the cut.
        origin: the index of the op with which a leader appended the record.
    """
    return _falls_back(change.op) and has_window(ops) and _may_cut(ops, change.op, change.leader, origin)


def may_lack(ops: Sequence[Op], node: str, offset: int, origin: int, until: int) -> bool:
    """
    Return True if a node that joins the ISR by that op may lack a record there.

    It has cut it away as an upgrade allows, perhaps after the fetch that let it in; or it had kept another one.

    Args:
        origin: the index of the op with which a leader appended the record.
    """
    cut = any(
        each.op.process == node
        and each.op.index < until
        and each.to <= offset < each.start
        and _may_cut(ops, each.op, each.leader, origin)
        for each in _cuts(ops)
    )
    return cut or is_forked(ops, node, offset, until)


class _Cut(NamedTuple):
    """A cut to a high watermark, of the offsets from `to` to `start`; `leader`: whom the node followed, or ""."""

    op: Op
    to: int
    start: int
    leader: str


@fact
def _cuts(ops: Sequence[Op]) -> Sequence[_Cut]:
    """Return the cuts to high watermarks; none of a run without the window."""
    found: list[_Cut] = []
    names, leaders = names_of(ops), dict[str, str]()
    for op in ops if has_window(ops) else ():
        if isinstance(op.event, Follower):
            leaders[op.process] = names.get(op.event.leader, "")
        elif isinstance(op.event, Truncate) and _falls_back(op):
            found.append(_Cut(op, op.event.to, op.event.start, leaders.get(op.process, "")))
    return found


def _falls_back(op: Op) -> bool:
    return isinstance(op.event, Truncate) and op.event.reason in _FALLEN_BACK


def _may_cut(ops: Sequence[Op], cut: Op, leader: str, origin: int) -> bool:
    """Return True if who cut its log, whom it followed, or the writer of that record has no epochs."""
    return _is_epochless(ops, cut.index, cut.process, leader) or _has_no_epoch(ops, origin)


class _Fork(NamedTuple):
    """Offsets at which a node kept other records than its leader had, as of that op."""

    node: str
    first: int
    end: int
    since: int


def is_forked(ops: Sequence[Op], node: str | None, offset: int, until: int | None = None) -> bool:
    """
    Return True if a node had kept, by that op, another record there than its leader had, and has it since.

    Args:
        node: None for any.
    """
    return any(
        node in (None, fork.node)
        and fork.first <= offset < fork.end
        and (until is None or fork.since < until)
        and not ended_since(ops, fork.node, fork.since, offset + 1)
        for fork in _forks(ops)
    )


@fact
def _forks(ops: Sequence[Op]) -> Sequence[_Fork]:
    found: list[_Fork] = []
    cuts = [cut for cut in _cuts(ops) if cut.leader]
    replay = Replay(copies_of(ops).in_order if cuts else ())
    for op, _, _, leader in cuts:
        replay.to(op.index)
        ours, theirs = (replay.logs.get(name, ReplicaLog()) for name in (op.process, leader))
        for piece in ours.pieces:
            if _may_cut(ops, op, leader, piece[2]):
                found += (_Fork(op.process, first, end, op.index) for first, end in theirs.lacks(piece))
    return found


def _is_epochless(ops: Sequence[Op], index: int, *nodes: str) -> bool:
    """Return True if one of these nodes, of which "" is none, has no epochs by then."""
    return any(node and rules_of(ops, node, index).get(_RULE) == "no" for node in nodes)


def _has_no_epoch(ops: Sequence[Op], origin: int) -> bool:
    """Return True if the leader that wrote it had no epochs."""
    return _is_epochless(ops, origin, _writers(ops).get(origin, ""))


@fact
def _writers(ops: Sequence[Op]) -> Mapping[int, str]:
    return {op.index: op.process for op, append in events_of(ops, Append) if append.role == "leader"}
