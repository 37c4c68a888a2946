"""
Only the controller in office writes leaders to the metadata, and each new office has a higher controller epoch.

Every write of a controller checks /controller_epoch, under every protocol of this repository and in Apache Kafka
from 1.1 on; a leader epoch that an older controller wrote above a newer controller's was not fenced.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.definition import Definition
from checkers.facts.fact import fact
from checkers.facts.moments import (
    anomaly,
    leader_of,
    margin_ns,
    never_stood,
    once,
    settled,
    states_of_epoch,
    whole,
)
from checkers.facts.view import at, names_of, noun
from checkers.rules.commands import foreign_commands
from harness.events import ControllerNamed, ControllerOffice, Elected, Injection, Started
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.WRONG_CONTROLLER,
        formula="exists elected(n, e) with no controller(n, c, active) before it in n's process, or resigned "
        "since; or controller(n, c, active), controller(m, c, active) of two processes; or controller(n, "
        "c, active) after controller(n, d, active) with c <= d; or elected(n, e) in office c, elected(m, "
        "f) in office d: e <= f and c > d; or elected(n, e) and state(e) after controller(m, d, "
        "active) with d > c; or state(e) after an office began and before an elected of it, and no "
        "elected(e); or "
        "elected(e) and no state(e) where versions have no gap; or learned(n -> x) after an "
        "accepted learned(m -> x), m in office and n not since",
        words="A node that is not controller decided or commanded, two controllers had one epoch, a controller "
        "epoch fell, or the metadata and the controllers' own reports contradict each other.",
        evidence="broker controller, elected, started; the metadata's controller and state; fabric learned",
        unchecked="Nothing: a decision whose controller did not live to report it is passed over.",
        source="KAFKA-6082; Kafka Replication Design V3, D",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """One office of a controller, as the node reported it; op is the report, `until` that of its end."""

    node: str
    epoch: int
    op: Op
    until: Op | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One `elected` with the office in which its node made it; None if it was not in office."""

    op: Op
    event: Elected
    office: Office | None


def controllers(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find decisions and commands of nodes that are not controller, and controller epochs that fall or repeat.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each decision, office, state or command that must not be.

    Source:  KAFKA-6082; Kafka Replication Design V3, D.
    """
    wrong = [*_offices(ops), *_decisions(ops), *_states(ops), *foreign_commands(ops)]
    return once(wrong)


@fact
def replayed(ops: Sequence[Op]) -> tuple[list[Office], list[Decision], list[tuple[Op, str]]]:
    """Return the offices, the decisions, and each contradiction in one node's own reports, in index order."""
    reports = [*events_of(ops, ControllerOffice), *events_of(ops, Elected), *events_of(ops, Started)]
    held: dict[str, int] = {}
    offices: list[Office] = []
    decisions: list[Decision] = []
    odd: list[tuple[Op, str]] = []
    for op, event in sorted(reports, key=lambda report: report[0].index):
        mine = held.get(op.process)
        if isinstance(event, Elected):
            decisions.append(Decision(op=op, event=event, office=None if mine is None else offices[mine]))
        elif isinstance(event, ControllerOffice) and event.active:
            held[op.process] = len(offices)
            offices.append(Office(node=op.process, epoch=event.epoch, op=op))
        elif mine is not None:
            held.pop(op.process)
            office = offices[mine]
            offices[mine] = Office(node=office.node, epoch=office.epoch, op=office.op, until=op)
            if isinstance(event, ControllerOffice) and event.epoch != office.epoch:
                odd.append((op, f"{op.process} left controller epoch {event.epoch}; it held {office.epoch}"))
        elif isinstance(event, ControllerOffice):
            odd.append((op, f"{op.process} left controller epoch {event.epoch}, which it did not hold"))
    return offices, decisions, odd


def _offices(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield offices that share an epoch, whose epochs fall, or that the metadata never showed."""
    kind = Kind.WRONG_CONTROLLER
    offices, decisions, odd = replayed(ops)
    for op, text in odd:
        yield anomaly(ops, kind, f"{text} (at {at(op)})", [op.index], [op.process])
    by_epoch: dict[int, Office] = {}
    last: dict[str, Office] = {}
    for office in offices:
        other = by_epoch.setdefault(office.epoch, office)
        if other is not office:
            text = f"{other.node} (at {at(other.op)}) and {office.node} (at {at(office.op)}) both took controller"
            nodes = [other.node, office.node]
            yield anomaly(ops, kind, f"{text} epoch {office.epoch}", [other.op.index, office.op.index], nodes)
        before = last.get(office.node)
        if before is not None and office.epoch < before.epoch:
            text = f"{office.node} took controller epoch {office.epoch} at {at(office.op)}, after {before.epoch}"
            yield anomaly(ops, kind, text, [before.op.index, office.op.index], [office.node])
        last[office.node] = office
    shown = [(op, node.node) for op, node in events_of(ops, ControllerNamed) if node.node is not None]
    named = {node for _, node in shown}
    deciding = {decision.office.op.index for decision in decisions if decision.office is not None}
    for office in offices:
        if not shown or office.node in named or office.op.index not in deciding:
            continue
        # A watch tells what is there when it is read: not an office that ended before that, in favour of a newer.
        if not any(other.epoch > office.epoch and other.node in named for other in offices):
            text = f"{office.node} decided as controller of epoch {office.epoch} from {at(office.op)} on, and "
            text += f"{noun(ops)} never named it controller"
            yield anomaly(ops, kind, text, [office.op.index, shown[-1][0].index], [office.node])
    yield from _order(ops, offices, shown)


def _order(ops: Sequence[Op], offices: Sequence[Office], shown: Sequence[tuple[Op, str]]) -> Iterator[Anomaly]:
    """Yield controller epochs that fall in the metadata's order, if each office is seen in both."""
    theirs: dict[str, list[Op]] = {}
    for op, node in shown:
        theirs.setdefault(node, []).append(op)
    ours: dict[str, list[Office]] = {}
    for office in offices:
        ours.setdefault(office.node, []).append(office)
    if {node: len(seen) for node, seen in theirs.items()} != {node: len(own) for node, own in ours.items()}:
        return
    pairs = sorted(
        ((op, office) for node in theirs for op, office in zip(theirs[node], ours[node], strict=True)),
        key=lambda pair: pair[0].index,
    )
    newest: tuple[Op, Office] | None = None
    for op, office in pairs:
        if newest is not None and office.epoch < newest[1].epoch and office.node != newest[1].node:
            text = f"{office.node} became controller at {at(op)} in epoch {office.epoch}, after {newest[1].node}"
            proof = [op.index, office.op.index, newest[0].index, newest[1].op.index]
            text += f" in epoch {newest[1].epoch}"
            yield anomaly(ops, Kind.WRONG_CONTROLLER, text, proof, [office.node, newest[1].node])
        if newest is None or office.epoch > newest[1].epoch:
            newest = (op, office)


def _decisions(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield decisions out of office, below a newer controller's, twice for one epoch, or against the metadata."""
    kind, names = Kind.WRONG_CONTROLLER, names_of(ops)
    offices, decisions, _ = replayed(ops)
    by_epoch: dict[int, Decision] = {}
    for decision in decisions:
        op, event = decision.op, decision.event
        said = f"{op.process} reported at {at(op)} that it elected epoch {event.epoch}"
        if decision.office is None:
            yield anomaly(ops, kind, f"{said}, and was not in office", [op.index], [op.process], event.epoch)
        other = by_epoch.setdefault(event.epoch, decision)
        if other is not decision:
            proof = [other.op.index, op.index]
            text = f"{said}, which {other.op.process} had elected at {at(other.op)}"
            yield anomaly(ops, kind, text, proof, [op.process, other.op.process], event.epoch)
        if proof_of := never_stood(ops, event.epoch, op):
            text = f"{said}, and {noun(ops)} never had that epoch"
            yield anomaly(ops, kind, text, [op.index, *proof_of], [op.process], event.epoch)
        else:
            yield from _against_state(ops, decision, names, said)
    yield from _deposed(ops, offices, by_epoch)


def _against_state(ops: Sequence[Op], decision: Decision, names: dict[int, str], said: str) -> Iterator[Anomaly]:
    """Yield a decision whose leader, or whose ISR, no state of its epoch has."""
    event, seen = decision.event, states_of_epoch(ops).get(decision.event.epoch, [])
    if not seen:
        return
    leader = names.get(event.leader)
    isr = {names.get(member, str(member)) for member in event.isr}
    # The report may name the ISR that the new leader wrote meanwhile, so a gap in the versions may hide it.
    proof = [decision.op.index, seen[0][0].index]
    led = leader_of(ops, event.epoch)
    if led is not None and led[1].leader != leader:
        text = f"{said} with leader {leader or 'none'}; {noun(ops)} has {led[1].leader or 'none'}"
    elif whole(ops, event.epoch) and not any(isr == set(state.isr) for _, state in seen):
        text = f"{said} with ISR {', '.join(sorted(isr))}; {noun(ops)} has {', '.join(map(str, seen[0][1].isr))}"
    else:
        return
    yield anomaly(ops, Kind.WRONG_CONTROLLER, text, proof, [decision.op.process], event.epoch)


def _deposed(ops: Sequence[Op], offices: Sequence[Office], by_epoch: dict[int, Decision]) -> Iterator[Anomaly]:
    """Yield decisions of an office that a newer one had replaced: by leader epochs, or clearly by time."""
    newest: Decision | None = None
    for epoch in sorted(by_epoch):
        decision = by_epoch[epoch]
        if decision.office is None:
            continue
        mine, states = decision.office, states_of_epoch(ops).get(epoch, [])
        after = None
        if newest is not None and newest.office is not None and newest.office.epoch > mine.epoch:
            after, proof = newest.office, [newest.op.index]
        elif states:
            written = states[0][0]
            limit = written.time_ns - margin_ns(ops)
            later = (o for o in offices if o.epoch > mine.epoch and o.op.index < written.index)
            after = next((o for o in later if o.op.time_ns <= limit), None)
            proof = [written.index]
        if after is not None:
            text = f"{mine.node}, controller of epoch {mine.epoch}, elected leader epoch {epoch} at "
            text += f"{at(decision.op)}, when {after.node} was controller of epoch {after.epoch}"
            proof += [decision.op.index, mine.op.index, after.op.index]
            yield anomaly(ops, Kind.WRONG_CONTROLLER, text, proof, [mine.node, after.node], epoch)
        if newest is None or newest.office is None or mine.epoch >= newest.office.epoch:
            newest = decision


def _states(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield epochs in the metadata that no controller reported, although the one in office lived to report."""
    offices, decisions, _ = replayed(ops)
    made = {decision.event.epoch: decision for decision in decisions if decision.office is not None}
    order, reported = sorted(made), {decision.event.epoch for decision in decisions}
    below: Decision | None = None
    for epoch, seen in sorted(states_of_epoch(ops).items()) if made else ():
        below = made.get(epoch, below)
        if epoch in reported:
            continue
        place, (op, state) = bisect_right(order, epoch), seen[0]
        above = made[order[place]] if place < len(order) else None
        office = None
        if above is not None and above.office is not None and _held(ops, above.office, below, op):
            office = above.office
        elif above is None and below is not None and _stays(ops, below, offices) and settled(ops, op):
            office = below.office
        if office is not None:
            text = f"{noun(ops)} has leader {state.leader or 'none'} in epoch {epoch} at {at(op)}, which no "
            text += f"controller elected; {office.node} was in office, and reported all else"
            proof = [op.index, *(each.op.index for each in (below, above) if each is not None)]
            yield anomaly(ops, Kind.WRONG_CONTROLLER, text, proof, [office.node], epoch)


def _held(ops: Sequence[Op], office: Office, below: Decision | None, written: Op) -> bool:
    """Return True if an office, of which a later decision is known, had begun when a state was written."""
    if below is not None and below.office is not None and below.office.epoch == office.epoch:
        return True
    shown = [node.node for op, node in events_of(ops, ControllerNamed) if op.index < written.index]
    begun = office.op.time_ns < written.time_ns - margin_ns(ops) and office.op.index < written.index
    return begun and bool(shown) and shown[-1] == office.node


def _stays(ops: Sequence[Op], decision: Decision, offices: Sequence[Office]) -> bool:
    """Return True if the decision's office lasts to the end, without a fault that could keep it from reporting."""
    office = decision.office
    if office is None or office.until is not None or any(other.epoch > office.epoch for other in offices):
        return False
    shown = [node.node for _, node in events_of(ops, ControllerNamed)]
    hurt = any(op.index > office.op.index and office.node in f.nodes for op, f in events_of(ops, Injection))
    return not hurt and bool(shown) and shown[-1] == office.node
