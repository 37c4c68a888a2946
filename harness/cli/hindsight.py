"""
What a run's end cannot tell of a loss: what leaders had before a disk lost its power.

Where brokers tell nothing, what a leader led with is known from its log as it ended. That witness is silent about
a leader that lost its power since the record was acknowledged, and about one that cut its log to follow such a
one: every copy of the record may have gone with the power, which is permitted, or through a hole that Kafka leaves
open. Such a loss is neither proven nor excused.

Another leader without the record proves the loss all the same, where it never lost its power, where none who led
after it had, and where it was elected before any power was lost that could excuse it.

Rules:   silence proves nothing: where a source is missing the answer is unknown (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from checkers.elections import Election, elections
from harness.effect import Effect, nature_of
from harness.model import Anomaly, Kind, Op, OpType, Source


def with_hindsight(ops: Sequence[Op], anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Give the anomalies, with losses as unchecked that rest on a log alone which a power cut may have cut."""
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
    """Whether the final log of that leader, one of those without the record, is what it led with."""
    at = election.op.index
    lost_power = {(str(node), cut.index) for cut in cuts for node in cut.value["nodes"]}
    later = {other.node for other in seen if other.op.index >= at}
    return all(index > at and node not in later for node, index in lost_power)


def _cuts_power(op: Op) -> bool:
    cuts = op.source is Source.NEMESIS and op.type is OpType.OK
    return cuts and nature_of(op).effect is Effect.POWER_LOST
