"""The records that were acknowledged to clients, and the ISR that promised each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from checkers.facts.committed import commit_of
from checkers.facts.copies import copied, copies_of
from checkers.facts.fact import fact
from checkers.facts.isr import isr_states
from checkers.facts.moments import is_polled
from checkers.facts.sightings import fetches
from checkers.facts.view import at, final_logs, names_of, setup_of, traits
from harness.events import IsrChanged, Leader, MetadataState, Poll, Produce, Read
from harness.model import Op, OpType, events_of
from harness.target.traits import Commit

ACKS_ALL: Final = -1
ACKS_LEADER: Final = 1


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

    @property
    def by_all(self) -> bool:
        """Whether it was acknowledged with acks=all."""
        return self.record.acks == ACKS_ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """
    What a leader promised when it committed a record.

    Attributes:
        index: the index of the op that promised it: its first commit, or its acknowledgement.
        committed: the high watermark that passed it first, the writer's or a later leader's, None if none was
            reported.
        isrs: every ISR that whoever promised it had between the commit and the acknowledgement, whichever was
            recorded first; the last one in the metadata, if that leader did not report its own. An acknowledgement
            is the writer's promise, a commit without one that of the leader that committed.
    """

    index: int
    committed: Op | None
    isrs: tuple[tuple[str, ...], ...]

    @property
    def isr(self) -> tuple[str, ...]:
        """The ISR when it was promised."""
        return self.isrs[0] if self.isrs else ()


@fact
def acked_records(ops: Sequence[Op]) -> list[Acked]:
    """
    Return every record whose produce was ok, in the order of acknowledgement.

    Where only the leader has what is committed, acks=all promises no more than acks=1.
    """
    invoked: dict[tuple[str, str], int] = {}
    found: list[Acked] = []
    alone = traits(ops).commit is Commit.LEADER
    for op, record in events_of(ops, Produce):
        sent = (op.process, record.value)
        if alone and record.acks == ACKS_ALL:
            record = replace(record, acks=ACKS_LEADER)  # noqa: PLW2901
        if op.type is OpType.INVOKE:
            invoked[sent] = op.index
        elif op.type is OpType.OK:
            found.append(Acked(ok=op, record=record, invoked=invoked.get(sent, op.index)))
    return _with_offsets(ops, found)


def _with_offsets(ops: Sequence[Op], found: list[Acked]) -> list[Acked]:
    """
    Return the records, each that its client was told no offset of with the one at which it was seen.

    Values are unique in a run. One that was seen at several offsets, as it was sent again, counts at the first.
    """
    untold = {each.value for each in found if each.record.offset is None and each.record.acks != 0}
    if not untold:
        return found
    seen: dict[str, int] = {}
    for offset, value in _sights(ops):
        if value in untold:
            seen[value] = min(offset, seen.get(value, offset))
    return [
        replace(each, record=replace(each.record, offset=seen.get(each.value))) if each.value in untold else each
        for each in found
    ]


def _sights(ops: Sequence[Op]) -> Iterator[tuple[int, str]]:
    """Yield (offset, value) of each record that a final log holds, or that a client was shown."""
    for log in final_logs(ops).values():
        yield from ((offset, record.value) for offset, record in log.records.items() if record.value is not None)
    reads: Iterator[tuple[Op, Read | Poll]] = chain(events_of(ops, Read), events_of(ops, Poll))
    for op, shown in reads:
        if op.type is OpType.OK:
            yield from shown.records or ()


def written_by(ops: Sequence[Op], acked: Acked) -> Op | None:
    """Return the leader's append that wrote an acknowledged record, None if none was reported."""
    known = _writers(ops)
    if acked.index not in known:
        known[acked.index] = _written_by(ops, acked) if acked.offset >= 0 else None
    return known[acked.index]


@fact
def _writers(_ops: Sequence[Op]) -> dict[int, Op | None]:
    """Return the append of each acknowledgement that somebody has asked for, by the acknowledgement's index."""
    return {}


def _written_by(ops: Sequence[Op], acked: Acked) -> Op | None:
    found, later = copies_of(ops).written(acked.offset, acked.invoked, acked.index)
    if len(found) + len(later) > 1:
        # Two leaders may write at one offset at one time. Final logs show which append was whose.
        own, others = _origins(ops, acked)
        sure = [op for op in found if op.index in own]
        if sure and acked.by_all and not any(_commits(ops, acked, op) for op in sure):
            # An earlier leader may have had the same record there, unacknowledged, and have brought it back.
            sure = [op for op in found if op.index not in others and _commits(ops, acked, op)] or sure
        found = (
            sure
            or [op for op in later if op.index in own][:1]
            or [op for op in found if op.index not in others]
            or [op for op in later if op.index not in others][:1]
            or found
        )
    found = found or later[:1]
    if len(found) > 1 and acked.by_all:
        # What was acknowledged with acks=all is what its leader had committed by then.
        passed = [(op, commit_of(ops, acked.offset, op.index)) for op in found]
        found = [op for op, commit in passed if commit is not None and commit.index < acked.index] or found
    return found[-1] if found else None


def _commits(ops: Sequence[Op], acked: Acked, written: Op) -> bool:
    """Return True if the writer itself committed the record, before it was acknowledged."""
    commit = commit_of(ops, acked.offset, written.index)
    return commit is not None and commit.process == written.process and commit.index < acked.index


def _origins(ops: Sequence[Op], acked: Acked) -> tuple[set[int | None], set[int | None]]:
    """Return the origins of what final logs hold at the record's offset: of the record itself, and of others."""
    own: set[int | None] = set()
    others: set[int | None] = set()
    for node, changes in copies_of(ops).changes(acked.offset).items():
        log = final_logs(ops).get(node)
        held = log.records.get(acked.offset) if log else None
        if held is not None:
            (own if held.value == acked.value else others).add(changes[-1].origin)
    return own, others


def promise_of(ops: Sequence[Op], offset: int, written: Op | None, until: int, *, acknowledged: bool) -> Promise:
    """
    Return what was promised of a record.

    Args:
        ops: the ops of one partition and the global ones.
        offset: the record's offset.
        written: the leader's append, None if it is not known.
        until: the index of the acknowledgement; the one after the commit, if that alone promised it.
        acknowledged: whether the acknowledgement promised it.
    """
    setup = setup_of(ops)
    if written is not None:
        committed = commit_of(ops, offset, written.index)
        # Its events race with its answers: what it reports of the commit may come after the acknowledgement.
        first, last = (until, until) if committed is None else sorted((committed.index, until))
        # A later leader may commit what its writer has lost since; and before the writer does, who led on without
        # knowing, and acknowledges it by its own ISR.
        promiser = written if committed is None or acknowledged else committed
        isrs = _isrs(ops, promiser.process, first, last)
        if committed is not None and acknowledged and setup is not None and setup.idempotent:
            # A producer that asks again is answered by who leads by then, without another append.
            isrs += _isrs(ops, committed.process, first, last) if committed.process != written.process else ()
            isrs += _isrs_of_later_leaders(ops, {written.process, committed.process}, first, last)
        if isrs:
            return Promise(index=first, committed=committed, isrs=isrs)
    states = [state for op, state in events_of(ops, MetadataState) if op.index < until]
    isr = tuple(map(str, states[-1].isr)) if states else (setup.replicas if setup else ())
    return Promise(index=until, committed=None, isrs=(isr,))


def _isrs(ops: Sequence[Op], leader: str, since: int, until: int) -> tuple[tuple[str, ...], ...]:
    """Return the ISRs that a leader had between two ops, in its own order of events."""
    times, isrs = _reported_isrs(ops).get(leader, ([], []))
    first, last = bisect_right(times, since), bisect_right(times, until)
    return tuple(isrs[max(0, first - 1) : max(last, first, 1)])


def _isrs_of_later_leaders(
    ops: Sequence[Op], known: Collection[str], since: int, until: int
) -> tuple[tuple[str, ...], ...]:
    """Return the ISRs that other leaders reported between two ops; what they had before, they had of old."""
    found: list[tuple[str, ...]] = []
    for leader, (times, isrs) in _reported_isrs(ops).items():
        if leader not in known:
            found += isrs[bisect_right(times, since) : bisect_right(times, until)]
    return tuple(found)


@fact
def _reported_isrs(ops: Sequence[Op]) -> Mapping[str, tuple[list[int], list[tuple[str, ...]]]]:
    """Return each leader's ISRs by its own events: indexes and ISRs, in index order."""
    names = names_of(ops)
    found: dict[str, tuple[list[int], list[tuple[str, ...]]]] = {}
    events = [(op, led.isr) for op, led in events_of(ops, Leader)]
    events += [(op, changed.isr) for op, changed in events_of(ops, IsrChanged)]
    for op, isr in sorted(events, key=lambda each: each[0].index):
        times, known = found.setdefault(op.process, ([], []))
        times.append(op.index)
        known.append(tuple(names.get(broker, str(broker)) for broker in isr))
    return found


def broken_promises(ops: Sequence[Op], acked: Acked, written: Op, promise: Promise) -> list[tuple[str, Op | None]]:
    """
    Return why an acknowledgement with acks=all was false: (reason, op); [] if every ISR member had the record.

    Args:
        ops: the ops of one partition and the global ones.
        acked: the record.
        written: the leader's append.
        promise: what the leader promised with it.
    """
    given = Given(ops=ops, acked=acked, written=written, promise=promise)
    return [(text, promise.committed) for condition in PROMISES.values() for text in condition(given)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An acknowledgement with acks=all, and what the leader that gave it had done."""

    ops: Sequence[Op]
    acked: Acked
    written: Op
    promise: Promise


def _large_enough(given: Given) -> Iterator[str]:
    setup = setup_of(given.ops)
    largest = max((len(isr) for isr in given.promise.isrs), default=0)
    if setup is not None and largest < setup.min_isr:
        yield f"the ISR ({' '.join(given.promise.isr)}) was smaller than min ISR, {setup.min_isr}"


def _committed(given: Given) -> Iterator[str]:
    if given.promise.committed is None:
        yield f"{given.written.process}'s high watermark never passed it"


def _stood(given: Given) -> Iterator[str]:
    """The ISR stood in the metadata, not only at the leader; a watch may have missed a state between two."""
    known = _isrs_without_gap(given.ops)
    if known and not any(frozenset(isr) in known for isr in given.promise.isrs):
        yield f"the ISR ({' '.join(given.promise.isr)}) never stood in the metadata"


@fact
def _isrs_without_gap(ops: Sequence[Op]) -> frozenset[frozenset[str]]:
    """Return every ISR that stood in the metadata, none if one may have been missed."""
    states = isr_states(ops)
    if is_polled(ops) or not all(each.follows for each in states[1:]):
        return frozenset()
    return frozenset(frozenset(each.isr) for each in states)


def _copied(given: Given) -> Iterator[str]:
    """
    Every member of the ISR had copied the record.

    Brokers' events race to the collector, so a member's late append alone proves nothing: its fetches must show
    too that it had not copied the record. The fabric records a fetch before it passes it on.
    """
    acked, leader = given.acked, given.written.process
    changes = copied(given.ops, (acked.offset, acked.offset + 1, given.written.index))
    held = {leader, *(change.node for change in changes if change.op.index < acked.index)}
    always = set(given.promise.isr).intersection(*given.promise.isrs)
    for member in sorted(always - held):
        if last_fetch(given.ops, member, leader, acked.index) <= acked.offset:
            yield f"{member} was in the ISR and had not copied it"


# A test turns each off; a golden history then fails.
PROMISES: Final[dict[str, Callable[[Given], Iterator[str]]]] = {
    "the ISR was not below min ISR": _large_enough,
    "the leader committed the record": _committed,
    "the ISR stood in the metadata": _stood,
    "every member of the ISR had it": _copied,
}


def last_fetch(ops: Sequence[Op], follower: str, leader: str, until: int) -> int:
    """Return the offset of a follower's last fetch from a leader that was recorded before an op, -1 if none."""
    times, offsets = fetches(ops).get((follower, leader), ([], []))
    place = bisect_right(times, until)
    return offsets[place - 1] if place else -1


def acknowledged_at(acked: Acked) -> str:
    """Format how and when a record was acknowledged: `acknowledged (acks=all) at 1.234 s`."""
    acks = "all" if acked.by_all else acked.record.acks
    return f"acknowledged (acks={acks}) at {at(acked.ok)}"
