"""
Promised records that the final log does not hold, and whether their loss was permitted.

Promised is what was acknowledged with acks=all, and what a leader committed, whatever its acks. A loss is
permitted only if the proof of checkers/facts/proof.py holds: every copy was followed to the election of the losing
leader, and a fault ended each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.acked import Acked, acked_records
from checkers.facts.compacted import may_be_removed
from checkers.facts.copies import copies_of
from checkers.facts.deleted import deleted_before
from checkers.facts.fates import fates_of
from checkers.facts.kept import must_hold
from checkers.facts.nowhere import nowhere
from checkers.facts.rot import damaged_alone
from checkers.facts.view import FinalLog, key_of, leaders_log
from checkers.rules.circumstances import circumstances_of
from checkers.rules.explain import loss_sentence
from checkers.rules.loss import acked_record, alike, judge_loss
from checkers.rules.lost_record import Loss
from harness.events import Healed, Read
from harness.model import Anomaly, CopyFate, Fates, Kind, Op, OpType, events_of, ranges_of

_EVIDENCE: Final = (
    "client: produce, read; log; metadata: state; broker: append, truncate, recovered, leader, follower, "
    "high-watermark, isr, flush, flushed; nemesis; fabric: fetch, hold, held, release, delay, learned"
)
_UNCHECKED: Final = (
    "A copy whose origin is unknown, or a leader that reported no append of it: the loss is unchecked. Where "
    "brokers emit no events, a copy is followed by followers' fetches, acknowledgements, faults, the ISR and "
    "final logs: a replica that must have the record and is seen without it proves the loss; what none of these "
    "shows is unchecked. Where a quorum commits, a doubt is an excuse, and nothing is unchecked."
)

KINDS: Final = (
    Definition(
        kind=Kind.LOST,
        formula="ok(produce r, acks=all, o), log(final leader)[o] != r or last read[o] != r, and not proof(r); "
        "where a quorum commits, instead of proof(r): N - max(0, majority - |taken|) >= majority, of the N "
        "members of the group",
        words="A record that was acknowledged with acks=all is gone, and the proof of a permitted loss does "
        "not hold: the acknowledgement was false, a copy ended without a fault, a replica was in the ISR "
        "without it, the election was unlawful, or a replica that had it could have led. Where a quorum "
        "commits, a majority of the group had the record, and faults cannot have taken it from so many members "
        "that those without it are a majority.",
        evidence=_EVIDENCE,
        unchecked=_UNCHECKED,
        source='KIP-101, Scenario 1; "Why does Kafka need the leader epoch?"',
    ),
    Definition(
        kind=Kind.PERMITTED,
        formula="proof(r): each n in ISR(ack) and each n that joined it since had r, and lost it unflushed "
        "with its power, or was down at the election of the leader that lacked r; min ISR and unclean election "
        "were kept; where a quorum commits: N - max(0, majority - |taken|) >= majority, with taken = {n of the "
        "group: after invoke(r), n lost its disk, files of its log, or a byte at o; or, if the promise is in "
        "memory, n lost its power, or a flush failed, with no flush(n) between ok(r) and that}",
        words="A promised record is gone, and every copy was followed to a fault that may end it. Where a quorum "
        "commits, faults may have taken it from so many members that those without it can be a majority; where "
        "members came or went beside a fault, who left took it along, and each group since counts.",
        evidence=_EVIDENCE,
        unchecked=_UNCHECKED,
        source="KIP-101, Scenario 2; KIP-966",
    ),
    Definition(
        kind=Kind.UNCLEAN,
        formula="as lost, and the losing leader was not in the ISR, unclean_election=yes, and no member of the "
        "ISR was registered when the controller decided",
        words="A promised record is gone, because a leader was elected from outside the ISR, as the partition "
        "allows.",
        evidence=_EVIDENCE + "; broker: elected",
        unchecked=_UNCHECKED,
        source="Kafka's unclean.leader.election.enable; KIP-101, Appendix A",
    ),
    Definition(
        kind=Kind.RETURNED,
        formula="as permitted, but others had r: the losing leader lost r with its power, and a new controller "
        "took office since while it never left the ISR; or the write that added it to the ISR was in flight "
        "then; or it was away, registered and lost its power before any controller read that; "
        "or the node that showed r had cut it, its loss of power undid that, and it was elected so",
        words="A promised record is gone, because a broker that lost it restarted before any controller saw it "
        "go: a known gap of Kafka with its state in the metadata.",
        evidence=_EVIDENCE + "; broker: controller",
        unchecked=_UNCHECKED,
        source="KIP-903; KIP-966",
    ),
    Definition(
        kind=Kind.LAST_STANDING,
        formula="as permitted, but others had r: when a controller first decided about the losing leader's "
        "return, no other member of the ISR had r and a session",
        words="A promised record is gone, because the last member of the ISR lost it and restarted as the only "
        "broker that may lead: a known gap of Kafka with its state in the metadata.",
        evidence=_EVIDENCE + "; broker: registered, elected",
        unchecked=_UNCHECKED,
        source="KIP-966",
    ),
    Definition(
        kind=Kind.UNPROMISED,
        formula="ok(produce r, acks in (0, 1), o), log(final leader)[o] != r, no high watermark passed r, and a "
        "leader was elected, or a fault touched the final leader, since it had r",
        words="A record acknowledged with acks 0 or 1, and never committed, is lost at a change of leader.",
        evidence=_EVIDENCE,
        unchecked="",
        source="Kafka's acks",
    ),
)


def lost(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find acknowledged records that are not at their offset in the final leader's log or the client's last read.

    Args:
        ops: the ops of one partition and the global ones, in index order.

    Returns:
        One anomaly for all records of one name that were lost in the same way, by first offset; [] if there is
        neither the leader's log nor a read, which `unchecked` reports. A group of which no member has a file any
        more has lost all. nodes is the losing leader.

    Source:  docs/architecture.md on permitted loss; KIP-101, Scenarios 1 and 2; KIP-966 for its edges.
    """
    none = nowhere(ops)
    log = leaders_log(ops) if none is None else none.log
    reads = [(op, read) for op, read in events_of(ops, Read) if op.type is OpType.OK]
    read, shown = reads[-1] if reads else (None, None)
    missing = [
        (acked, where)
        for acked, where in _missing(acked_records(ops), log, shown, deleted_before(ops))
        if not may_be_removed(ops, acked.offset, acked.value)
        and (where != "log" or log is None or not damaged_alone(ops, log, acked.offset, acked.value))
    ]
    losses = [
        judge_loss(ops, acked_record(ops, each), log if where == "log" else None, read) for each, where in missing
    ]
    return anomalies_of(ops, losses)


def anomalies_of(ops: Sequence[Op], losses: Sequence[Loss]) -> list[Anomaly]:
    """Return one anomaly for each group of losses, without those that a log which is not final cannot prove."""
    if nowhere(ops) is None and any(op.type is OpType.FAIL for op, _ in events_of(ops, Healed)):
        # A log that never caught up is not final: it proves a loss if a leader was seen without the record, if
        # another record stands at its offset, or if it is the leader's, which had the record.
        losses = [
            loss
            for loss in losses
            if loss.takeover is not None or loss.log is None or _rewritten(loss) or _had(ops, loss, loss.log)
        ]
    return [_anomaly(ops, group) for group in alike(losses)]


def _rewritten(loss: Loss) -> bool:
    return loss.log is not None and loss.record.offset in loss.log.records


def _had(ops: Sequence[Op], loss: Loss, log: FinalLog) -> bool:
    return must_hold(ops, log, (loss.record.offset, loss.record.value), loss.record.written)


def _missing(
    acked: Iterable[Acked], log: FinalLog | None, read: Read | None, deleted: int
) -> list[tuple[Acked, str]]:
    """Return the records that are missing, with where they are missing: in the final "log" or the "read"."""
    held = {(record.offset, record.value) for record in log.records.values()} if log else set()
    values = {value for _, value in held}
    shown = frozenset(read.records or ()) if read else frozenset()
    readable = (read.high_watermark or 0) if read else 0
    missing: list[tuple[Acked, str]] = []
    for each in acked:
        there = (each.offset, each.value)
        if 0 <= each.offset < deleted:
            continue
        if log is not None and not (there in held if each.offset >= 0 else each.value in values):
            missing.append((each, "log"))
        elif 0 <= each.offset < readable and there not in shown:
            missing.append((each, "read"))
    return missing


def _anomaly(ops: Sequence[Op], group: Sequence[Loss]) -> Anomaly:
    topic, partition = key_of(ops)
    first = group[0]
    return Anomaly(
        kind=first.kind,
        topic=topic,
        partition=partition,
        ranges=ranges_of(loss.record.offset for loss in group if loss.record.offset >= 0),
        nodes=(first.takeover.node,) if first.takeover else (),
        epoch=first.takeover.epoch if first.takeover else None,
        sentence=loss_sentence(group, circumstances_of(ops, first)),
        proof=tuple(sorted({index for loss in group for index in loss.proof})),
        fates=_fates(ops, first),
    )


def _fates(ops: Sequence[Op], loss: Loss) -> Fates | None:
    """Return what became of the copies, None if brokers did not report the record's append."""
    record = loss.record
    if record.written is None or not copies_of(ops).reported:
        return None
    marks = [(record.ok.index, "acknowledged" if record.acked else "committed")]
    if loss.takeover is not None:
        marks.append(
            (loss.takeover.op.index, f"{loss.takeover.node} leads epoch {loss.takeover.epoch} without it")
        )
    return Fates(
        offset=record.offset,
        copies=tuple(
            CopyFate(
                node=fate.node,
                begun=fate.begun.index,
                ended=None if fate.end is None else fate.end.op.index,
                by_fault=fate.end is not None and fate.end.by_fault,
                text="" if fate.end is None else fate.end.text,
            )
            for _, theirs in sorted(fates_of(ops, record.offset, record.written.index).items())
            for fate in theirs
        ),
        marks=tuple(marks),
    )
