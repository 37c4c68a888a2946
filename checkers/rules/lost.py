"""
Acknowledged records that the final log does not hold, and whether their loss was permitted.

A loss is permitted only if, when the losing leader was elected, every member of the ISR at acknowledgement had
lost unflushed bytes or was down. acks=all promises the record on every member, so a member that was up and never
had it makes the acknowledgement false: that is no excuse. Nor is a power loss that spared the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from checkers.facts.copies import Change, Copies
from checkers.facts.elections import Takeover, takeovers
from checkers.facts.known_gaps import last_standing, returned_unseen
from checkers.facts.outages import Outage, outages
from checkers.facts.served import has_served, leadership_span
from checkers.facts.view import FinalLog, final_leader, final_logs, key_of, names_of, setup_of
from checkers.rules.explain import Excuse, Loss, loss_sentence
from harness.events import (
    Healed,
    HighWatermark,
    IsrChanged,
    Leader,
    LeaderAndIsr,
    Produce,
    Read,
    Recovered,
)
from harness.model import Anomaly, Kind, Op, OpType, Source, events_of, ranges_of

_ACKS_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked:
    """
    One acknowledged record.

    Attributes:
        ok: the op that acknowledged it.
        record: that op's event.
        invoked: the index of its invoke, else of its ok.
    """

    ok: Op
    record: Produce
    invoked: int

    @property
    def index(self) -> int:
        """The index of the op that acknowledged it."""
        return self.ok.index

    @property
    def offset(self) -> int:
        """The acknowledged offset, -1 if there is none (acks=0)."""
        return -1 if self.record.offset is None else self.record.offset

    @property
    def value(self) -> str:
        """The record's text, unique in its run."""
        return self.record.value

    @property
    def name(self) -> str:
        """The name of its group, else its text."""
        return self.record.name or self.record.value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """The facts by which every loss of a partition is judged."""

    ops: Sequence[Op]
    names: Mapping[int, str]
    logs: Mapping[str, FinalLog]
    copies: Copies
    takeovers: Sequence[Takeover]
    outages: Sequence[Outage]


def lost(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find acknowledged records that are not at their offset in the final leader's log or the client's last read.

    Args:
        ops: the ops of one partition and the global ones, in index order.

    Returns:
        One anomaly for all records of one name that were lost in the same way, by first offset; [] if there is
        neither the leader's log nor a read, which `unchecked` reports. The kind is LOST, PERMITTED, UNCLEAN (the
        losing leader was elected from outside the ISR), RETURNED or LAST_STANDING (Kafka's known gaps:
        checkers/facts/known_gaps.py) or UNPROMISED (acks 0 or 1). nodes is the losing leader.

    Source:  docs/architecture.md on permitted loss; KIP-101, Scenarios 1 and 2; KIP-966 for its edges.
    """
    logs = final_logs(ops)
    leader = final_leader(ops)
    log = logs.get(leader.node or "") if leader else None
    reads = [(op, read) for op, read in events_of(ops, Read) if op.type is OpType.OK]
    read, shown = reads[-1] if reads else (None, None)
    missing = _missing(acked_records(ops), log, shown)
    if not missing:
        return []
    names = names_of(ops)
    case = _Case(
        ops=ops,
        names=names,
        logs=logs,
        copies=Copies(ops, names),
        takeovers=takeovers(ops),
        outages=outages(ops),
    )
    losses = [_judge(case, acked, log if where == "log" else None, read) for acked, where in missing]
    if any(op.type is OpType.FAIL for op, _ in events_of(ops, Healed)):
        # A log that never caught up is not final: only a leader that was seen without the record proves a loss.
        losses = [loss for loss in losses if loss.takeover is not None or loss.log is None]
    return [_anomaly(ops, group) for group in _alike(losses)]


def acked_records(ops: Iterable[Op]) -> list[Acked]:
    """Return every record whose produce was ok, in the order of acknowledgement."""
    invoked: dict[tuple[str, str], int] = {}
    found: list[Acked] = []
    for op, record in events_of(ops, Produce):
        sent = (op.process, record.value)
        if op.type is OpType.INVOKE:
            invoked[sent] = op.index
        elif op.type is OpType.OK:
            found.append(Acked(ok=op, record=record, invoked=invoked.get(sent, op.index)))
    return found


def _missing(acked: Iterable[Acked], log: FinalLog | None, read: Read | None) -> list[tuple[Acked, str]]:
    """Return the records that are missing, with where they are missing: in the final "log" or the "read"."""
    held = {(record.offset, record.value) for record in log.records.values()} if log else set()
    values = {value for _, value in held}
    shown = frozenset(read.records or ()) if read else frozenset()
    readable = (read.high_watermark or 0) if read else 0
    missing: list[tuple[Acked, str]] = []
    for each in acked:
        there = (each.offset, each.value)
        if log is not None and not (there in held if each.offset >= 0 else each.value in values):
            missing.append((each, "log"))
        elif 0 <= each.offset < readable and there not in shown:
            missing.append((each, "read"))
    return missing


def _judge(case: _Case, acked: Acked, log: FinalLog | None, read: Op | None) -> Loss:
    written = case.copies.written(acked.offset, acked.invoked, acked.ok.index)
    takeover = _losing(case, acked, written) if log is not None and acked.offset >= 0 else None
    cause = _cause(case, acked, takeover)
    outage = next((o for o in reversed(case.outages) if cause and _explains(o, cause)), None)
    promised = _promised(case, acked, written)

    def excuse_of(member: str) -> Excuse | None:
        return _excuse(case, member, acked, takeover, promised)

    excuses = {member: excuse_of(member) for member in _isr_at_ack(case, acked, written)}
    excused = tuple(excuse for excuse in excuses.values() if excuse is not None)
    owing = tuple(member for member, excuse in excuses.items() if excuse is None)
    if acked.record.acks != _ACKS_ALL:
        kind = Kind.UNPROMISED
    elif takeover is not None and takeover.unclean:
        kind = Kind.UNCLEAN
    elif excused and not owing:
        kind = Kind.PERMITTED
    else:
        kind = _known_gap(case, takeover, outage, lambda member: excuse_of(member) is not None) or Kind.LOST
    return Loss(
        kind=kind,
        name=acked.name,
        offset=acked.offset,
        acks=acked.record.acks,
        ok=acked.ok,
        written=written,
        writer_epoch=_epoch_of(case, written),
        takeover=takeover,
        cause=cause.op if cause else None,
        power=outage.op if outage else None,
        excused=excused,
        owing=owing,
        log=log,
        read=read if log is None else None,
    )


def _epoch_of(case: _Case, written: Op | None) -> int | None:
    """Return the epoch in which the writer led when it wrote; None if unknown."""
    if written is None:
        return None
    led = [t.epoch for t in case.takeovers if t.node == written.process and t.op.index < written.index]
    return led[-1] if led else None


def _losing(case: _Case, acked: Acked, written: Op | None) -> Takeover | None:
    """
    Return the first leader since the write that lacked the record, if no later leader had it again; else None.

    A broker that becomes leader of an older epoch than an earlier leader's is late (the broker or its command was
    delayed); it has no followers, and is skipped.
    """
    since = written.index if written else acked.ok.index
    newest = accumulate((takeover.epoch for takeover in case.takeovers), max)
    losing = None
    for takeover in reversed([t for t, epoch in zip(case.takeovers, newest, strict=True) if t.epoch == epoch]):
        if takeover.op.index < since or not _lacks(case, takeover, acked, written):
            break
        losing = takeover
    return losing


def _lacks(case: _Case, takeover: Takeover, acked: Acked, written: Op | None) -> bool:
    if takeover.log_end is not None and takeover.log_end <= acked.offset:
        return True
    if written is None or not case.copies.reported:
        # Appends are not reported. A leader that served the record had it; else its final log is the best evidence
        # of the log with which it led.
        since, until = leadership_span(takeover, case.takeovers, case.outages)
        if has_served(case.ops, takeover.node, (acked.offset, acked.value), since, until):
            return False
        log = case.logs.get(takeover.node)
        record = log.records.get(acked.offset) if log else None
        return log is not None and (record is None or record.value != acked.value)
    change = case.copies.last_change(takeover.node, acked.offset, takeover.op.index)
    return change is None or change.origin != written.index


def _cause(case: _Case, acked: Acked, takeover: Takeover | None) -> Change | None:
    """Return the change that took the record from the losing leader before it led; None if it never had it."""
    if takeover is None:
        return None
    change = case.copies.last_change(takeover.node, acked.offset, takeover.op.index)
    return change if change is not None and change.origin is None else None


def _isr_at_ack(case: _Case, acked: Acked, written: Op | None) -> tuple[str, ...]:
    """Return the ISR when the writer's high watermark passed the record, in the writer's own order of events."""
    if written is not None:
        isr: Sequence[int] = ()
        for op in case.ops:
            if op.source is not Source.BROKER or op.process != written.process:
                continue
            match op.event:
                case Leader(isr=members) | IsrChanged(isr=members) if not isr or op.index < acked.index:
                    isr = members
                case HighWatermark(to=to) if op.index > written.index and to > acked.offset:
                    break
        if isr:
            return tuple(case.names.get(broker, str(broker)) for broker in isr)
    states = [state for op, state in events_of(case.ops, LeaderAndIsr) if op.index < acked.index]
    setup = setup_of(case.ops)
    return tuple(map(str, states[-1].isr)) if states else (setup.replicas if setup else ())


def _promised(case: _Case, acked: Acked, written: Op | None) -> int:
    """Return the index of the op that promised the record: its commit by the writer, or the acknowledgement."""
    if written is None:
        return acked.ok.index
    passed = (
        op.index
        for op, moved in events_of(case.ops, HighWatermark)
        if op.index > written.index and op.process == written.process and moved.to > acked.offset
    )
    return min(next(passed, acked.index), acked.index)


def _known_gap(
    case: _Case, takeover: Takeover | None, outage: Outage | None, excused: Callable[[str], bool]
) -> Kind | None:
    """Return the known gap that explains the loss, None if there is none."""
    if takeover is None or outage is None:
        return None
    if returned_unseen(case.ops, takeover, outage):
        return Kind.RETURNED
    return Kind.LAST_STANDING if last_standing(case.ops, takeover, outage, excused) else None


def _excuse(case: _Case, member: str, acked: Acked, takeover: Takeover | None, promised: int) -> Excuse | None:
    """Return why the member need not hold the record when the losing leader was elected; None if it must."""
    if takeover is None:
        return None
    theirs = [outage for outage in reversed(case.outages) if outage.node == member]
    for outage in theirs:
        if outage.lasts_at(takeover.elected):
            return Excuse(member=member, why="was down", op=outage.op)
    for outage in theirs:
        between = promised < outage.op.index and outage.begun < takeover.elected
        if outage.power_lost and between and not _spared(case, outage, acked):
            return Excuse(member=member, why="had lost unflushed bytes", op=outage.op)
    return None


def _spared(case: _Case, outage: Outage, acked: Acked) -> bool:
    """Return True if the member's log was long enough to hold the record when it recovered from the power loss."""
    for op, recovered in events_of(case.ops, Recovered):
        if op.process == outage.node and op.index > outage.op.index:
            return recovered.log_end_offset > acked.offset
    return False


def _explains(outage: Outage, cause: Change) -> bool:
    return (
        isinstance(cause.op.event, Recovered)
        and outage.power_lost
        and outage.node == cause.op.process
        and outage.op.index < cause.op.index
    )


def _alike(losses: Iterable[Loss]) -> list[list[Loss]]:
    groups: dict[tuple[object, ...], list[Loss]] = {}
    for loss in sorted(losses, key=lambda loss: (loss.offset, loss.ok.index)):
        groups.setdefault(loss.way, []).append(loss)
    return list(groups.values())


def _anomaly(ops: Sequence[Op], group: Sequence[Loss]) -> Anomaly:
    topic, partition = key_of(ops)
    first = group[0]
    return Anomaly(
        kind=first.kind,
        topic=topic,
        partition=partition,
        ranges=ranges_of(loss.offset for loss in group if loss.offset >= 0),
        nodes=(first.takeover.node,) if first.takeover else (),
        epoch=first.takeover.epoch if first.takeover else None,
        sentence=loss_sentence(group),
        proof=tuple(sorted({index for loss in group for index in loss.proof})),
    )
