"""
The partition's states in the metadata are all there, and are what brokers were told and wrote.

Where order is exact, the watch sees every state. A real one misses a state that the next replaces at once; a
state that stood for longer than the margin was seen. Where the metadata are polled, nothing is known of what lies
between two looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.moments import (
    anomaly,
    is_polled,
    leader_of,
    margin_ns,
    state_of_version,
    states,
    states_of_epoch,
    whole,
)
from checkers.facts.view import at, names_of, noun, setup_of
from harness.events import Elected, Follower, Healed, IsrChanged, Leader, Learned, MetadataState
from harness.model import Anomaly, Kind, Op, OpType, events_of

_Break: TypeAlias = tuple[str, tuple[int, ...]]
_Told: TypeAlias = Elected | Leader | Follower | Learned | IsrChanged

_NAMED_MAX: Final = 5

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="state(v), state(w) next in the watch: w > v + 1 in a simulated run, or both alike "
        "but for the version, unclean election off; "
        "or elected(e), leader(e), follower(e), isr(v) or learned(e) at t, and no state of "
        "e or v, where the watch saw none between t and t + margin; or learned(l, e, I) and no state of e with "
        "l and I",
        words="The watch of the metadata lacks a state of the partition that brokers acted on, or brokers were "
        "told what never stood there.",
        evidence="metadata: state; broker elected, leader, follower, isr; fabric learned",
        unchecked="It is the finding itself.",
        source="Jepsen: a history must be possible before it is judged",
    ),
)


def states_seen(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find states of the partition that the watch of the metadata lacks, or that brokers were told and never stood.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        UNCHECKED anomalies, at most a few of each sort; [] if all of them fit.

    Source:  Jepsen: a history must be possible before it is judged.
    """
    searches = (_steps, _missed, _commands)
    return [
        anomaly(ops, Kind.UNCHECKED, f"the history contradicts itself: {text}", proof)
        for search in searches
        for text, proof in islice(search(ops), _NAMED_MAX)
    ]


def _steps(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield versions that are skipped where the watch sees all, and writes that change nothing."""
    if is_polled(ops):
        return  # versions number looks
    seen, exact, setup = states(ops), not margin_ns(ops), setup_of(ops)
    # From 3.2 on a leader that was elected uncleanly writes that it has recovered, and nothing else (KIP-704).
    recovers = setup is None or setup.unclean
    if exact and seen and seen[0][1].version > 0:
        yield (
            f"{noun(ops)}'s first state at {at(seen[0][0])} has version {seen[0][1].version}",
            (seen[0][0].index,),
        )
    for (before, old), (op, new) in pairwise(seen):
        step = new.version - old.version
        if exact and step > 1:
            text = f"{noun(ops)}'s state at {at(op)} has version {new.version}, after {old.version}"
            yield text, (before.index, op.index)
        elif (
            step == 1
            and not recovers
            and (old.leader, old.epoch, {*old.isr}) == (new.leader, new.epoch, {*new.isr})
        ):
            text = f"version {new.version} of {noun(ops)}'s state at {at(op)} changes nothing"
            yield text, (before.index, op.index)


def _missed(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield states that a broker acted on, and that the watch had the time to see and did not."""
    if is_polled(ops):
        return
    margin, names = margin_ns(ops), names_of(ops)
    healed = next((op.time_ns for op, _ in events_of(ops, Healed) if op.type is OpType.OK), 0)
    kinds: tuple[type[_Told], ...] = (Elected, Leader, Follower, Learned, IsrChanged)
    for kind in kinds:
        for op, event in events_of(ops, kind):
            if _stood(ops, event, names) or (isinstance(event, Learned) and _between(ops, op, event)):
                continue
            # What followed it in the metadata may have been seen before the broker's report reached the history.
            later = (sight for sight, state in states(ops) if _follows(state, event))
            after = next((sight for sight in later if sight.time_ns > op.time_ns - margin), None)
            until = healed if after is None else after.time_ns
            if until > op.time_ns + margin:
                what = f"version {event.version}" if isinstance(event, IsrChanged) else f"epoch {event.epoch}"
                text = (
                    f"{op.process} reported {op.f!r} of {what} at {at(op)}, and the watch of {noun(ops)}, which "
                )
                near = [] if after is None else [after.index]
                near += [sight.index for sight, _ in states_of_epoch(ops).get(event.epoch, ())]
                yield f"{text}saw nothing else until {until / 1e9:.3f} s, never saw it", (op.index, *near)
    for op, event in events_of(ops, IsrChanged):
        found = state_of_version(ops).get(event.version + 1)
        if found is None or event.version in state_of_version(ops):
            continue
        isr = {names.get(member, str(member)) for member in event.isr}
        if (found[1].epoch, {*found[1].isr}) == (event.epoch, isr):
            text = f"{op.process} wrote version {event.version} at {at(op)}, and version {found[1].version}"
            yield f"{text} in {noun(ops)} changes nothing in it", (op.index, found[0].index)


def _between(ops: Sequence[Op], told: Op, event: Learned) -> bool:
    """
    Return True if the watch skipped a version, before a node answered its command, that may be what it was told.

    A command is recorded when it is answered, which a node may do long after the state was replaced.
    """
    return any(
        new.version - old.version > 1 and old.epoch <= event.epoch <= new.epoch and op.time_ns <= told.time_ns
        for (_, old), (op, new) in pairwise(states(ops))
    )


def _follows(state: MetadataState, event: _Told) -> bool:
    """Return True if a state in the metadata may have followed the one on which a broker acted."""
    return state.version > event.version if isinstance(event, IsrChanged) else state.epoch >= event.epoch


def _stood(ops: Sequence[Op], event: _Told, names: dict[int, str]) -> bool:
    """Return True if the watch saw the state that a broker acted on."""
    if isinstance(event, IsrChanged):
        return event.version in state_of_version(ops)
    if isinstance(event, Learned) and event.leader is None:
        return True  # up to 0.10.2 the metadata's ISR is empty then, and the command's is not
    seen = states_of_epoch(ops).get(event.epoch, [])
    if isinstance(event, Follower):
        return bool(seen)
    members = event.isr if isinstance(event, Learned) else [names.get(member, str(member)) for member in event.isr]
    return any({*members} == {*state.isr} for _, state in seen)


def _commands(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield commands whose leader and ISR no state of their epoch has."""
    names = {*names_of(ops).values()}
    for op, told in events_of(ops, Learned):
        if told.leader is None:
            continue  # as above
        seen = states_of_epoch(ops).get(told.epoch, [])
        said = f"{told.link[1]} was told at {at(op)} that {told.leader or 'nobody'} leads epoch {told.epoch}"
        if len({*told.isr}) < len(told.isr) or not {*told.isr} <= names:
            yield f"{said} with ISR {', '.join(map(str, told.isr))}", (op.index,)
        elif (led := leader_of(ops, told.epoch)) is not None and led[1].leader != told.leader:
            yield f"{said}; {noun(ops)} has {led[1].leader or 'nobody'}", (op.index, led[0].index)
        elif whole(ops, told.epoch) and not any({*told.isr} == {*state.isr} for _, state in seen):
            isr = ", ".join(map(str, seen[-1][1].isr))
            yield (
                f"{said} with ISR {', '.join(map(str, told.isr))}; {noun(ops)} has {isr}",
                (op.index, seen[-1][0].index),
            )
