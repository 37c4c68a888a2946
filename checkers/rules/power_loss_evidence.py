"""
Losses that the evidence proves, and losses that a power loss leaves unproven.

If brokers emit no events, only its final log shows with which log a leader led. That evidence is void for a leader
that lost power after the acknowledgement, and for a leader that truncated its log to follow such a leader: the
power loss may have taken every copy of the record, which is permitted, or a known gap of Kafka may explain the
loss. Such a loss is neither proven nor excused: it is unchecked.

Two kinds of evidence still prove the loss:

- a leader without the record that never lost power, if no later leader lost power and it was elected before any
  power loss that could excuse it;
- a member of the ISR at acknowledgement that lacks the record, if it never lost power and no other leader since
  was elected after a power loss of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final, TypeAlias

from checkers.facts.elections import Election, elections
from checkers.facts.view import final_logs
from checkers.rules.lost import lost
from harness.effect import Effect, nature_of
from harness.events import Append, Injection, LeaderAndIsr, Produce
from harness.model import Anomaly, Kind, Op, OpType, events_of

_ACKS_ALL: Final = -1

# A power loss: the index of its op, and its nodes.
_Cut: TypeAlias = tuple[int, tuple[str, ...]]


def proven_losses(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find the acknowledged records that are lost, as `lost` does; UNCHECKED if a power loss took the evidence.

    Source:  KIP-101, Scenario 1; KIP-903; KIP-966. Silence proves nothing: a missing source makes a run unknown.
    """
    return with_power_loss_evidence(ops, lost(ops))


def with_power_loss_evidence(ops: Sequence[Op], anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Return the anomalies; a loss is UNCHECKED if its only evidence is a log that a power loss may have cut."""
    if next(events_of(ops, Append), None) is not None:
        return list(anomalies)
    return [_doubted(ops, anomaly) if anomaly.kind is Kind.LOST else anomaly for anomaly in anomalies]


def _doubted(ops: Sequence[Op], anomaly: Anomaly) -> Anomaly:
    since = min(anomaly.proof, default=0)
    seen = elections(ops)
    cuts = _power_cuts(ops, since)
    losers = [each for each in seen if anomaly.epoch is not None and each.epoch >= anomaly.epoch]
    if any(_is_proof(each, seen, cuts) for each in losers):
        return anomaly
    if member := _spared_member(ops, anomaly, seen, cuts):
        return _blamed_on(member, anomaly, losers, cuts)
    for index, nodes in cuts:
        for node in nodes:
            if node in anomaly.nodes or any(each.node == node and each.op.index > index for each in seen):
                sentence = (
                    f"{anomaly.sentence} This cannot be judged: {node} lost its power since, and brokers did not "
                    "report their logs."
                )
                proof = tuple(sorted({*anomaly.proof, index}))
                return replace(anomaly, kind=Kind.UNCHECKED, sentence=sentence, proof=proof)
    return anomaly


def _is_proof(election: Election, seen: Sequence[Election], cuts: Sequence[_Cut]) -> bool:
    """Return True if the leader's final log, which lacks the record, is the log with which it led."""
    at = election.op.index
    lost_power = {(node, index) for index, nodes in cuts for node in nodes}
    later = {other.node for other in seen if other.op.index >= at}
    return all(index > at and node not in later for node, index in lost_power)


def _blamed_on(member: str, anomaly: Anomaly, losers: Sequence[Election], cuts: Sequence[_Cut]) -> Anomaly:
    """
    Return the loss with that member as losing leader, if a power loss voids the evidence against the one named.

    The named leader lost its power after it led, so it may have had the record then. The member's final log is
    the log with which it led last, if no other leader came after it.
    """
    voided = [node for _, nodes in cuts for node in nodes if node in anomaly.nodes]
    last = list(takewhile(lambda each: each.node == member, reversed(losers)))
    if not voided or not last:
        return anomaly
    led = last[-1]
    sentence = (
        f"{anomaly.sentence} {voided[0]} lost its power since, so its log proves nothing; {member} was in the ISR "
        f"that acknowledged, never lost its power, and led from epoch {led.epoch} on without the record."
    )
    proof = tuple(sorted({*anomaly.proof, led.op.index}))
    return replace(anomaly, nodes=(member,), epoch=led.epoch, sentence=sentence, proof=proof)


def _spared_member(
    ops: Sequence[Op], anomaly: Anomaly, seen: Sequence[Election], cuts: Sequence[_Cut]
) -> str | None:
    """
    Return an ISR member at acknowledgement that lacks a record for another reason than a power loss, or None.

    acks=all promises that each member had the record. This member lost neither power nor files since, and no other
    node was elected after a power loss, so it did not truncate the record to follow such a node.
    """
    lost_power = {node: index for index, nodes in reversed(cuts) for node in nodes}
    followed = {each.node for each in seen if each.op.index > lost_power.get(each.node, each.op.index)}
    faults = (fault for _, fault in events_of(ops, Injection))
    touched = {node for fault in faults if fault.name == "delete-active-segment" for node in fault.nodes}
    logs = final_logs(ops)
    for op, record in events_of(ops, Produce):
        if op.index not in anomaly.proof or op.type is not OpType.OK or record.acks != _ACKS_ALL:
            continue
        states = [state for seen_at, state in events_of(ops, LeaderAndIsr) if seen_at.index < op.index]
        for member in map(str, states[-1].isr if states else ()):
            if member in lost_power or member in touched or followed - {member} or member not in logs:
                continue
            held = None if record.offset is None else logs[member].records.get(record.offset)
            if held is None or held.value != record.value:
                return member
    return None


def _power_cuts(ops: Sequence[Op], since: int) -> list[_Cut]:
    return [
        (op.index, fault.nodes)
        for op, fault in events_of(ops, Injection)
        if op.index > since and op.type is OpType.OK and nature_of(op).effect is Effect.POWER_LOST
    ]
