"""
Which records a leader that emits no events must have had, because a follower fetched them from it.

If a follower's fetch offset rises from one fetch to the next, its leader's log reached that offset. The record
at an offset below is known if no other record can have been written there.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.elections import Takeover
from checkers.facts.outages import Outage
from checkers.facts.view import setup_of
from harness.events import Fetch, Produce
from harness.model import Op, OpType, events_of


def leadership_span(
    takeover: Takeover, takeovers: Sequence[Takeover], outages: Sequence[Outage]
) -> tuple[int, int | None]:
    """
    Return the first and last op between which the node led without a break and was not down.

    The node's consecutive epochs count as one: a leader does not truncate its log, so it keeps its records from
    one of these epochs to the next.

    Returns:
        The index of the op that began the leadership, and of the op that ended it; None if it never ended.
    """
    at = takeover.op.index
    until = next((other.op.index for other in takeovers if other.op.index > at), None)
    away = [outage for outage in outages if outage.node == takeover.node and outage.begun < at]
    since = at
    for other in reversed([other for other in takeovers if other.op.index < at]):
        back = other.op.index
        if other.node != takeover.node or any(o.back is None or o.back > back for o in away):
            break
        since = back
    return since, until


def has_served(ops: Sequence[Op], leader: str, record: tuple[int, str], since: int, until: int | None) -> bool:
    """
    Return True if fetches show that the leader had the record at some time between the two ops.

    False proves nothing: followers may not have fetched that far. If clients retry, it always returns False,
    since a retry can write a record at an offset that no acknowledgement names.

    Args:
        ops: the ops of one partition and the global ones.
        leader: the leader's node.
        record: (offset, value) of a record that was acknowledged at some time.
        since: the index of the first op, exclusive.
        until: the index of the last op, exclusive; None for the end of the history.
    """
    setup = setup_of(ops)
    if setup is None or not setup.sends_once:
        return False
    offset, value = record
    last: dict[str, tuple[str, int]] = {}
    for op, fetch in events_of(ops, Fetch):
        if until is not None and op.index >= until:
            return False
        if op.index <= since:
            continue
        follower, asked = fetch.link
        before, reached = last.get(follower, ("", 0)), fetch.offset
        last[follower] = (asked, reached)
        if asked == before[0] == leader and max(offset, before[1]) < reached:
            return not _may_be_another(ops, offset, value, op.index)
    return False


def _may_be_another(ops: Sequence[Op], offset: int, value: str, until: int) -> bool:
    """Return True if another record, sent before that op, is or may be at the offset (its own is unknown)."""
    places: dict[str, int | None] = {}
    for op, sent in events_of(ops, Produce):
        if sent.value == value:
            continue
        if op.type is OpType.INVOKE and op.index < until:
            places[sent.value] = None
        elif op.type is OpType.OK and sent.value in places:
            places[sent.value] = None if sent.offset is None or sent.offset < 0 else sent.offset
        elif op.type is OpType.FAIL:
            places.pop(sent.value, None)
    return any(place in (None, offset) for place in places.values())
