"""Members of the ISR that lag for longer than they may, and stay: judged by the leader's own events and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from checkers.facts.moments import Moment, anomaly, margin_ns, moments, states
from checkers.facts.silences import services_hit
from checkers.facts.view import at, setup_of
from checkers.facts.wrong_clocks import clock_was_wrong
from harness.effect import ON_METADATA, nature_of
from harness.events import (
    Cut,
    Delay,
    Double,
    Follower,
    Hold,
    Injection,
    IsrChanged,
    Leader,
    Recovered,
    Started,
    World,
)
from harness.model import Anomaly, Kind, Op, OpType, events_of

_NS_PER_MS: Final = 1_000_000
# A leader checks every half lag, and then writes to the metadata: the margin on top of twice the lag.
_SIMULATED_NS: Final = 100_000_000
_REAL_NS: Final = 1_000_000_000
_METADATA: Final = "metadata"


@dataclass(slots=True, kw_only=True)
class _Behind:
    """A member that lacks what its leader has since `since`: it must reach `need`, the leader's end then."""

    since: Op
    need: int


@dataclass(slots=True, kw_only=True)
class _Term:
    """A leader's time in one epoch and process: the members that are behind, and the leader's first event."""

    leader: str
    epoch: int
    op: Op
    members: frozenset[str]
    behind: dict[str, _Behind] = field(default_factory=dict)


def lagging(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """
    Yield members that stay in the ISR although they have not reached a past log end for over twice the lag.

    A leader that was hurt, or whose metadata were, proves nothing; nor does one whose clocks were wrong, or that
    the metadata have replaced.

    Source:  KIP-16: caught up means that it has fetched all that the leader had within replica.lag.time.max.ms.
    """
    setup = setup_of(ops)
    if setup is None or setup.replica_lag_ms is None or not states(ops) or _metadata_hurt(ops):
        return
    allowed = 2 * setup.replica_lag_ms * _NS_PER_MS + (_REAL_NS if margin_ns(ops) else _SIMULATED_NS)
    hurt: dict[str, list[int]] = {}
    for op, fault in events_of(ops, Injection):
        for node in fault.nodes if op.type is not OpType.FAIL else ():
            hurt.setdefault(node, []).append(op.time_ns)
    ends: dict[str, int] = {}
    term: _Term | None = None
    for moment in moments(ops):
        if term is not None:
            yield from _late(ops, term, moment.op, ends, allowed, hurt)
        term = _next(term, moment, ends)
    if term is not None:
        # The time up to the end of the history counts as well: nothing more was heard of the member.
        last = max((op for op in ops[-5:]), key=lambda op: op.index)
        yield from _late(ops, term, last, ends, allowed, hurt)


def _next(term: _Term | None, moment: Moment, ends: dict[str, int]) -> _Term | None:
    """Return the term after that event, with the members' ends and who is behind."""
    op, event, _, after = moment
    node = op.process
    # What a member lost with its power its leader still counts as copied, until the member fetches again.
    if after.end is not None and not isinstance(event, Recovered):
        ends[node] = after.end
    if isinstance(event, Leader):
        term = _Term(leader=node, epoch=event.epoch, op=op, members=after.isr - {node})
    elif term is not None and node == term.leader and isinstance(event, Follower | Started):
        return None
    if term is None:
        return None
    if node == term.leader:
        if isinstance(event, IsrChanged):
            term.members = after.isr - {node}
            term.behind = {m: each for m, each in term.behind.items() if m in term.members}
        for member in sorted(term.members):
            if ends.get(member, 0) < ends.get(node, 0):
                term.behind.setdefault(member, _Behind(since=op, need=ends[node]))
    elif node in term.behind and ends.get(node, 0) >= term.behind[node].need:
        del term.behind[node]
        if node in term.members and ends[node] < ends.get(term.leader, 0):
            term.behind[node] = _Behind(since=op, need=ends[term.leader])
    return term


def _late(  # noqa: PLR0917
    ops: Sequence[Op],
    term: _Term,
    now: Op,
    ends: dict[str, int],
    allowed: int,
    hurt: dict[str, list[int]],
) -> Iterator[Anomaly]:
    for member, behind in list(term.behind.items()):
        late = now.time_ns - behind.since.time_ns > allowed
        if not late or any(term.op.time_ns <= time <= now.time_ns for time in hurt.get(term.leader, ())):
            continue
        # It measures lag by its own clocks.
        if clock_was_wrong(ops, term.leader, behind.since.time_ns, now.time_ns):
            continue
        # The metadata names this leader and epoch, with the member, from then until now.
        if any(s.epoch > term.epoch for op, s in states(ops) if op.index < now.index):
            continue
        del term.behind[member]
        text = f"{member} stays in the ISR of {term.leader} in epoch {term.epoch}: its log ends at "
        text += (
            f"{ends.get(member, 0)}, below {behind.need}, which {term.leader} had at {at(behind.since)}, until "
        )
        text += f"{at(now)}"
        proof = [behind.since.index, now.index]
        yield anomaly(ops, Kind.WRONG_ISR, text, proof, [member, term.leader], term.epoch)


def _metadata_hurt(ops: Sequence[Op]) -> bool:
    """Return True if a fault of the metadata or of a link to it may have delayed a write."""
    if any(world.metadata_faults_bit for _, world in events_of(ops, World)):
        return True
    if any(nature_of(op).effect in ON_METADATA for op, _ in events_of(ops, Injection)) or services_hit(ops):
        return True
    return any(_METADATA in rule.link for kind in (Cut, Hold, Delay, Double) for _, rule in events_of(ops, kind))
