"""
Losses where brokers report nothing: judged by who must still have had the record when a leader without it came.

A replica that must have had it and is seen without it proves the loss. A power loss of every replica that promised
it, or its being down, permits the loss. All else is unchecked, with what is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.facts.elections import Takeover, takeovers
from checkers.facts.isr import isr_states
from checkers.facts.keepers import Keepers
from checkers.facts.keeping import Keeping, Standing, Why
from checkers.facts.outages import outages
from checkers.facts.proof import Breach, Excuse
from checkers.facts.view import at
from harness.effect import LOSSY, nature_of
from harness.events import Injection
from harness.model import Kind, Op, events_of

_BY_FAULT: Final = frozenset({Why.POWER, Why.DELETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreported:
    """
    One lost record whose copies nobody reported.

    Attributes:
        keepers: who must have had it when.
        isr: the ISR that promised it, as the metadata last showed it.
        takeover: the losing leader.
    """

    ops: Sequence[Op]
    keepers: Keepers
    isr: tuple[str, ...]
    takeover: Takeover


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was found: the kind, and why, as in a Loss."""

    kind: Kind
    excused: tuple[Excuse, ...] = ()
    owing: tuple[str, ...] = ()
    breaches: tuple[Breach, ...] = ()
    lacking: str = ""


def judged(case: Unreported) -> Judged:
    """Return the judgement of a loss after a lawful, clean election."""
    broken = tuple(_breaches(case))
    excuses = {member: _excuse(case, member) for member in _members(case)}
    excused = tuple(excuse for excuse in excuses.values() if excuse is not None)
    owing = tuple(member for member, excuse in excuses.items() if excuse is None)
    if broken or not faults_since(case.ops, case.keepers.assured.begun_ns):
        return Judged(kind=Kind.LOST, excused=excused, owing=owing, breaches=broken)
    if excused and not owing:
        return Judged(kind=Kind.PERMITTED, excused=excused)
    text = " and ".join(_doubt(case, member) for member in owing)
    return Judged(kind=Kind.UNCHECKED, excused=excused, owing=owing, lacking=text)


def faults_since(ops: Sequence[Op], since_ns: int) -> bool:
    """Return True if a fault since that time may have taken a record from a disk."""
    return any(op.time_ns >= since_ns and nature_of(op).effect in LOSSY for op, _ in events_of(ops, Injection))


def gone_at_end(keepers: Keepers) -> Iterator[Breach]:
    """Yield each replica that is without the record by no fault at the end."""
    for node in keepers.nodes:
        last = keepers.at_end(node)
        if last is not None and last.standing is Standing.GONE and last.op is not None:
            yield Breach(text=f"{node} {last.text}", ops=(last.op,))


def _breaches(case: Unreported) -> Iterator[Breach]:
    """Each replica that had to have it at the election, or while the losing leader led, and is seen without it."""
    keepers, takeover = case.keepers, case.takeover
    now = takeover.op.time_ns
    until = next((each.op.time_ns for each in takeovers(case.ops) if each.op.index > takeover.op.index), None)
    for node in keepers.nodes:
        found = keepers.before(node, takeover.node, now)
        if node == takeover.node and until is not None:
            found = keepers.before(node, takeover.node, until)
        if keepers.stays_due(node, now):
            found = keepers.at_end(node)
        if found is not None and found.standing is Standing.GONE and found.op is not None:
            yield Breach(text=f"{node} {found.text}", ops=(found.op,))


def _excuse(case: Unreported, member: str) -> Excuse | None:
    """Return why the member need not have the record at the election; None if it must, or may."""
    for outage in reversed(outages(case.ops)):
        if outage.node == member and outage.lasts_at(case.takeover.elected):
            return Excuse(member=member, text=f"was down since {at(outage.op)}", op=outage.op)
    found = _standing(case, member)
    if found is None or found.why not in _BY_FAULT or found.op is None:
        return None
    took = "lost unflushed bytes with its power" if found.why is Why.POWER else f"lost it to {found.op.f}"
    return Excuse(member=member, text=f"{took} at {at(found.op)}", op=found.op)


def _doubt(case: Unreported, member: str) -> str:
    found, node = _standing(case, member), case.takeover.node
    if found is not None and found.leader:
        return f"{member} may have followed {found.leader}, which need not have had it"
    if found is not None and found.standing is Standing.DUE:
        return f"{member} had it and could lead, and no broker reported why {node} was elected without it"
    return f"nothing shows whether {member} had it"


def _standing(case: Unreported, member: str) -> Keeping | None:
    return case.keepers.before(member, case.takeover.node, case.takeover.op.time_ns)


def _members(case: Unreported) -> tuple[str, ...]:
    """Return the members of the ISR that promised the record, and those that joined it before the election."""
    promised = case.keepers.assured.acked.index
    joined = [
        member
        for state in isr_states(case.ops)
        if promised < state.op.index < case.takeover.elected
        for member in state.joined
    ]
    return tuple(dict.fromkeys((*case.isr, *joined)))
