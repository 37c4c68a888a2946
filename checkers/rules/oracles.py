"""Violations that the simulator's oracles saw at one step of a world; the final logs may not show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.view import is_churned, is_further, key_of
from harness.events import OracleViolation
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.ORACLE_COMMITTED,
        formula="at a step: r was below the high watermark of a leader, n in ISR, log(n) lacks r, no power "
        "loss took it",
        words="The simulator saw a committed record missing on a replica that may be elected.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="hachikuji/kafka-specification, StrongIsr",
    ),
    Definition(
        kind=Kind.ORACLE_PREFIX,
        formula="at a step: f fetches from l in l's epoch, and log(f), log(l) differ below both ends",
        words="The simulator saw a follower that fetches from a leader and differs from it.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="KIP-101, Scenario 2",
    ),
    Definition(
        kind=Kind.ORACLE_ACKNOWLEDGED,
        formula="at ok(produce r, acks=all, o): the record committed at o is not r",
        words="The simulator saw an acknowledgement of a record that was not committed there.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka's acks",
    ),
    Definition(
        kind=Kind.ORACLE_LEADERS,
        formula="at a step: n leads in epoch e, and m /= n led in e at an earlier one",
        words="The simulator saw two brokers that led in one epoch.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="KIP-101, step 1",
    ),
    Definition(
        kind=Kind.ORACLE_HIGH_WATERMARK,
        formula="at a step: high-watermark(n) while n leads in epoch e is lower than at an earlier step in e, or "
        "above the end of log(n)",
        words="The simulator saw a leader's high watermark that fell within its epoch, or above its log.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, F; KAFKA-8400",
    ),
    Definition(
        kind=Kind.ORACLE_GENERATION,
        formula="at a step: log(n) has a record that a leader appended first to a log with another topic id",
        words="The simulator saw a replica of a topic with records of another topic of the same name.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="KIP-516, Motivation",
    ),
)


def oracles(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Return one anomaly for each violation that the oracles recorded, in the order of steps.

    Source:  hachikuji/kafka-specification, StrongIsr.
    """
    topic, partition = key_of(ops)
    return [
        Anomaly(
            kind=Kind(f"oracle-{seen.rule}"),
            topic=topic,
            partition=partition,
            ranges=((seen.offset, seen.offset + 1),),
            nodes=seen.nodes,
            sentence=seen.sentence,
            proof=(op.index,),
        )
        for op, seen in events_of(ops, OracleViolation)
        if seen.topic is not None or not (is_further(ops) or is_churned(ops))
    ]
