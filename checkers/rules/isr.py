"""
The ISR: replicas alone, each with all that is committed, as the metadata has it; never empty.

Members that lag for too long are in checkers/rules/lagging.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from checkers.definition import Definition
from checkers.facts.moments import (
    Moment,
    anomaly,
    follows,
    margin_ns,
    moments,
    once,
    settled,
    state_of_version,
    states,
    states_of_epoch,
    whole,
)
from checkers.facts.quorum import is_quorum
from checkers.facts.reach import epoch_starts, reach
from checkers.facts.silences import unheard
from checkers.facts.view import at, ever_assigned, names_of, noun, setup_of
from checkers.rules.lagging import lagging
from harness.events import (
    Cut,
    Delay,
    Elected,
    Follower,
    Heal,
    Healed,
    Hold,
    Injection,
    IsrChanged,
    Leader,
    OfLink,
    Release,
    Started,
    Stopped,
    World,
)
from harness.model import Anomaly, Kind, Op, OpType, events_of

KINDS: Final = (
    Definition(
        kind=Kind.WRONG_ISR,
        formula="exists an ISR I of state, elected, leader or isr: I is empty, or some x in I twice or not "
        "in replicas; or state(v, e, I), state(v + 1, f, J), f > e, J not within I, unclean "
        "election off; or isr(n, v, I) and state(v, J) with J != I, or no version v where versions "
        "have no gap; or isr(n, e) and n does not lead e; or state(v, e) between two isr of e by one "
        "process, or while its leader leads on, and no isr(v); or isr(n) adds m, whose log never reached "
        "n's high watermark (and, since KAFKA-7128, the start of n's epoch) until then; or m is in the ISR "
        "of n, which has led all the time without a fault of its own, m's log is shorter than n's end at t "
        "until t + 2 lag and more, and m stays",
        words="The ISR is empty, has a member that is no replica, that lacks what is committed, or that lagged "
        "for too long; or what a leader says of its ISR never stood in the metadata.",
        evidence="metadata: state; broker elected, leader, isr, append, truncate, recovered; the set-up",
        unchecked="Nothing; lag is judged only where the set-up records what is allowed. Where a quorum has "
        "what is committed there is no ISR. Where the metadata are polled, nothing is known of what stood "
        "between two looks.",
        source="Kafka Replication Design V3, G; KAFKA-7128; KIP-16",
    ),
)
_KIND: Final = Kind.WRONG_ISR
# How long after its write a leader may report it: the answer to it is on its way, or waits in the process while
# other work goes first. The simulator lets one wait for 60 ms, behind a way of 8 ms.
_REPORT_NS: Final = 100_000_000


def isr(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find ISRs that must not be, that never stood in the metadata, or with a member that lacks what is committed.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each ISR and complaint.

    Source:  Kafka Replication Design V3, G (maybe_change_ISR); KAFKA-7128; KIP-16 (lag is time alone).
    """
    if is_quorum(ops):
        return []  # the group's members: who is one may lack what is committed, and lag
    return once(
        [
            *_members(ops),
            *_grown(ops),
            *_written(ops),
            *_unsaid(ops),
            *_unreported(ops),
            *_joined(ops),
            *lagging(ops),
        ]
    )


def _members(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield ISRs that are empty, have a member twice, or a member that is no replica."""
    setup, names = setup_of(ops), names_of(ops)
    replicas = ever_assigned(ops)
    # Up to 0.10.2 a controller without a live replica empties the ISR if any replica may lead later.
    unclean = setup is not None and setup.unclean
    told = [
        (op, state.epoch, tuple(map(str, state.isr)))
        for op, state in states(ops)
        if state.isr or state.leader is not None or not unclean
    ]
    reports: list[tuple[Op, Elected | Leader | IsrChanged]] = [
        *events_of(ops, Elected),
        *events_of(ops, Leader),
        *events_of(ops, IsrChanged),
    ]
    for op, event in reports:
        told.append((op, event.epoch, tuple(names.get(member, str(member)) for member in event.isr)))
    for op, epoch, members in told:
        strangers = [member for member in members if replicas and member not in replicas]
        if members and not strangers and len({*members}) == len(members):
            continue
        said = f"the ISR of epoch {epoch} that {op.process} has at {at(op)}"
        if not members:
            yield anomaly(ops, _KIND, f"{said} is empty", [op.index], (), epoch)
        elif strangers:
            text = f"{said} has {strangers[0]}, which is no replica of the partition"
            yield anomaly(ops, _KIND, text, [op.index], strangers, epoch)
        else:
            yield anomaly(ops, _KIND, f"{said} has a member twice: {', '.join(members)}", [op.index], (), epoch)


def _grown(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield ISRs into which a controller let a member: only leaders do, unless the election is unclean."""
    setup = setup_of(ops)
    if setup is None or setup.unclean:
        return
    for (before, old), (op, new) in pairwise(states(ops)):
        added = {*new.isr} - {*old.isr}
        if added and follows(ops, old.version, new.version) and new.epoch > old.epoch and new.leader in old.isr:
            text = (
                f"{', '.join(sorted(map(str, added)))} joined the ISR with epoch {new.epoch} at {at(op)}, by an "
            )
            text += "election; only a leader may let a replica in"
            yield anomaly(ops, _KIND, text, [before.index, op.index], map(str, added), new.epoch)


def _written(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield ISR changes of a node that does not lead, or that never stood in the metadata."""
    names, by_version = names_of(ops), state_of_version(ops)
    for op, event, before, _ in moments(ops):
        if isinstance(event, Leader):
            yield from _begun(ops, op, event, names)
        if not isinstance(event, IsrChanged):
            continue
        members = sorted(names.get(member, str(member)) for member in event.isr)
        said = f"{op.process} says at {at(op)} that it wrote ISR {', '.join(members)} of epoch {event.epoch}"
        nodes, proof = [op.process], [op.index]
        if before.role != "leader" or before.epoch != event.epoch:
            text = f"{said}, and does not lead that epoch"
            yield anomaly(ops, _KIND, text, proof, nodes, event.epoch)
            continue
        seen = by_version.get(event.version)
        if seen is not None:
            state = seen[1]
            theirs = sorted(map(str, state.isr))
            if (state.leader, state.epoch, theirs) != (op.process, event.epoch, members):
                text = f"{said} with version {event.version}, where {noun(ops)} has leader "
                text += f"{state.leader or 'none'}, epoch {state.epoch} and ISR {', '.join(theirs)}"
                yield anomaly(ops, _KIND, text, [*proof, seen[0].index], nodes, event.epoch)
        elif by_version and event.version > max(by_version) and settled(ops, op):
            text = f"{said} with version {event.version}, and {noun(ops)}'s versions end at {max(by_version)}"
            yield anomaly(ops, _KIND, text, [*proof, by_version[max(by_version)][0].index], nodes, event.epoch)


def _begun(ops: Sequence[Op], op: Op, event: Leader, names: dict[int, str]) -> Iterator[Anomaly]:
    """Yield the ISR with which a leader begins, if no state of its epoch has it."""
    seen = states_of_epoch(ops).get(event.epoch, [])
    isr = {names.get(member, str(member)) for member in event.isr}
    if whole(ops, event.epoch) and not any(isr == {*state.isr} for _, state in seen):
        text = f"{op.process} leads epoch {event.epoch} from {at(op)} on with ISR {', '.join(sorted(isr))}; "
        text += f"{noun(ops)} has {', '.join(map(str, seen[0][1].isr))}"
        yield anomaly(ops, _KIND, text, [op.index, seen[0][0].index], [op.process], event.epoch)


def _unreported(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield ISRs in the metadata that the epoch's leader, who led on without a fault, did not report."""
    if not states(ops) or any(world.metadata_faults_bit for _, world in events_of(ops, World)):
        return
    said: dict[tuple[str, int], set[int]] = {}
    began: dict[tuple[str, int], Op] = {}
    ended: dict[str, list[Op]] = {}
    for op, event, _, _ in moments(ops):
        if isinstance(event, IsrChanged):
            said.setdefault((op.process, event.epoch), set()).add(event.version)
        elif isinstance(event, Leader):
            began.setdefault((op.process, event.epoch), op)
        if isinstance(event, Leader | Follower | Started | Stopped):
            ended.setdefault(op.process, []).append(op)
    for op, fault in events_of(ops, Injection):
        for node in fault.nodes:
            ended.setdefault(node, []).append(op)
    healed = max((op.index for op, _ in events_of(ops, Healed) if op.type is OpType.OK), default=-1)
    for epoch, seen in states_of_epoch(ops).items():
        leader = str(seen[0][1].leader)
        begun = began.get((leader, epoch))
        if len(seen) < 2 or begun is None or not whole(ops, epoch) or _cut_off(ops, leader, begun):
            continue
        # Whatever ends its leadership may keep it from its report, also if that comes soon after the write.
        over = min((op.time_ns for op in ended[leader] if op.index > begun.index), default=None)
        for op, state in seen[1:]:
            late = op.index > healed if over is None else op.time_ns + _REPORT_NS + margin_ns(ops) >= over
            if not late and state.version not in said.get((leader, epoch), ()):
                text = f"{noun(ops)} has ISR {', '.join(map(str, state.isr))} in epoch {epoch} at {at(op)}, which "
                text += f"its leader {leader} did not write"
                yield anomaly(ops, _KIND, text, [begun.index, op.index], [leader], epoch)


def _cut_off(ops: Sequence[Op], node: str, since: Op) -> bool:
    """Return True if what the node and the metadata tell each other was lost or late at some time since the op."""
    if unheard(ops, node, since.index, ops[-1].index):
        return True
    undone = [(op.index, _rule_of(rule)) for kind in (Heal, Release) for op, rule in events_of(ops, kind)]
    return any(
        "metadata" in rule.link
        and not {*rule.link}.isdisjoint({node, "*"})
        and not any(op.index < index < since.index and which == _rule_of(rule) for index, which in undone)
        for kind in (Cut, Hold, Delay)
        for op, rule in events_of(ops, kind)
    )


def _rule_of(rule: OfLink) -> tuple[object, ...]:
    """Return which rule begins or ends here: a hold that is released leaves a delay of the same link as it is."""
    of_frames = (rule.api, rule.direction) if isinstance(rule, Hold | Delay | Heal | Release) else (None, None)
    return isinstance(rule, Hold | Release), rule.link, *of_frames


def _unsaid(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield states in the metadata between two ISR changes of one process and epoch that it did not report."""
    by_version = state_of_version(ops)
    last: dict[str, tuple[int, int, int, Op]] = {}
    for op, event, before, _ in moments(ops):
        if not isinstance(event, IsrChanged) or before.role != "leader":
            continue
        known = last.get(op.process)
        if known is not None and known[:2] == (before.life, event.epoch):
            if event.version <= known[2]:
                text = f"{op.process} says at {at(op)} that it wrote version {event.version}, after {known[2]}"
                yield anomaly(ops, _KIND, text, [known[3].index, op.index], [op.process], event.epoch)
            for version in range(known[2] + 1, min(event.version, known[2] + 100)):
                if version in by_version:
                    state = by_version[version]
                    text = f"version {version} in {noun(ops)} at {at(state[0])} lies between two ISRs that "
                    text += f"{op.process} wrote one after the other, and nobody wrote it"
                    proof = [known[3].index, state[0].index, op.index]
                    yield anomaly(ops, _KIND, text, proof, [op.process], event.epoch)
        last[op.process] = (before.life, event.epoch, event.version, op)


def _joined(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield members that a leader let into the ISR although their logs never reached what they must have."""
    reached, starts = reach(ops), epoch_starts(ops)
    setup = setup_of(ops)
    past_start = setup is not None and setup.rules.get("join_isr_past_epoch_start") == "yes"
    for moment in moments(ops):
        op, event, before, after = moment
        if not isinstance(event, IsrChanged) or before.role != "leader":
            continue
        for member in sorted(after.isr - before.isr - {op.process}):
            need, why = before.high_watermark or 0, "the high watermark"
            start = starts.get((op.process, event.epoch), 0)
            if past_start and start > need:
                need, why = start, "the start of the epoch"
            has = reached.by(member, op, event.epoch, "fence_isr_join")
            if has is not None and has[0] < need:
                yield _short(ops, moment, member, has, (need, why))


def _short(
    ops: Sequence[Op], moment: Moment, member: str, has: tuple[int, list[int]], need: tuple[int, str]
) -> Anomaly:
    op, until = moment.op, f" within {margin_ns(ops) / 1e9:.1f} s" if margin_ns(ops) else ""
    text = f"{op.process} let {member} into the ISR of epoch {moment.after.epoch} at {at(op)}, with {need[1]} at "
    text += f"{need[0]}; {member}'s log had reached {max(has[0], 0)} by then{until}"
    text += "" if has[1] else " in that epoch"
    ranges = ((max(has[0], 0), need[0]),)
    return anomaly(ops, _KIND, text, [op.index, *has[1]], [op.process, member], moment.after.epoch, ranges)
