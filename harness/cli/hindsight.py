"""
What a run's end cannot tell of a loss: what leaders had before a disk lost its power.

Where brokers tell nothing, what a leader led with is known from its log as it ended. That witness is silent about
a leader that lost its power since the record was acknowledged, and about one that cut its log to follow such a
one: every copy of the record may have gone with the power, which is permitted, or through a hole that Kafka leaves
open. Such a loss is neither proven nor excused.

Rules:   silence proves nothing: where a source is missing the answer is unknown (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from checkers.elections import elections
from harness.model import Anomaly, Kind, Op, OpType, Source


def with_hindsight(ops: Sequence[Op], anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Give the anomalies, with losses as unchecked that rest on a log alone which a power cut may have cut."""
    if any((op.source, op.f) == (Source.BROKER, "append") for op in ops):
        return list(anomalies)
    return [_doubted(ops, anomaly) if anomaly.kind is Kind.LOST else anomaly for anomaly in anomalies]


def _doubted(ops: Sequence[Op], anomaly: Anomaly) -> Anomaly:
    since = min(anomaly.proof, default=0)
    led = [(election.node, election.op.index) for election in elections(ops)]
    for cut in (op for op in ops if op.index > since and _cuts_power(op)):
        for node in map(str, cut.value["nodes"]):
            if node in anomaly.nodes or any(leader == node and at > cut.index for leader, at in led):
                sentence = (
                    f"{anomaly.sentence} This cannot be judged: {node} lost its power since, and nobody told what "
                    "leaders had until then."
                )
                proof = tuple(sorted({*anomaly.proof, cut.index}))
                return replace(anomaly, kind=Kind.UNCHECKED, sentence=sentence, proof=proof)
    return anomaly


def _cuts_power(op: Op) -> bool:
    return (op.source, op.f, op.type) == (Source.NEMESIS, "power-loss", OpType.OK)
