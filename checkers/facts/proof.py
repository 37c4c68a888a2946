"""
The proof that a loss is permitted: every copy is followed from the promise to the election of the losing leader.

A loss is permitted only if all of this is proven:

- the acknowledgement was lawful: every member of the ISR had the record, and the ISR was not below min ISR;
- every copy that ended before the election was ended by a fault that may end it;
- no replica was let into the ISR without the record, or kept in it without it while another member had it;
- the election was lawful: from within the ISR, or unclean while the partition allows that;
- each member that still had the record was down when the leader was elected.

What breaks one of the first four is a *breach*, and the record is lost by it. A member that breaks only the last
*owes* the record: it had it and was up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.facts.copies import copies_of
from checkers.facts.elections import Takeover
from checkers.facts.fates import Cause, End, Fate
from checkers.facts.isr import isr_of_command, isr_states
from checkers.facts.known_gaps import joined_before_return, returned_unseen, returned_with_all
from checkers.facts.outages import Outage, outages
from checkers.facts.replica_log import UNKNOWN
from checkers.facts.silences import unheard
from checkers.facts.view import at, names_of, rules_of, setup_of
from checkers.facts.window import may_lack
from harness.effect import nature_of
from harness.events import (
    ControllerOffice,
    Elected,
    Follower,
    Injection,
    Leader,
    Member,
    Members,
    Started,
)
from harness.model import Op, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """The reason why a replica need not hold the record, with the op that proves it."""

    member: str
    text: str
    op: Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A condition of the proof that does not hold: a sentence without its end, and the ops that show it."""

    text: str
    ops: tuple[Op, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    One lost record that was promised, and the leader that was elected without it.

    Attributes:
        origin: the index of the leader's append that wrote it.
        promised: the index of the op that promised it.
        isr: the ISR that promised it.
        fates: every copy, by node.
    """

    ops: Sequence[Op]
    offset: int
    origin: int
    promised: int
    isr: tuple[str, ...]
    fates: Mapping[str, Sequence[Fate]]
    takeover: Takeover

    @property
    def elected(self) -> int:
        """The index of the election."""
        return self.takeover.elected

    def last_copy(self, node: str) -> Fate | None:
        """Return the node's last copy that began before the leader took over."""
        until = self.takeover.op.index
        return next((fate for fate in reversed(self.fates.get(node, ())) if fate.begun.index < until), None)

    def ended(self, fate: Fate) -> End | None:
        """Return the end of a copy if it ended before the election, and not to follow the leader that lacks it."""
        end = fate.end
        until = self.takeover.op.index if fate.node == self.takeover.node else self.elected
        if end is None or end.op.index >= until:
            return None
        return None if end.leader == self.takeover.node and end.op.index > self._obeyed(fate.node) else end

    def holds(self, node: str, index: int) -> bool:
        """Return True if the node had the record at that op."""
        return any(fate.holds_at(index) for fate in self.fates.get(node, ()))

    def _obeyed(self, node: str) -> int:
        """Return the index of the node's follower event in the losing leader's epoch, a large number if none."""
        for op, event in events_of(self.ops, Follower):
            if op.process == node and event.epoch == self.takeover.epoch:
                return op.index - 1
        return 1 << 62


def copies_gone(case: Case) -> tuple[list[Excuse], list[str]]:
    """Return the replicas whose copies are gone or out of reach by a fault, and the names of those that owe it."""
    excused: list[Excuse] = []
    owing: list[str] = []
    for node in _members(case):
        fate = case.last_copy(node)
        end = case.ended(fate) if fate is not None else None
        down = _down_at(case, node)
        if end is not None and end.by_fault:
            excused.append(Excuse(member=node, text=end.text, op=end.proof or end.op))
        elif down is not None and end is None:
            excused.append(Excuse(member=node, text=f"was down since {at(down.op)}", op=down.op))
        else:
            owing.append(node)
    return excused, owing


def breaches(case: Case) -> Iterator[Breach]:
    """Yield each condition of the proof, about copies, the ISR and the election, that does not hold."""
    for condition in CONDITIONS.values():
        yield from condition(case)


def missing_evidence(case: Case) -> str:
    """Return what the history lacks to follow the copies, "" if nothing."""
    copies = copies_of(case.ops)
    for node, changes in copies.changes(case.offset).items():
        for change in changes:
            if change.origin != UNKNOWN or change.op.index >= case.takeover.op.index:
                continue
            if copies.epochs.may_be(change, case.offset, case.origin):
                return f"what {node} copied at {at(change.op)} is not known: its leader reported no append of it"
    return ""


def _members(case: Case) -> tuple[str, ...]:
    """Return the members of the ISR that promised the record, and those that joined it before the election."""
    joined = [
        member
        for state in isr_states(case.ops)
        if case.promised < state.op.index < case.elected
        for member in state.joined
    ]
    return tuple(dict.fromkeys((*case.isr, *joined)))


def _down_at(case: Case, node: str) -> Outage | None:
    theirs = (outage for outage in outages(case.ops) if outage.node == node)
    return next((outage for outage in theirs if outage.lasts_at(case.elected)), None)


def _ends(case: Case) -> Iterator[Breach]:
    """Each copy that ended before the election was taken by a fault."""
    for node, fates in case.fates.items():
        for fate in fates:
            end = case.ended(fate)
            if end is None or end.by_fault:
                continue
            if end.cause is Cause.FOLLOWED and _lawfully_without(case, end):
                continue
            if end.cause is Cause.MOVED and _handed_over(case, end):
                continue
            # Whoever is no member when the record is promised, and has no copy of it any more, promises nothing.
            if end.op.index < case.promised and node not in case.isr:
                continue
            # A copy that ended, and that the node copied again before it was needed, did no harm.
            if fate is not case.last_copy(node):
                continue
            yield Breach(text=f"{node} {end.text}", ops=(end.op,) if end.proof is None else (end.op, end.proof))


def _lawfully_without(case: Case, end: End) -> bool:
    """Return True if the leader that a node followed had lost its own copy to a fault."""
    return _lost_to_fault(case, end.leader, end.op.index)


def _lost_to_fault(case: Case, node: str, index: int) -> bool:
    """Return True if a fault took a node's last copy that had ended by that op."""
    theirs = ended_before(case.fates.get(node, ()), index)
    return theirs is not None and theirs.end is not None and theirs.end.by_fault


def _handed_over(case: Case, end: End) -> bool:
    """Return True if a member of the ISR had the record when it was moved to them, or had lost it to a fault."""
    states = [state.isr for state in isr_states(case.ops) if state.op.index < end.op.index]
    others = [member for member in (states[-1] if states else ()) if member != end.op.process]
    return any(case.holds(each, end.op.index) or _lost_to_fault(case, each, end.op.index) for each in others)


def ended_before(fates: Sequence[Fate], index: int) -> Fate | None:
    """Return a node's last copy that ended before that op; None if none did."""
    return next((fate for fate in reversed(fates) if fate.end and fate.end.op.index < index), None)


def _joins(case: Case) -> Iterator[Breach]:
    """No replica joined the ISR without the record after it was promised."""
    for state in isr_states(case.ops):
        if not case.promised < state.op.index < case.elected:
            continue
        for member in state.joined:
            # Its append may reach the collector after the watch of the metadata.
            later = any(fate.begun.index > state.op.index for fate in case.fates.get(member, ()))
            if (
                case.holds(member, state.op.index)
                or later
                or joined_before_return(case.ops, member, state.op, case.offset)
                or may_lack(case.ops, member, case.offset, case.origin, state.op.index)
            ):
                continue
            if state.leader is not None and not case.holds(state.leader, state.op.index):
                continue
            yield Breach(text=f"{member} was let into the ISR at {at(state.op)} without it", ops=(state.op,))


def _stays(case: Case) -> Iterator[Breach]:
    """No replica that lost the record was kept in the ISR without it while another member had it and was up."""
    for node in case.fates:
        fate = case.last_copy(node)
        end = None if fate is None else case.ended(fate)
        if end is None or end.cause is not Cause.POWER:
            continue
        obeyed = _first_command(case, node, end.op.index)
        outage = _outage(case, end)
        if obeyed is None or returned_unseen(case.ops, node, outage, case.elected):
            continue
        if returned_with_all(case.ops, node, outage):
            continue
        states = [s.isr for s in isr_states(case.ops) if obeyed.index < s.op.index < case.elected]
        isr = isr_of_command(case.ops, obeyed)
        others = [each for each in isr if each != node and _serves(case, each, obeyed.index)]
        # A controller that has seen the node's return removes it, in this state or the next.
        if others and all(node in each for each in (isr, *states)):
            text = f"{node} stayed in the ISR at {at(obeyed)} without it, while {' and '.join(others)} had it"
            yield Breach(text=text, ops=(end.op, obeyed))


def _first_command(case: Case, node: str, after: int) -> Op | None:
    """Return the first command that a node obeyed after its return, and that should know of the return."""
    told = [(op, led.epoch) for op, led in events_of(case.ops, Leader)]
    told += [(op, word.epoch) for op, word in events_of(case.ops, Follower)]
    theirs = [
        op
        for op, epoch in told
        if op.process == node and after < op.index < case.elected and _knows(case.ops, node, epoch, op.index)
    ]
    return min(theirs, key=lambda op: op.index, default=None)


def _knows(ops: Sequence[Op], node: str, epoch: int, index: int) -> bool:
    """
    Return True if a command was decided by a controller that had seen the node return, or never would.

    Before KIP-380 a controller cannot tell a registration from the one that it replaced (KAFKA-1120).
    """
    decided = [(op, decision) for op, decision in events_of(ops, Elected) if decision.epoch == epoch]
    deciders = [(op.process, op.index) for op, _ in decided] or [(node, index)]
    if not any(rules_of(ops, *each).get("fence_broker_epoch") == "yes" for each in deciders):
        return True
    registered = [r.incarnation for op, r in events_of(ops, Member) if op.process == node and op.index < index]
    saw = [decision.saw or () for _, decision in decided]
    return bool(registered) and any(incarnation == registered[-1] for each in saw for _, incarnation in each)


def _serves(case: Case, node: str, index: int) -> bool:
    """Return True if a node has the record, is up and has a session, so that a controller may elect it."""
    down = any(outage.node == node and outage.lasts_at(index) for outage in outages(case.ops))
    return case.holds(node, index) and not down and not _away(case.ops, node, index)


def _away(ops: Sequence[Op], node: str, index: int) -> bool:
    """Return True if a fault ended the node's session, or let it end, and the node has not registered since."""
    if unheard(ops, node, -1, index):
        shown = [seen for op, seen in events_of(ops, Members) if op.index < index]
        if shown and node not in shown[-1].nodes:
            return True
    left = [
        op.index
        for op, fault in events_of(ops, Injection)
        if op.index < index and node in fault.nodes and nature_of(op).effect.leaves_the_cluster
    ]
    registered = [op.index for op, _ in events_of(ops, Member) if op.process == node and op.index < index]
    return bool(left) and max(left) > max(registered, default=-1)


def _outage(case: Case, end: End) -> Outage:
    return next(outage for outage in outages(case.ops) if end.proof is outage.op and outage.node == end.op.process)


def election_breaches(ops: Sequence[Op], takeover: Takeover) -> Iterator[Breach]:
    """The leader was elected from within the ISR, or uncleanly where that is allowed and no member could lead."""
    if not takeover.unclean:
        return
    setup = setup_of(ops)
    if setup is not None and not setup.unclean:
        text = f"{takeover.node} was elected from outside the ISR, though unclean election is off"
        yield Breach(text=text, ops=(takeover.op,))
        return
    names = names_of(ops)
    before = next((state.isr for state in reversed(isr_states(ops)) if state.op.index < takeover.elected), ())
    for op, elected in events_of(ops, Elected):
        if elected.epoch == takeover.unclean_in:
            saw = {names.get(broker) for broker, _ in elected.saw or ()}
            there = [member for member in before if member in saw and not _bounced(ops, op, elected, member)]
            if there:
                text = f"{takeover.node} was elected from outside the ISR, though {there[0]} of it was registered"
                yield Breach(text=text, ops=(op,))


def _bounced(ops: Sequence[Op], decided: Op, elected: Elected, member: str) -> bool:
    """
    Return True if a controller may have taken a registered member for one that failed: its registration was new.

    Source:  KIP-380: a larger incarnation of the same id is a failure, then a start-up. In between no member of
             the ISR is live, and where that is allowed an unclean election follows.
    """
    if rules_of(ops, decided.process, decided.index).get("fence_broker_epoch") != "yes":
        return False
    names = names_of(ops)
    incarnation = next(
        (incarnation for broker, incarnation in elected.saw or () if names.get(broker) == member), None
    )
    came = [
        op.index for op, each in events_of(ops, Member) if (op.process, each.incarnation) == (member, incarnation)
    ]
    if not came:
        # It has not reported that registration: a member that dies before it is ready never does. The watch saw it
        # away before, or it has started since; one that takes its registration over at once is never away.
        gone = [op.index for op, seen in events_of(ops, Members) if member not in seen.nodes]
        begun = [op.index for op, _ in events_of(ops, Started) if op.process == member]
        came = [index for index in (*gone, *begun) if index < decided.index]
    theirs = [
        op.index
        for op, office in events_of(ops, ControllerOffice)
        if office.active and op.process == decided.process and op.index < decided.index
    ]
    known = any(
        op.index < decided.index
        and op.process == decided.process
        and incarnation in [each for _, each in saw.saw or ()]
        for op, saw in events_of(ops, Elected)
        if saw.epoch != elected.epoch
    )
    return bool(theirs) and any(theirs[-1] < index for index in came) and not known


def _election(case: Case) -> Iterator[Breach]:
    return election_breaches(case.ops, case.takeover)


# A test turns each off; a golden history then fails.
CONDITIONS: Final[dict[str, Callable[[Case], Iterator[Breach]]]] = {
    "every copy ended by a fault": _ends,
    "nobody joined the ISR without it": _joins,
    "nobody stayed in the ISR without it": _stays,
    "the election was lawful": _election,
}
