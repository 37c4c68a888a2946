"""
Which polls one leadership of one process answered: what it told readers must fit together.

What a broker reports, or a watch sees, may be recorded later than it happened, never earlier. So a poll belongs to
a leadership for certain only if nothing changed from its request until the margin after its answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from checkers.facts.elections import takeovers
from checkers.facts.fact import fact
from checkers.facts.moments import Moment, is_polled, margin_ns, moments, states
from checkers.facts.polls import Polled, polls
from harness.effect import LOSSY, Effect, nature_of
from harness.events import (
    Follower,
    HighWatermark,
    Injection,
    Leader,
    Learned,
    Recovered,
    Started,
    Stopped,
    Truncate,
)
from harness.model import Op, events_of

# What begins or ends a leadership, or may change the log with which a broker leads.
_CHANGES = (Leader, Follower, Started, Stopped, Recovered, Truncate)


@fact
def changes_of(ops: Sequence[Op]) -> Mapping[str, Sequence[int]]:
    """Return, for each node, the indexes of the ops after which it may lead otherwise, or no more."""
    found: dict[str, set[int]] = {}
    for moment in moments(ops):
        if isinstance(moment.event, _CHANGES):
            found.setdefault(moment.op.process, set()).add(moment.op.index)
    for op, fault in events_of(ops, Injection):
        if nature_of(op).effect is not Effect.NONE or nature_of(op).heals:
            for node in fault.nodes:
                found.setdefault(node, set()).add(op.index)
    for op, command in events_of(ops, Learned):
        found.setdefault(command.link[1], set()).add(op.index)
    before: tuple[str | None, int] = (None, -1)
    for op, state in states(ops):
        now = (state.leader, state.epoch)
        for leader in (before[0], state.leader) if now != before else ():
            if leader is not None:
                found.setdefault(leader, set()).add(op.index)
        before = now
    return {node: sorted(indexes) for node, indexes in found.items()}


def margin_after(ops: Sequence[Op], op: Op) -> int:
    """Return the index of the last op that may be recorded after that op and have happened before it."""
    margin = margin_ns(ops)
    if not margin:
        return op.index
    place = bisect_right(ops, op.time_ns + margin, key=attrgetter("time_ns"))
    return max(ops[place - 1].index, op.index)


def until(ops: Sequence[Op], polled: Polled) -> int:
    """Return the index of the last op that may have happened before the answer."""
    return margin_after(ops, polled.ok)


def reign_of(ops: Sequence[Op], polled: Polled) -> int | None:
    """Return the index of the op since which the node that answered leads as it did, None if that is not sure."""
    if is_polled(ops):
        return None  # others may have led between two looks
    changes = changes_of(ops).get(polled.event.node, ())
    place = bisect_left(changes, polled.invoked.index)
    if not place or (place < len(changes) and changes[place] <= until(ops, polled)):
        return None
    return changes[place - 1]


@fact
def by_reign(ops: Sequence[Op]) -> Mapping[tuple[str, int], Sequence[Polled]]:
    """Return the polls that each leadership of a node surely answered, in the order of the answers."""
    found: dict[tuple[str, int], list[Polled]] = {}
    for polled in polls(ops):
        reign = reign_of(ops, polled)
        if reign is not None:
            found.setdefault((polled.event.node, reign), []).append(polled)
    return found


@fact
def moments_of(ops: Sequence[Op]) -> Mapping[str, tuple[list[int], list[Moment]]]:
    """Return each node's own events, with their indexes."""
    found: dict[str, tuple[list[int], list[Moment]]] = {}
    for moment in moments(ops):
        places, known = found.setdefault(moment.op.process, ([], []))
        places.append(moment.op.index)
        known.append(moment)
    return found


def led_at(ops: Sequence[Op], polled: Polled) -> list[Moment]:
    """Return the events after which the node that answered led, at any time from the request to the answer."""
    places, known = moments_of(ops).get(polled.event.node, ([], []))
    first = bisect_left(places, polled.invoked.index)
    near = known[max(0, first - 1) : bisect_right(places, until(ops, polled))]
    return [moment for moment in near if moment.after.role == "leader"]


def led_with(ops: Sequence[Op], polled: Polled) -> Iterator[tuple[int, Op]]:
    """Yield each high watermark with which the node may have led when it answered, and the op that reports it."""
    for moment in led_at(ops, polled):
        if moment.after.high_watermark is not None:
            yield moment.after.high_watermark, moment.op


@fact
def report_high_watermarks(ops: Sequence[Op]) -> bool:
    """Return True if brokers report their high watermarks."""
    return next(events_of(ops, HighWatermark), None) is not None


@fact
def first_risk_ns(ops: Sequence[Op]) -> int | None:
    """
    Return from when on a record may lawfully be lost: a disk may lose it, or an unclean election; None for never.

    Until then, all members of every ISR have all that was ever committed, if the protocol is right.
    """
    faults = [op.time_ns for op, _ in events_of(ops, Injection) if nature_of(op).effect in LOSSY]
    unclean = [takeover.op.time_ns - margin_ns(ops) for takeover in takeovers(ops) if takeover.unclean]
    return min([*faults, *unclean], default=None)
