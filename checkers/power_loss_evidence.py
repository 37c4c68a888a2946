"""
Losses that the evidence proves, and losses that a power loss keeps from being proven.

Where brokers emit no events, the log that a leader led with is known only from its final log. That evidence is
void for a leader that lost its power after the acknowledgement, and for one that truncated its log to follow such
a leader: every copy of the record may have gone with the power, which is permitted, or through a hole that Kafka
leaves open. Such a loss is neither proven nor excused: it is unchecked.

Another leader without the record proves the loss all the same if it never lost its power, no later leader did, and
it was elected before any power loss that could excuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from checkers.elections import Election, elections
from checkers.lost import lost
from harness.effect import Effect, nature_of
from harness.model import Anomaly, Kind, Op, OpType, Source


def proven_losses(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find the acknowledged records that are lost, as `lost` does; UNCHECKED where power loss took the evidence.

    Source:  KIP-101, Scenario 1; KIP-903; KIP-966. Silence proves nothing: a missing source makes a run unknown.
    """
    return with_power_loss_evidence(ops, lost(ops))


def with_power_loss_evidence(ops: Sequence[Op], anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Return the anomalies, with losses as unchecked that rest only on a log which a power loss may have cut."""
    if any((op.source, op.f) == (Source.BROKER, "append") for op in ops):
        return list(anomalies)
    return [_doubted(ops, anomaly) if anomaly.kind is Kind.LOST else anomaly for anomaly in anomalies]


def _doubted(ops: Sequence[Op], anomaly: Anomaly) -> Anomaly:
    since = min(anomaly.proof, default=0)
    seen = elections(ops)
    cuts = [op for op in ops if op.index > since and _cuts_power(op)]
    losers = [each for each in seen if anomaly.epoch is not None and each.epoch >= anomaly.epoch]
    if any(_is_proof(each, seen, cuts) for each in losers):
        return anomaly
    for cut in cuts:
        for node in map(str, cut.value["nodes"]):
            if node in anomaly.nodes or any(each.node == node and each.op.index > cut.index for each in seen):
                sentence = (
                    f"{anomaly.sentence} This cannot be judged: {node} lost its power since, and nobody told what "
                    "leaders had until then."
                )
                proof = tuple(sorted({*anomaly.proof, cut.index}))
                return replace(anomaly, kind=Kind.UNCHECKED, sentence=sentence, proof=proof)
    return anomaly


def _is_proof(election: Election, seen: Sequence[Election], cuts: Sequence[Op]) -> bool:
    """Return True if the final log of that leader, which lacks the record, is the log that it led with."""
    at = election.op.index
    lost_power = {(str(node), cut.index) for cut in cuts for node in cut.value["nodes"]}
    later = {other.node for other in seen if other.op.index >= at}
    return all(index > at and node not in later for node, index in lost_power)


def _cuts_power(op: Op) -> bool:
    cuts = op.source is Source.NEMESIS and op.type is OpType.OK
    return cuts and nature_of(op).effect is Effect.POWER_LOST
