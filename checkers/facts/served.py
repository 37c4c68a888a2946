"""
What a leader that tells nothing must have had, since a follower got it there.

A follower's fetch that asks for more than its last one shows that its leader's log went as far. What stood at an
offset that far is known where nothing else can have been written there.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.elections import Takeover
from checkers.facts.outages import Outage
from checkers.facts.view import setup_of
from harness.events import Fetch, Produce
from harness.model import Op, OpType, events_of


def reign(takeover: Takeover, takeovers: Sequence[Takeover], outages: Sequence[Outage]) -> tuple[int, int | None]:
    """
    Give the ops between which the node led on, in this epoch and those right before it, and was not down.

    Shapes:  None for an end that never came. Who leads cuts nothing: what it had in one of these epochs it has in
             the next.
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
    Whether the leader is seen to have had the record at some time between the two ops.

    Shapes:  record is (offset, value), acknowledged at some time. False proves nothing: who serves nobody, and who
             serves less, is not seen; and where a client sends again, a record may stand where nobody told.
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
    """Whether another record that was sent before that op may stand at the offset: there, or nobody told where."""
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
