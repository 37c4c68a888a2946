"""
Registrations and controllers in the metadata fit what brokers reported of them.

The metadata's watch misses what lasts for a moment only, and races with the brokers' reports; so a missing sight
proves something only where what comes later needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.fact import fact
from checkers.facts.moments import anomaly, margin_ns, states
from checkers.facts.outages import outages
from checkers.facts.view import at, noun, setup_of, traits
from harness.effect import ON_METADATA, Effect, nature_of
from harness.events import (
    ControllerNamed,
    ControllerOffice,
    Done,
    Elected,
    Exited,
    Follower,
    Healed,
    Injection,
    Leader,
    Member,
    Members,
    Setup,
    Started,
)
from harness.model import Anomaly, Kind, Op, OpType, events_of

_Break: TypeAlias = tuple[str, tuple[int, ...]]

_NAMED_MAX: Final = 5
# A watch that is later than the margin is no contradiction by itself; one that is so much later is.
_SLOW: Final = 4
# Effects under which a node may register, and not live, be connected or be in time to report it.
_KEEPS: Final = frozenset(
    {effect for effect in Effect if effect.leaves_the_cluster}
    | {Effect.PAUSED, Effect.CLOCK_WRONG, Effect.DISK_GONE}
    | ON_METADATA
)

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="registered(n, z) and an earlier registered(n, y) with z <= y; or registered(n, taken over) and "
        "none of n before; or elected(saw: (n, z)) and registered(m, z), m /= n, or z never registered "
        "though no fault hit n, or n twice, or the leader not among them; or the metadata's registered names n "
        "anew, and neither registered(n) nor a fault that hit n until it leaves; or names n all the time "
        "while a fault ended n's session and n did not register anew; or lacks a node of the run at the end; "
        "or a first state "
        "whose leader, ISR or controller was never registered; or the metadata's first controller is none, or "
        "there is none; or a controller epoch below 1",
        words="What the metadata shows of registrations and controllers contradicts what brokers reported, so the "
        "history lacks an op, or has one that never was.",
        evidence="metadata: members, controller and state; broker member, controller, elected",
        unchecked="It is the finding itself.",
        source="Jepsen: a history must be possible before it is judged",
    ),
)


def registrations(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find registrations and controllers in the metadata that contradict what brokers reported.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        UNCHECKED anomalies, at most a few of each sort; [] if all of them fit.

    Source:  Jepsen: a history must be possible before it is judged.
    """
    searches = (_own, _seen_by_controllers, _named, _again, _ended, _whole, _controllers)
    return [
        anomaly(ops, Kind.UNCHECKED, f"the history contradicts itself: {text}", proof)
        for search in searches
        for text, proof in islice(search(ops), _NAMED_MAX)
    ]


@fact
def _told(ops: Sequence[Op]) -> dict[str, list[tuple[int, Op]]]:
    """Return the incarnation of each registration that a node reported; {} in older histories, which have none."""
    found: dict[str, list[tuple[int, Op]]] = {}
    for op, registered in events_of(ops, Member):
        if registered.incarnation is None:
            return {}
        found.setdefault(op.process, []).append((registered.incarnation, op))
    return found


def _own(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield registrations that are not newer than the one before, or that take over one that never was."""
    first: dict[str, Op] = {}
    for op, registered in events_of(ops, Member):
        if first.setdefault(op.process, op) is not op or not registered.taken_over:
            continue
        if not any(end.index < op.index for end in _mute(ops, op.process)):
            yield f"{op.process} took over a registration of its own at {at(op)}, and had none", (op.index,)
    for node, theirs in _told(ops).items():
        for (old, before), (new, op) in pairwise(theirs):
            if new <= old:
                yield f"{node} registered as {new} at {at(op)}, after {old}", (before.index, op.index)


def _seen_by_controllers(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield registrations in a controller's decision that no broker reported, or that lack its leader."""
    told, setup = _told(ops), setup_of(ops)
    names = {broker: name for name, broker in setup.nodes.items()} if setup else {}
    owners = {incarnation: name for name, theirs in told.items() for incarnation, _ in theirs}
    for op, elected in events_of(ops, Elected):
        if elected.saw is None:
            continue
        saw = [broker for broker, _ in elected.saw]
        said = f"{op.process}, which elected epoch {elected.epoch} at {at(op)}, saw"
        if len({*saw}) < len(saw):
            yield f"{said} a broker twice: {', '.join(map(str, saw))}", (op.index,)
        if elected.leader >= 0 and elected.leader not in saw:
            yield f"{said} {', '.join(map(str, saw))} registered, and not the leader {elected.leader}", (op.index,)
        for broker, incarnation in elected.saw if told else ():
            name = names.get(broker, "")
            if owners.get(incarnation, "") != name and not (
                incarnation not in owners and _unreported(ops, name, incarnation, op)
            ):
                truth = f"which was {owners[incarnation]}" if incarnation in owners else "which it never was"
                yield f"{said} {name or broker} registered as {incarnation}, {truth}", (op.index,)


def _unreported(ops: Sequence[Op], node: str, incarnation: int, seen: Op) -> bool:
    """Return True if a node may have registered so and not reported it, since a fault hit it before it could."""
    before = max((op.index for known, op in _told(ops).get(node, []) if known < incarnation), default=-1)
    limit = seen.time_ns + margin_ns(ops)
    hit = any(op.index > before and op.time_ns <= limit for op in _hurt(ops).get(node, ()))
    return hit or any(end.index > before for end in _mute(ops, node))


def _mute(ops: Sequence[Op], node: str) -> list[Op]:
    """
    Return the fault that ended each process of a node that took no part, in index order.

    The metadata's answer may be late, so such a process may have registered, and others may have seen it, although
    it never heard that it had.
    """
    return _mutes(ops).get(node, [])


@fact
def _mutes(ops: Sequence[Op]) -> dict[str, list[Op]]:
    """Return `_mute` of all nodes."""
    parts = [op for kind in (Member, ControllerOffice, Leader, Follower) for op, _ in events_of(ops, kind)]
    started = [op for op, _ in events_of(ops, Started)]
    found: dict[str, list[Op]] = {}
    for outage in outages(ops):
        end = outage.op.index
        begun = max((op.index for op in started if op.process == outage.node and op.index < end), default=None)
        spoke = [op.index for op in parts if op.process == outage.node]
        if begun is not None and not any(begun < index < end for index in spoke):
            found.setdefault(outage.node, []).append(outage.op)
    return found


@fact
def _hurt(ops: Sequence[Op]) -> dict[str, list[Op]]:
    """Return the faults that may keep each node from reporting that it registered, in index order."""
    found: dict[str, list[Op]] = {}
    setups = [setup for _, setup in events_of(ops, Setup)]
    services = {name for setup in setups for name in setup.services or ()}
    for op, fault in events_of(ops, Injection):
        if nature_of(op).effect in _KEEPS:
            # What hits a service may keep each node.
            hit = {*fault.nodes} & services
            for node in (name for setup in setups for name in setup.nodes) if hit else fault.nodes:
                found.setdefault(node, []).append(op)
    return found


def _named(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield sets of registrations that are not in order, and leaders that no set before them names."""
    known: set[str | None] = set()
    first = next(iter(states(ops)), None)
    for op, shown in events_of(ops, Members):
        if first is not None and op.index < first[0].index:
            known |= {*shown.nodes}
        if list(shown.nodes) != sorted({*shown.nodes}, key=str):
            text = f"{noun(ops)}'s registrations at {at(op)} are {', '.join(map(str, shown.nodes))}"
            yield f"{text}; expected each node once, in order", (op.index,)
    if first is None:
        return
    if not traits(ops).shows_members:
        return
    office = {seen.node for op, seen in events_of(ops, ControllerNamed) if op.index < first[0].index}
    if missing := {*first[1].isr, first[1].leader, *office} - known - {None}:
        text = f"{', '.join(sorted(map(str, missing)))} was controller or replica in {noun(ops)} at {at(first[0])}"
        yield f"{text}, and {noun(ops)}'s registrations had not named it until then", (first[0].index,)


def _again(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield nodes that the metadata names anew, and that did not report that they registered anew."""
    told: dict[str, list[Op]] = {}
    for op, registered in events_of(ops, Member):
        if not registered.taken_over:
            told.setdefault(op.process, []).append(op)
    if not told:
        return
    for name, left, came, gone in _spans(ops):
        reported = any(_between(ops, left, op, gone) for op in told.get(name, ()))
        # A process that dies, or is cut off, as it registers does not report it.
        hit = any(_between(ops, came, fault, gone) for fault in _hurt(ops).get(name, ()))
        # One that died while it was away may have asked before, and the metadata been late.
        hit = hit or any(end.node == name and _between(ops, left, end.op, gone) for end in outages(ops))
        if not reported and not hit:
            yield f"{noun(ops)} names {name} anew at {at(came)}, which did not register", (came.index,)


def _spans(ops: Sequence[Op]) -> Iterator[tuple[str, Op | None, Op, Op | None]]:
    """Yield (node, op before which it was away, op since which it is named, op since which it is away again)."""
    before: set[str | None] = set()
    away: dict[str, Op] = {}
    there: dict[str, tuple[Op | None, Op]] = {}
    for op, shown in events_of(ops, Members):
        for name in sorted(map(str, {*shown.nodes} - before - {None})):
            there[name] = away.get(name), op
        for name in sorted(map(str, before - {*shown.nodes} - {None})):
            yield name, *there.pop(name), op
            away[name] = op
        before = {*shown.nodes}
    for name, (left, came) in there.items():
        yield name, left, came, None


def _ended(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield faults that ended a session, after which the metadata still names the node."""
    shown = list(events_of(ops, Members))
    begun: dict[tuple[str, ...], Op] = {}
    for op, fault in events_of(ops, Injection):
        if not nature_of(op).effect.leaves_the_cluster or nature_of(op).effect.is_down:
            continue  # the session of a process that died may outlive its fault
        if op.type is OpType.INVOKE:
            begun[fault.nodes] = op
        elif op.type is OpType.OK and fault.nodes in begun:
            first, limit = begun[fault.nodes].time_ns - margin_ns(ops), op.time_ns + _SLOW * margin_ns(ops)
            before = [seen for sight, seen in shown if sight.time_ns < first][-1:]
            sets = before + [seen for sight, seen in shown if first <= sight.time_ns <= limit]
            for node in fault.nodes:
                if (
                    sets
                    and all(node in seen.nodes for seen in sets)
                    and not _came_back(ops, node, first, limit, op)
                ):
                    text = (
                        f"{fault.name} ended {node}'s session at {at(op)}, and {noun(ops)} names it all the time"
                    )
                    yield text, (begun[fault.nodes].index, op.index)


def _came_back(ops: Sequence[Op], node: str, first: int, limit: int, ended: Op) -> bool:
    """Return True if a node may have registered anew so soon that the watch did not see it away."""
    if any(outage.node == node and outage.lasts_at(ended.index) for outage in outages(ops)):
        return False  # it had no process
    told = [op for op, _ in events_of(ops, Member)]
    return not told or any(op.process == node and first <= op.time_ns <= limit for op in told)


def _between(ops: Sequence[Op], first: Op | None, op: Op, last: Op | None) -> bool:
    """Return True if an op of a broker or a fault may lie between two sights of the metadata's watch."""
    margin = margin_ns(ops)
    if margin:
        late = first is None or op.time_ns >= first.time_ns - margin
        return late and (last is None or op.time_ns <= last.time_ns + margin)
    return (first is None or op.index > first.index) and (last is None or op.index < last.index)


def _whole(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield it if the last registrations of a run that was healed lack a node."""
    setup = setup_of(ops)
    healed = next((op for op, _ in events_of(ops, Healed) if op.type is OpType.OK), None)
    if setup is None or healed is None or next(events_of(ops, Member), None) is None:
        return  # brokers of Apache Kafka may be late to register again, and do not say so
    # Nodes are taken down after the end.
    end = next((op.index for op, _ in events_of(ops, Done)), len(ops))
    shown = [(op, seen) for op, seen in events_of(ops, Members) if op.index < end]
    if not shown:
        yield f"{noun(ops)}'s registrations were never seen", (healed.index,)
    elif missing := {*setup.nodes} - {*shown[-1][1].nodes} - {exited.node for _, exited in events_of(ops, Exited)}:
        text = (
            f"all was healed at {at(healed)}, and {', '.join(sorted(missing))} was not registered in {noun(ops)}"
        )
        yield text, (shown[-1][0].index, healed.index)


def _controllers(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield it if the metadata never named a controller, or none at first; and epochs before the first one."""
    shown = list(events_of(ops, ControllerNamed))
    if states(ops) and not shown and traits(ops).names_controller:
        yield f"{noun(ops)}'s controller was never seen", (states(ops)[0][0].index,)
    elif shown and shown[0][1].node is None:
        yield f"{noun(ops)} lost a controller at {at(shown[0][0])} that it never named", (shown[0][0].index,)
    for op, office in events_of(ops, ControllerOffice):
        if office.epoch < 1:
            yield f"{op.process} reported controller epoch {office.epoch} at {at(op)}; the first is 1", (op.index,)
