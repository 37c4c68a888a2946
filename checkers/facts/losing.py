"""The leader that lost a record: the first since it was written that lacked it, with none after it that had it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter

from checkers.facts.copies import copies_of
from checkers.facts.elections import Takeover, takeovers
from checkers.facts.keepers import keepers_of
from checkers.facts.keeping import Standing
from checkers.facts.outages import outages
from checkers.facts.served import has_served, leadership_span
from checkers.facts.view import final_logs
from harness.events import Append
from harness.model import Op


def losing_takeover(ops: Sequence[Op], offset: int, value: str, written: Op | None, since: int) -> Takeover | None:
    """
    Return the first leader since the write that lacked the record, if no later leader had it again; else None.

    A broker that becomes leader of an older epoch than an earlier leader's is late (the broker or its command was
    delayed); it has no followers, and is skipped. A leader that an unclean election replaced may write on, alone
    in its ISR: what it writes then is lost to the leader that has replaced it already.

    Args:
        ops: the ops of one partition and the global ones.
        offset: the record's offset.
        value: its text; "" if no client was told of it.
        written: the leader's append, None if brokers did not report it.
        since: the index of the append, else of the acknowledgement.
    """
    led = takeovers(ops)
    newest = accumulate((takeover.epoch for takeover in led), max)
    losing = None
    in_order = [each for each, epoch in zip(led, newest, strict=True) if each.epoch == epoch]
    for takeover in reversed(in_order):
        late = takeover.op.index < since and not _replaced(in_order, takeover, written)
        if late or not _lacks(ops, takeover, offset, value, written):
            break
        losing = takeover
    return losing


def _replaced(led: Sequence[Takeover], takeover: Takeover, written: Op | None) -> bool:
    """Return True if an unclean election, up to this takeover, had replaced the record's leader as it wrote it."""
    event = None if written is None else written.event
    if not isinstance(event, Append) or event.epoch < 0:
        return False
    return any(each.unclean and event.epoch < each.epoch <= takeover.epoch for each in led)


def _lacks(ops: Sequence[Op], takeover: Takeover, offset: int, value: str, written: Op | None) -> bool:
    if takeover.log_end is not None and takeover.log_end <= offset:
        return True
    if written is None or not copies_of(ops).reported:
        # Appends are not reported. A leader that served the record had it; else its final log is the best evidence
        # of the log with which it led.
        since, until = leadership_span(takeover, takeovers(ops), outages(ops))
        if has_served(ops, takeover.node, (offset, value), since, until):
            return False
        had = _must_have_had(ops, takeover, (offset, value), until)
        if had is not None:
            return not had
        log = final_logs(ops).get(takeover.node)
        record = log.records.get(offset) if log else None
        return log is not None and (record is None or record.value != value)
    theirs = copies_of(ops).changes(offset).get(takeover.node, ())
    before = [change for change in theirs if change.op.index < takeover.op.index]
    return not before or before[-1].origin != written.index


def _must_have_had(
    ops: Sequence[Op], takeover: Takeover, record: tuple[int, str], until: int | None
) -> bool | None:
    """
    Return whether a leader that reports nothing had a record, None if its final log is the best evidence of that.

    It had the record if it must have had it when it took over, if no replica was without it at the end of its
    leadership by no fault, and if a fault may have changed its log since.
    """
    keepers = keepers_of(ops, *record)
    if keepers is None:
        return None
    now = takeover.op.time_ns
    end = None if until is None else ops[bisect_left(ops, until, key=attrgetter("index"))].time_ns
    found = keepers.at(takeover.node, now)
    if found is None or found.standing is Standing.EXCUSED:
        return None
    if keepers.seen_gone(takeover.node, now, end):
        return False
    broken = (keepers.at_end(node) if end is None else keepers.at(node, end) for node in keepers.nodes)
    if any(each is not None and each.standing is Standing.GONE for each in broken):
        return None
    return None if keepers.stays_due(takeover.node, now) else True
