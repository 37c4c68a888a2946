"""
A loss where a majority of a group has what is committed: lawful only once faults may have taken that majority.

Nothing is concluded from elections: who was elected says nothing about a majority that kept the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from checkers.facts.nowhere import nowhere
from checkers.facts.proof import Breach
from checkers.facts.quorum import Promised, Standing, standing_of
from checkers.facts.sent import sent_values
from checkers.facts.view import FinalLog, final_logs
from checkers.rules.lost_record import Loss, Record
from harness.model import Kind, Op


def loss_of_quorum(ops: Sequence[Op], record: Record, log: FinalLog | None, read: Op | None) -> Loss:
    """
    Judge a record that a group had acknowledged, or that a reader was shown, and that is gone.

    Args:
        ops: the ops of one partition and the global ones.
        record: what is missing.
        log: the final leader's log, if it is missing there; else None.
        read: the client's read that lacks it, if the log has it.
    """
    none = nowhere(ops)
    loss = Loss(
        kind=Kind.UNPROMISED,
        record=record,
        writer_epoch=None,
        takeover=None,
        log=log,
        read=read if log is None else None,
        by_quorum=True,
        nowhere=() if none is None else none.members,
    )
    if record.acked is not None and not record.by_all:
        return loss
    promised = Promised(offset=record.offset, asked=_asked(ops, record), told=record.ok.index)
    standing = standing_of(ops, promised)
    if standing.lawful:
        return replace(loss, kind=Kind.PERMITTED, excused=standing.excuses)
    return replace(
        loss,
        kind=Kind.LOST if record.by_all else Kind.COMMITTED_LOST,
        excused=standing.excuses,
        breaches=(_breach(ops, promised, record.value, standing),),
    )


def _asked(ops: Sequence[Op], record: Record) -> int:
    """Return the index of the request that sent a record, of the first one if it was sent again."""
    sent = sent_values(ops).get(record.value)
    if record.acked is not None or sent is None:
        return record.ok.index if record.acked is None else record.acked.invoked
    return sent.asked(record.ok)


def _breach(ops: Sequence[Op], promised: Promised, value: str, standing: Standing) -> Breach:
    """Return why no fault excuses the loss, and who holds the record at the end."""
    members = listed(standing.members)
    taken = "; ".join(f"{each.member} {each.text}" for each in standing.excuses)
    text = f"a majority of {members} had it, and {'too few lost it' if taken else 'no fault took it from any'}: "
    text += "; ".join(filter(None, (taken, *_alike(standing.kept))))
    text += f"; {_holders(ops, promised.offset, value, standing.members)}"
    return Breach(text=text, ops=tuple(each.op for each in standing.excuses))


def _alike(kept: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield what happened to members, those together to which the same happened."""
    for what in dict.fromkeys(text for _, text in kept):
        nodes = [node for node, text in kept if text == what]
        yield f"{listed(nodes)} {'each ' if len(nodes) > 1 else ''}{what}"


def _holders(ops: Sequence[Op], offset: int, value: str, members: Sequence[str]) -> str:
    """Return who holds the record at the end and who does not, in words."""
    if nowhere(ops) is not None:
        return "nobody holds it at the end"
    has: list[str] = []
    lacks: list[str] = []
    unread: list[str] = []
    for node in members:
        log = final_logs(ops).get(node)
        if log is None:
            unread.append(node)
            continue
        records = [log.records[offset]] if offset in log.records else []
        there = any(each.value == value for each in (records if offset >= 0 else log.records.values()))
        (has if there else lacks).append(node)
    said = [f"{listed(has) or 'nobody'} {'hold' if len(has) > 1 else 'holds'} it at the end"]
    said += [f"{listed(lacks)} {'do' if len(lacks) > 1 else 'does'} not"] if lacks and has else []
    said += [f"the log of {listed(unread)} was not read"] if unread else []
    return ", ".join(said)


def listed(names: Sequence[str]) -> str:
    """Return names in words: `A, B and C`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
