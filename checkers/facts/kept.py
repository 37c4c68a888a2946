"""What the final leader must hold at the end: it had the record, and no fault has touched it since."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.copies import copies_of
from checkers.facts.elections import takeovers
from checkers.facts.outages import outages
from checkers.facts.served import has_served
from checkers.facts.view import FinalLog, final_leader
from harness.effect import Effect, nature_of
from harness.events import Injection
from harness.model import Op, OpType, events_of


def must_hold(ops: Sequence[Op], log: FinalLog, record: tuple[int, str], written: Op | None) -> bool:
    """
    Return True if that final log, the last leader's, must hold a record, whether or not the cluster healed.

    Where brokers report events, the last of them at the offset says that the log has the record. Where they do
    not, the leader of the last epoch gave the record to a follower. Nothing but a fault may end either.

    Args:
        ops: the ops of one partition and the global ones.
        log: the final log.
        record: the record's offset and value.
        written: the leader's append, None if brokers did not report it.
    """
    leader = final_leader(ops)
    if leader is None or leader.node != log.node or log.snapshot.problems:
        return False
    if copies_of(ops).reported:
        changes = copies_of(ops).changes(record[0]).get(log.node, ())
        since = changes[-1].op.index if written and changes and changes[-1].origin == written.index else None
    else:
        led = [each.op.index for each in takeovers(ops) if each.epoch == leader.epoch and each.node == log.node]
        since = led[0] if led and has_served(ops, log.node, record, led[0], None) else None
    return since is not None and not _touched(ops, log.node, since)


def _touched(ops: Sequence[Op], node: str, since: int) -> bool:
    """Return True if a fault of the node took effect after that op, or keeps it down at the end."""
    if any(outage.node == node and outage.back is None for outage in outages(ops)):
        return True
    return any(
        op.index > since
        and op.type is not OpType.FAIL
        and node in fault.nodes
        and nature_of(op).effect is not Effect.NONE
        for op, fault in events_of(ops, Injection)
    )
