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
        formula="at ok(produce r, acks=all, o): the record committed at o is not r; or at a step: n answers "
        "ok, o, and log(n) has not r at o or, with acks=all, high-watermark(n) <= r or |ISR(n)| < min_isr",
        words="The simulator saw an acknowledgement of a record that was not there, or not committed.",
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
        "outside log(n)",
        words="The simulator saw a leader's high watermark that fell within its epoch, or outside its log.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, F; KAFKA-8400",
    ),
    Definition(
        kind=Kind.ORACLE_FOLLOWER_HIGH_WATERMARK,
        formula="at a step: n does not lead, and high-watermark(n) is outside log(n), or log(n) below it "
        "has another record than the one committed there, which no power loss took",
        words="The simulator saw a high watermark of a follower above what it holds of the committed records.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, G",
    ),
    Definition(
        kind=Kind.ORACLE_SERVED,
        formula="at a step: n answers a consumer's fetch and does not lead; or with a high watermark that is "
        "not its own; or with a record that is not the committed one, not below that, or not the next",
        words="The simulator saw a consumer that was served what is not committed, or what does not come next.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, C; KAFKA-9807",
    ),
    Definition(
        kind=Kind.ORACLE_CHECKPOINT,
        formula="at a step: the entries of checkpoint(n) do not rise, or one is past the end of log(n), or a "
        "batch of e is where the last entry at or below it is another epoch's",
        words="The simulator saw an epoch checkpoint that contradicted its log.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="KIP-101, steps 3, 4.4 and 4.7.1",
    ),
    Definition(
        kind=Kind.ORACLE_LOG_START,
        formula="at a step: the start of log(n) falls, and the log does not end below it; or n does not lead, and "
        "log(n) starts past every start that a leader's log ever had",
        words="The simulator saw a log that forgot where it starts, or a follower that deleted before its leader.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="KIP-107; Kafka's log-start-offset-checkpoint",
    ),
    Definition(
        kind=Kind.ORACLE_OFFICE,
        formula="at a step: n commands or decides though it was told that its session lost the office; or "
        "state is written by neither the winner of the newest controller epoch nor the leader, "
        "who changes ISR alone; or a broker obeys a command of an older controller, registration or leader epoch, "
        "or makes of the metadata's answers what they do not say: of another session, in part, lost, or overtaken",
        words="The simulator saw a change by who is not in office, or a broker that obeyed it.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, C and D; KAFKA-6082; KIP-380",
    ),
    Definition(
        kind=Kind.ORACLE_ANSWERS,
        formula="an answer lacks a partition that was asked, or metadata one of a topic, or metadata names a "
        "leader that it does not list as live; or a fetch is answered after its wait, before it without a record, "
        "or at its end with records that were there before; or a produce after its timeout, or as timed out "
        "before it; or an offset by time, or the end of an epoch, that consumers must not be told",
        words="The simulator saw an answer that was not whole, or that came too late or too early.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Apache Kafka's protocol; DelayedFetch and DelayedProduce",
    ),
    Definition(
        kind=Kind.ORACLE_REST,
        formula="at the end of a healed run: n takes itself for the controller and is not, or is and does not "
        "know it; or has decisions, commands or an ISR write left, or a timer that is overdue; or its role, epoch "
        "or ISR is not the metadata's; or its high watermark is not its log's end, or not in its checkpoint",
        words="The simulator saw a broker that had forgotten something, although all was healed and at rest.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, A, C and G: what must follow each change",
    ),
    Definition(
        kind=Kind.ORACLE_DUE,
        formula="after a step: a leader's ISR has changed, and all its members have more than its high watermark; "
        "or a request of a closed connection still waits; or a timer is due and was not fired, or is fired early; "
        "or an ask to the metadata is larger than its limit",
        words="The simulator saw a step that did not do what it must do at once.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, F and G",
    ),
    Definition(
        kind=Kind.ORACLE_GENERATION,
        formula="at a step: log(n) has a record that a leader appended first to a log with another topic id",
        words="The simulator saw a replica of a topic with records of another topic of the same name.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="KIP-516, Motivation",
    ),
    Definition(
        kind=Kind.ORACLE_FAIL_STOP,
        formula="at a step: a write or a flush of n failed, and n's process goes on after it, or ends for another "
        "reason than it says",
        words="The simulator saw a broker that went on after a write or a flush that had failed.",
        evidence="simulator: violation",
        unchecked="Real processes have no oracles.",
        source="Kafka Replication Design V3, 4; KAFKA-10778",
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
            ranges=((seen.offset, seen.offset + 1),) if seen.offset >= 0 else (),
            nodes=seen.nodes,
            sentence=seen.sentence,
            proof=(op.index,),
        )
        for op, seen in events_of(ops, OracleViolation)
        if seen.topic is not None or not (is_further(ops) or is_churned(ops))
    ]
