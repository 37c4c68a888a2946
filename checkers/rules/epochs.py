"""
Each epoch has one leader, from the ISR, and epochs never fall: in the metadata, in reports, and at each broker.

The metadata's versions order its states exactly; a broker's own events order what it accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from checkers.definition import Definition
from checkers.facts.moments import Moment, anomaly, is_polled, leader_of, moments, never_stood, once, states
from checkers.facts.quorum import is_quorum
from checkers.facts.view import at, ever_assigned, names_of, noun, setup_of
from harness.events import Elected, Follower, Leader, MetadataState
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.WRONG_LEADER,
        formula="exists state(v, e, l, I): l not in I, or l not in replicas; or a later one of the watch "
        "with version w <= v; or with version w > v and epoch f: f < e, or f - e > w - v, or f = e and "
        "another leader; or with version v + 1, f > e and a leader not in I, unclean election off; or "
        "elected(unclean) with unclean election off; or leader(n, f) or follower(n, f) after leader(n, e) "
        "or follower(n, e) in n's process (where brokers fence their registrations: in any process of n) "
        "with f < e, or follower(n, e) after leader(n, e); or follower(n, e, l) and another leader of e; or "
        "leader(n, e) or follower(n, e) and no state(e) where versions have no gap",
        words="A leader is outside its ISR or no replica, was elected from outside the ISR although unclean "
        "election is off, or an epoch falls, has two leaders in what nodes say, or never stood in "
        "the metadata.",
        evidence="metadata: state; broker leader, follower, elected, started; the set-up",
        unchecked="Nothing: where the watch missed a state, only what its neighbours prove is reported. Where the "
        "metadata are polled, that is an epoch that falls. Where a quorum has what is committed, the ISR is the "
        "group's members, and a leader may be outside it.",
        source="Kafka Replication Design V3, A and C; KIP-106; KIP-380",
    ),
)
_KIND: Final = Kind.WRONG_LEADER


def epochs(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find leaders that must not lead, and epochs that fall, have two leaders, or never stood in the metadata.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each state of the metadata and each report.

    Source:  Kafka Replication Design V3, A and C; KIP-106 (unclean election); KIP-380 (stale commands).
    """
    return once([*_single(ops), *_neighbours(ops), *_unclean(ops), *_accepted(ops), *_claims(ops)])


def _single(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield states whose leader is outside the ISR, or no replica."""
    replicas, quorum = ever_assigned(ops), is_quorum(ops)
    if quorum:  # a group tells itself who is in it
        replicas |= {str(member) for _, state in states(ops) for member in state.isr}
    for op, state in states(ops):
        if state.leader is None:
            continue
        said = f"{state.leader} leads epoch {state.epoch} in {noun(ops)} at {at(op)}"
        # A group may be led for a while by who has just left it.
        if state.leader not in state.isr and not quorum:
            text = f"{said}, and is not in the ISR ({', '.join(map(str, state.isr))})"
            yield anomaly(ops, _KIND, text, [op.index], [state.leader], state.epoch)
        if replicas and state.leader not in replicas:
            text = f"{said}, and is no replica of the partition ({', '.join(sorted(replicas))})"
            yield anomaly(ops, _KIND, text, [op.index], [state.leader], state.epoch)


def _neighbours(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield states that contradict the one before: the watch's order and the versions' order are one."""
    setup = setup_of(ops)
    clean = setup is not None and not setup.unclean
    first = next(iter(states(ops)), None)
    if first is not None and first[1].epoch > first[1].version and not is_polled(ops):
        text = f"epoch {first[1].epoch} at {at(first[0])} has version {first[1].version} in {noun(ops)}, "
        yield anomaly(ops, _KIND, text + "fewer writes than epochs", [first[0].index], (), first[1].epoch)
    for (before, old), (op, new) in pairwise(states(ops)):
        complaint = _complaint_of_looks(old, new) if is_polled(ops) else _complaint(old, new, clean=clean)
        if complaint:
            text = f"{complaint} (from {at(before)} to {at(op)} in {noun(ops)})"
            nodes = [node for node in {old.leader, new.leader} if node is not None]
            yield anomaly(ops, _KIND, text, [before.index, op.index], nodes, new.epoch)


def _complaint_of_looks(old: MetadataState, new: MetadataState) -> str:
    """Return what is wrong with the second of two looks; "" for nothing: what lies between them is not known."""
    if new.version <= old.version:
        return f"version {new.version} of the state follows version {old.version}"
    return f"epoch {new.epoch} follows epoch {old.epoch}" if new.epoch < old.epoch else ""


def _complaint(old: MetadataState, new: MetadataState, *, clean: bool) -> str:
    """Return what is wrong with the second of two states that the watch saw one after another; "" for nothing."""
    writes = new.version - old.version
    if writes <= 0:
        return f"version {new.version} of the state follows version {old.version}"
    if new.epoch < old.epoch:
        return f"epoch {new.epoch} follows epoch {old.epoch}"
    if new.epoch - old.epoch > writes:
        return f"the epoch rises from {old.epoch} to {new.epoch} in {writes} writes"
    if new.epoch == old.epoch and (new.leader is None) != (old.leader is None):
        return f"the leader of epoch {new.epoch} changes from {old.leader or 'none'} to {new.leader or 'none'}"
    elected = new.epoch > old.epoch and new.leader is not None and writes == 1
    if clean and elected and new.leader not in old.isr:
        isr = ", ".join(map(str, old.isr))
        return f"{new.leader} was elected to epoch {new.epoch} from outside the ISR ({isr}), unclean election off"
    return ""


def _unclean(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield elections that their controller calls unclean although unclean election is off, or of no replica."""
    setup, names, replicas = setup_of(ops), names_of(ops), ever_assigned(ops)
    if setup is None:
        return
    for op, elected in events_of(ops, Elected):
        leader = names.get(elected.leader, str(elected.leader)) if elected.leader >= 0 else None
        said = f"{op.process} elected {leader} to epoch {elected.epoch} at {at(op)}"
        if elected.unclean and not setup.unclean:
            text = f"{said} from outside the ISR, and unclean election is off"
            yield anomaly(ops, _KIND, text, [op.index], [leader or op.process], elected.epoch)
        if leader is not None and replicas and leader not in replicas:
            text = f"{said}, who is no replica of the partition ({', '.join(sorted(replicas))})"
            yield anomaly(ops, _KIND, text, [op.index], [leader], elected.epoch)
        elif leader is not None and elected.leader not in elected.isr:
            text = f"{said}, who is not in the ISR that it wrote"
            yield anomaly(ops, _KIND, text, [op.index], [leader], elected.epoch)


def _accepted(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield epochs that a broker accepts after a newer one, or in a second role."""
    setup = setup_of(ops)
    # Without KIP-380 an old command can reach the next process before it has read the metadata.
    fenced = setup is not None and setup.rules.get("fence_broker_epoch") == "yes"
    newest: dict[str, Moment] = {}
    for moment in moments(ops):
        op, event, before, after = moment
        if isinstance(event, Leader | Follower):
            last = newest.get(op.process)
            if last is not None and (fenced or last.after.life == after.life):
                if event.epoch < last.after.epoch:
                    text = f"{op.process} accepted epoch {event.epoch} at {at(op)}, after epoch "
                    text += f"{last.after.epoch} at {at(last.op)}"
                    proof = [last.op.index, op.index]
                    yield anomaly(ops, _KIND, text, proof, [op.process], event.epoch)
                elif before.epoch == event.epoch and before.role == "leader" and after.role == "follower":
                    text = f"{op.process} followed after it had led, in epoch {event.epoch} at "
                    text += at(op)
                    yield anomaly(ops, _KIND, text, [last.op.index, op.index], [op.process], event.epoch)
            if last is None or event.epoch >= last.after.epoch:
                newest[op.process] = moment
        elif after.epoch < 0 and before.epoch >= 0 and after.life == before.life:
            newest.pop(op.process, None)  # the replica was deleted; a new topic of that name begins with epoch 0


def _claims(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield epochs that a broker accepts and the metadata never had, or for which it names another leader."""
    names = names_of(ops)
    led: dict[int, tuple[str, Op]] = {}
    for op, leader in events_of(ops, Leader):
        led.setdefault(leader.epoch, (op.process, op))
    accepted: list[tuple[Op, Leader | Follower]] = [*events_of(ops, Leader), *events_of(ops, Follower)]
    for op, event in accepted:
        follows, seen = isinstance(event, Follower), leader_of(ops, event.epoch)
        claim = names.get(event.leader, str(event.leader)) if isinstance(event, Follower) else op.process
        if seen is not None and seen[1].leader == claim and (not follows or claim != op.process):
            continue  # most events: say nothing of them
        said = f"{op.process} {'follows' if follows else 'leads'} in epoch {event.epoch} from {at(op)} on"
        if proof := never_stood(ops, event.epoch, op):
            text = f"{said}, and {noun(ops)} never had that epoch"
            yield anomaly(ops, _KIND, text, [op.index, *proof], [op.process], event.epoch)
            continue
        truth: str | None = seen[1].leader if seen else led[event.epoch][0] if event.epoch in led else ""
        if claim == op.process and follows:
            text = f"{said} itself"
            yield anomaly(ops, _KIND, text, [op.index], [op.process], event.epoch)
            continue
        if truth in ("", claim) or (not follows and truth is not None):
            continue  # two leaders of one epoch are reported by `leaders`
        text = f"{said}{f' a leader {claim}' if follows else ''}; the leader of that epoch is {truth or 'none'}"
        proof = (seen[0].index if seen else led[event.epoch][1].index,)
        yield anomaly(ops, _KIND, text, [op.index, *proof], [op.process, claim], event.epoch)
