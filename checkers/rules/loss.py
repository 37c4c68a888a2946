"""One lost record with its judgement: by the events of brokers where they report them, else by what logs show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from checkers.facts.acked import Acked, Promise, acknowledged_at, broken_promises, promise_of, written_by
from checkers.facts.committed import commit_of
from checkers.facts.copies import copies_of
from checkers.facts.elections import Takeover, takeovers
from checkers.facts.fates import Cause, End, Fate, fates_of
from checkers.facts.keepers import Keepers, keepers_of
from checkers.facts.kept import must_hold
from checkers.facts.known_gaps import last_standing, returned_unseen, returned_with_all
from checkers.facts.losing import losing_takeover
from checkers.facts.outages import Outage, outages
from checkers.facts.printed_cuts import cuts_below
from checkers.facts.proof import (
    Breach,
    Case,
    Excuse,
    breaches,
    copies_gone,
    election_breaches,
    ended_before,
    missing_evidence,
)
from checkers.facts.quorum import is_quorum
from checkers.facts.replica_log import Change
from checkers.facts.rot import is_rotten, rots
from checkers.facts.view import FinalLog, at, final_logs
from checkers.facts.window import is_forked
from checkers.rules.lost_record import Loss, Record
from checkers.rules.quorum_loss import loss_of_quorum
from checkers.rules.unreported import Unreported, faults_since, gone_at_end, judged
from harness.effect import Effect, nature_of
from harness.events import Recovered, Started
from harness.model import Kind, Op


def acked_record(ops: Sequence[Op], acked: Acked) -> Record:
    """Return an acknowledged record; with acks 0 or 1 nothing is promised unless the leader committed it."""
    written = written_by(ops, acked)
    promise: Promise | None = None
    if acked.by_all:
        promise = promise_of(ops, acked.offset, written, acked.index, acknowledged=True)
    elif written is not None and (committed := commit_of(ops, acked.offset, written.index)) is not None:
        promise = promise_of(ops, acked.offset, written, committed.index + 1, acknowledged=False)
    return Record(
        name=acked.name,
        value=acked.value,
        offset=acked.offset,
        said=acknowledged_at(acked),
        ok=acked.ok,
        written=written,
        promise=promise,
        acked=acked,
    )


def committed_record(ops: Sequence[Op], offset: int, written: Op, committed: Op) -> Record:
    """Return a record that a leader committed and that no client was told of."""
    return Record(
        name="a record",
        value="",
        offset=offset,
        said=f"committed at {at(committed)}",
        ok=committed,
        written=written,
        promise=promise_of(ops, offset, written, committed.index + 1, acknowledged=False),
        acked=None,
    )


def judge_loss(ops: Sequence[Op], record: Record, log: FinalLog | None, read: Op | None) -> Loss:
    """
    Judge one record that is missing.

    Args:
        ops: the ops of one partition and the global ones.
        record: what is missing.
        log: the final leader's log, if it is missing there; else None.
        read: the client's read that lacks it, if the log has it.
    """
    if is_quorum(ops):
        return loss_of_quorum(ops, record, log, read)
    written, offset = record.written, record.offset
    takeover = None
    if log is not None and offset >= 0:
        since = written.index if written else record.ok.index
        takeover = losing_takeover(ops, offset, record.value, written, since)
    loss = Loss(
        kind=Kind.LOST if record.by_all else Kind.COMMITTED_LOST,
        record=record,
        writer_epoch=_epoch_of(ops, written),
        takeover=takeover,
        log=log,
        read=read if log is None else None,
        cuts=() if copies_of(ops).reported or log is None else cuts_below(ops, offset, record.ok.index),
    )
    if offset < 0 and record.by_all and not copies_of(ops).reported:
        return _seen_nowhere(ops, loss)
    if record.promise is None:
        kept = takeover is None and log is not None and must_hold(ops, log, (offset, record.value), written)
        return loss if kept else _with_how(ops, replace(loss, kind=Kind.UNPROMISED))
    if takeover is None and log is not None and written is not None and is_rotten(ops, log, offset):
        return _rotten(ops, loss, written)
    if takeover is None and log is not None and is_forked(ops, log.node, offset):
        return replace(_with_how(ops, loss), kind=Kind.PERMITTED)
    if takeover is None:
        return loss if copies_of(ops).reported or log is None else _without_election(ops, loss)
    if not copies_of(ops).reported:
        return _by_sightings(ops, loss, record.promise, takeover)
    if written is None:
        if not any(change.origin is not None for theirs in _changes(ops, offset) for change in theirs):
            return replace(loss, breaches=(Breach(text="no broker ever appended anything there"),))
        return replace(loss, kind=Kind.UNCHECKED, lacking=f"no leader reported the append of {record.name}")
    return _by_events(ops, loss, record.promise, takeover, written)


def _rotten(ops: Sequence[Op], loss: Loss, written: Op) -> Loss:
    """Judge a record of which a fault took the last leader's copy: permitted if faults took all others too."""
    offset, excused, owing = loss.record.offset, list[Excuse](), list[Breach]()
    logs, fates = final_logs(ops), fates_of(ops, loss.record.offset, written.index)
    for node in sorted({*fates, *logs}):
        rot = next((each for each in rots(ops) if each.node == node and each.takes(offset)), None)
        last = fates.get(node, ())[-1:]
        if rot is not None and node in logs and is_rotten(ops, logs[node], offset):
            excused.append(Excuse(member=node, text=f"had a byte of it flipped at {at(rot.op)}", op=rot.op))
        elif last and last[0].end is not None and last[0].end.by_fault:
            end = last[0].end
            excused.append(Excuse(member=node, text=end.text, op=end.proof or end.op))
        elif last:
            text = "has it no more, by no fault" if last[0].end is None else last[0].end.text
            owing.append(Breach(text=f"{node} {text}", ops=(last[0].begun,)))
    return replace(
        loss, kind=loss.kind if owing else Kind.PERMITTED, excused=tuple(excused), breaches=tuple(owing)
    )


def _changes(ops: Sequence[Op], offset: int) -> Iterable[Sequence[Change]]:
    return copies_of(ops).changes(offset).values()


# --- brokers report events -----------------------------------------------------------------------------------
def _by_events(ops: Sequence[Op], loss: Loss, promise: Promise, takeover: Takeover, written: Op) -> Loss:
    """Follow every copy from the promise to the election."""
    record = loss.record
    case = Case(
        ops=ops,
        offset=record.offset,
        origin=written.index,
        promised=promise.index,
        isr=promise.isr,
        fates=fates_of(ops, record.offset, written.index),
        takeover=takeover,
    )
    broken: list[Breach] = []
    if record.acked is not None and record.by_all:
        broken = [
            Breach(text=f"the acknowledgement was false: {text}", ops=() if op is None else (op,))
            for text, op in broken_promises(ops, record.acked, written, promise)
        ]
    broken += breaches(case)
    excused, owing = copies_gone(case)
    found = replace(
        _with_how(ops, loss),
        excused=tuple(excused),
        owing=tuple(owing),
        breaches=tuple(broken),
        lacking=missing_evidence(case),
    )
    if broken:
        return found
    if found.lacking:
        return replace(found, kind=Kind.UNCHECKED)
    if takeover.unclean:
        return replace(found, kind=Kind.UNCLEAN)
    if (excused and not owing) or _cut_in_window(case):
        return replace(found, kind=Kind.PERMITTED)
    return replace(found, kind=_known_gap(case, {excuse.member for excuse in excused}) or found.kind)


def _known_gap(case: Case, excused: set[str]) -> Kind | None:
    """Return the known gap that explains the loss, None if there is none."""
    fate, until = _lost_first(case)
    lost = None if fate is None or fate.end is None else _outage_of(case, fate.node, fate.end)
    if fate is None or lost is None:
        return None
    if returned_unseen(case.ops, fate.node, lost, until):
        return Kind.RETURNED
    if fate.node != case.takeover.node:
        return None
    alone = last_standing(case.ops, case.takeover, lost, lambda member: member in excused)
    # Or with others that came back at once, so that all of them stayed in the ISR.
    return Kind.LAST_STANDING if alone or returned_with_all(case.ops, fate.node, lost) else None


def _cut_in_window(case: Case) -> bool:
    """
    Return True if the losing leader had cut it away as an upgrade allows: whoever has it still cannot keep it.

    Or if it had kept another record in its place, as it may then.
    """
    fate, _ = _lost_first(case)
    if is_forked(case.ops, case.takeover.node, case.offset, case.takeover.op.index):
        return True
    return fate is not None and fate.end is not None and fate.end.cause is Cause.WINDOW


def _lost_first(case: Case) -> tuple[Fate | None, int]:
    """Return the copy that the losing leader lacked, or another that led before it, and until when it did."""
    fate, until = case.last_copy(case.takeover.node), case.elected
    # The losing leader may have cut its log to that of another, which had led without the record before it.
    while fate is not None and fate.end is not None and fate.end.cause is Cause.FOLLOWED:
        until = fate.end.op.index
        fate = ended_before(case.fates.get(fate.end.leader, ()), until)
    return fate, until


def _outage_of(case: Case, node: str, end: End) -> Outage | None:
    """Return the outage in which a node lost a copy: to its power, or to who damaged or cut its log meanwhile."""
    theirs = [outage for outage in outages(case.ops) if outage.node == node and outage.op.index < end.op.index]
    if end.cause is Cause.POWER:
        return next((outage for outage in theirs if outage.op is end.proof), None)
    if end.cause is not Cause.HARNESS or not isinstance(end.op.event, Recovered | Started):
        return None
    cut = end.proof is not None and nature_of(end.proof).effect is Effect.LOG_CUT
    rotten = any(rot.op is end.proof for rot in rots(case.ops))
    return theirs[-1] if (cut or rotten) and theirs else None


def _with_how(ops: Sequence[Op], loss: Loss) -> Loss:
    """Return the loss with how the losing leader came to lack the record, if brokers reported it."""
    written, takeover = loss.record.written, loss.takeover
    if takeover is None or written is None:
        return loss
    theirs = fates_of(ops, loss.record.offset, written.index).get(takeover.node, ())
    had = [fate for fate in theirs if fate.begun.index < takeover.op.index]
    if not had:
        return replace(loss, how=f"{takeover.node} had not copied it")
    end = had[-1].end
    return loss if end is None else replace(loss, how=f"{takeover.node} {end.text}", cause=end.op)


# --- brokers report nothing ----------------------------------------------------------------------------------
def _without_election(ops: Sequence[Op], loss: Loss) -> Loss:
    """Judge a loss of which no election is to blame: a broker that lost its power may have led on in its epoch."""
    keepers = _keepers(ops, loss.record)
    if keepers is None or not faults_since(ops, keepers.assured.begun_ns):
        return loss
    broken = tuple(gone_at_end(keepers))
    if broken:
        return replace(loss, breaches=broken)
    return replace(loss, kind=Kind.UNCHECKED, lacking="a fault may have taken it, and no broker reported whether")


def _by_sightings(ops: Sequence[Op], loss: Loss, promise: Promise, takeover: Takeover) -> Loss:
    """Judge by what clients, links, faults and the metadata saw, and by final logs."""
    broken = tuple(election_breaches(ops, takeover))
    if broken:
        return replace(loss, breaches=broken)
    if takeover.unclean:
        return replace(loss, kind=Kind.UNCLEAN)
    keepers = _keepers(ops, loss.record)
    if keepers is None:
        return replace(loss, owing=promise.isr)
    found = judged(Unreported(ops=ops, keepers=keepers, isr=promise.isr, takeover=takeover))
    return replace(
        loss,
        kind=found.kind,
        excused=found.excused,
        owing=found.owing,
        breaches=found.breaches,
        lacking=found.lacking,
    )


def _keepers(ops: Sequence[Op], record: Record) -> Keepers | None:
    if record.assured is not None:
        return Keepers(ops, record.assured)
    return keepers_of(ops, record.offset, record.value)


def _seen_nowhere(ops: Sequence[Op], loss: Loss) -> Loss:
    """Judge a record that was acknowledged, no client knows where, and that nobody was shown or holds."""
    if faults_since(ops, loss.record.ok.time_ns):
        return replace(loss, kind=Kind.UNCHECKED, lacking="nobody saw at which offset it was")
    return replace(loss, breaches=(Breach(text="no log holds it, and no client was shown it"),))


def _epoch_of(ops: Sequence[Op], written: Op | None) -> int | None:
    """Return the epoch in which the writer led when it wrote; None if unknown."""
    if written is None:
        return None
    led = [t.epoch for t in takeovers(ops) if t.node == written.process and t.op.index < written.index]
    return led[-1] if led else None


def alike(losses: Sequence[Loss]) -> Iterator[list[Loss]]:
    """Yield the losses of one name that happened in the same way, by first offset."""
    groups: dict[tuple[object, ...], list[Loss]] = {}
    for loss in sorted(losses, key=lambda loss: (loss.record.offset, loss.record.ok.index)):
        groups.setdefault(loss.way, []).append(loss)
    yield from groups.values()
