"""
The judgement of a record that a consumer was shown and that the last leader's final log does not hold.

A record that was read was below a high watermark: that is a promise, like an acknowledgement with acks=all. Its
loss is judged by the same proof, and is permitted where the proof holds. Where a quorum commits, a majority had
it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from checkers.facts.acked import Acked, acked_records, promise_of
from checkers.facts.assured import Assured
from checkers.facts.committed import commit_of
from checkers.facts.compacted import may_be_removed
from checkers.facts.copies import copies_of
from checkers.facts.fact import fact
from checkers.facts.isr import isr_states
from checkers.facts.known_gaps import undone_cut
from checkers.facts.moments import is_polled, margin_ns
from checkers.facts.outages import Outage
from checkers.facts.polls import Polled, Shown, gone, shown_by_reads, twice_polled
from checkers.facts.proof import Excuse
from checkers.facts.quorum import is_quorum
from checkers.facts.reigns import first_risk_ns, until
from checkers.facts.replica_log import UNKNOWN
from checkers.facts.sent import sent_values
from checkers.facts.uncommitted import dirty_records
from checkers.facts.view import at, leaders_log
from checkers.rules.loss import acked_record, committed_record, judge_loss
from checkers.rules.lost_record import Loss, Record
from harness.events import Produce
from harness.model import Kind, Op


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property stores its value in the instance's dictionary
class ReadLoss:
    """
    One record that was read and is gone.

    Attributes:
        record: with what was promised of it.
        told: whether another rule reports it.
        lacking: why the loss cannot be judged, "" if nothing at all may explain it, None if it can be.
        undone: the power loss that brought the record back to the node that showed it, None if none did.
    """

    ops: Sequence[Op]
    record: Record
    told: bool
    lacking: str | None = None
    undone: Outage | None = None

    @cached_property
    def loss(self) -> Loss:
        """The judgement; its kind is READ_LOST where no proof permits the loss, and no other rule reports it."""
        log = leaders_log(self.ops)
        if self.lacking is None:
            loss = judge_loss(self.ops, self.record, log, None)
            if self.told or loss.kind not in (Kind.LOST, Kind.COMMITTED_LOST):
                return loss
            return replace(loss, kind=Kind.READ_LOST)
        kind = Kind.UNCHECKED if self.lacking else Kind.READ_LOST
        excused: tuple[Excuse, ...] = ()
        if self.undone is not None:
            kind, text = Kind.RETURNED, f"had cut it, and its loss of power at {at(self.undone.op)} undid that"
            excused = (Excuse(member=self.undone.node, text=text, op=self.undone.op),)
        return Loss(
            kind=kind,
            excused=excused,
            record=self.record,
            writer_epoch=None,
            takeover=None,
            lacking=self.lacking,
            log=log,
            read=None,
        )


@fact
def read_losses(ops: Sequence[Op]) -> Mapping[Shown, ReadLoss]:
    """
    Return every record that a poll showed and that is gone, in the order of the first polls.

    Left out is what was no promise and has another name: a record that was never sent, or that stands elsewhere,
    or that was shown before it was committed.
    """
    missing = {each: polled for each, polled in gone(ops).items() if not may_be_removed(ops, *each)}
    if not missing:
        return {}
    acked = {(each.offset, each.value): each for each in acked_records(ops)}
    dirty, twice, sent = dirty_records(ops), twice_polled(ops), sent_values(ops)
    return {
        shown: _read_loss(ops, shown, polled, acked.get(shown))
        for shown, polled in missing.items()
        if shown not in dirty and shown[1] not in twice and (known := sent.get(shown[1])) and known.appends_max
    }


def _read_loss(ops: Sequence[Op], shown: Shown, polled: Polled, acked: Acked | None) -> ReadLoss:
    record = None if acked is None else acked_record(ops, acked)
    if record is not None and record.promise is not None:
        return ReadLoss(ops=ops, record=record, told=True)
    followed = copies_of(ops).reported and not is_quorum(ops)
    record, told = _committed(ops, shown, polled) if followed else (None, False)
    if record is not None:
        return ReadLoss(ops=ops, record=record, told=told)
    record = _read(ops, shown, polled)
    told = acked is None and shown in shown_by_reads(ops)
    lacking = _doubt(ops, shown, polled, record)
    undone = None if lacking is None else _undone(ops, shown, polled)
    return ReadLoss(ops=ops, record=record, told=told, lacking=lacking, undone=undone)


def _undone(ops: Sequence[Op], shown: Shown, polled: Polled) -> Outage | None:
    """Return the power loss that undid the cut of what was shown, if no controller could know of it."""
    if not polled.event.node or len(_origins(ops, shown, polled) - {UNKNOWN}) != 1:
        return None
    return undone_cut(ops, shown[0], polled.event.node, polled.invoked.index)


def _origins(ops: Sequence[Op], shown: Shown, polled: Polled) -> frozenset[int]:
    """
    Return the leaders' appends of which the node that answered may have shown its copy, UNKNOWN among them.

    A client that does not tell whom it asked may have shown any copy that was there before its poll ended, since
    it fetches ahead; but not the one that the last leader still has, which is another record.
    """
    changes = copies_of(ops).changes(shown[0])
    if not polled.event.node:
        everywhere = (
            each for of_node in changes.values() for each in of_node if each.op.index <= until(ops, polled)
        )
        log = leaders_log(ops)
        last = {each.origin for each in changes.get(log.node if log else "", ())[-1:]}
        return frozenset(each.origin for each in everywhere if each.origin is not None) - last
    theirs = [each for each in changes.get(polled.event.node, ()) if each.op.index <= until(ops, polled)]
    before = [each for each in theirs if each.op.index < polled.invoked.index][-1:]
    within = [each for each in theirs if each.op.index >= polled.invoked.index]
    return frozenset(each.origin for each in (*before, *within) if each.origin is not None)


def _committed(ops: Sequence[Op], shown: Shown, polled: Polled) -> tuple[Record | None, bool]:
    """Return the commit of what was shown, and whether the last leader lacks it, so that `committed` says so."""
    log = leaders_log(ops)
    final = copies_of(ops).changes(shown[0]).get(log.node if log else "", ())
    last = {each.origin for each in final[-1:]}
    # Of several, the one that is gone.
    for origin in sorted(_origins(ops, shown, polled) - {UNKNOWN}, key=lambda each: (each in last, -each)):
        commit = commit_of(ops, shown[0], origin)
        if commit is not None:
            written = ops[bisect_left(ops, origin, key=attrgetter("index"))]
            return committed_record(ops, shown[0], written, commit), origin not in last
    return None, False


def _doubt(ops: Sequence[Op], shown: Shown, polled: Polled, record: Record) -> str | None:
    """Return why the loss cannot be judged, "" if nothing at all may explain it, None if it can be."""
    if is_quorum(ops):
        return None  # what anybody shows was committed
    if copies_of(ops).reported:
        if not polled.event.node:
            return "the client did not tell which node showed it"
        # The last leader that had it never committed it, or nobody wrote anything there.
        followed = _origins(ops, shown, polled) or {UNKNOWN} if copies_of(ops).changes(shown[0]) else frozenset()
        return "no broker reported the copy that was shown" if UNKNOWN in followed else ""
    if record.assured is not None and not record.assured.members:
        doubt = f"it is not known whether the node that showed it led at {at(record.ok)}, and faults took records"
        return "" if first_risk_ns(ops) is None else doubt
    return None


# --- by what was seen ------------------------------------------------------------------------------------------
def _read(ops: Sequence[Op], shown: Shown, polled: Polled) -> Record:
    offset, value = shown
    return Record(
        name=f"record {sent_values(ops)[value].name}",
        value=value,
        offset=offset,
        said=f"shown by {polled.said}",
        ok=polled.ok,
        written=None,
        promise=promise_of(ops, offset, None, polled.ok.index, acknowledged=False),
        acked=None,
        assured=None if copies_of(ops).reported or is_quorum(ops) else _assured(ops, shown, polled),
    )


def _assured(ops: Sequence[Op], shown: Shown, polled: Polled) -> Assured:
    """
    Return which nodes must have had the record when it was shown: the ISR, if the node that answered led it.

    A node that was deposed and has not heard of it may lawfully show what was lost since, if anything was. Where
    the metadata are polled, it may have been deposed between two looks.
    """
    margin = margin_ns(ops)
    since, last = polled.invoked.time_ns - margin, polled.ok.time_ns + margin
    known = isr_states(ops)
    first = max((place for place, state in enumerate(known) if state.op.time_ns <= since), default=0)
    around = [state for state in known[first:] if state.op.time_ns <= last]
    led = bool(around) and all(state.leader == polled.event.node for state in around) and not is_polled(ops)
    risk = first_risk_ns(ops)
    sure = led or (bool(around) and (risk is None or risk > polled.ok.time_ns))
    members = frozenset.intersection(*(frozenset(state.isr) for state in around)) if sure else frozenset()
    event = polled.event
    record = Produce(
        topic=event.topic, partition=event.partition, name="", acks=-1, codec="", value=shown[1], offset=shown[0]
    )
    read = Acked(ok=polled.ok, record=record, invoked=polled.invoked.index)
    return Assured(acked=read, members=members, begun_ns=polled.invoked.time_ns)
