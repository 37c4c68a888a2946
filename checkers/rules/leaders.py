"""
Each epoch has one leader, and the leader leads it in one process only.

A broker that restarts and leads its old epoch again writes a second history under one epoch. A truncation by
epochs cannot distinguish the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from checkers.definition import Definition
from checkers.facts.elections import Takeover, elections, takeovers
from checkers.facts.view import at, key_of
from checkers.rules.appenders import appenders
from harness.model import Anomaly, Kind, Op

KINDS: Final = (
    Definition(
        kind=Kind.TWO_LEADERS,
        formula="leader(n, e), leader(m, e) or state(leader m, e), n != m; or append(n, role=leader, e) "
        "while n does not lead e",
        words="Two brokers led in one epoch, or one appended as leader of an epoch that it did not lead.",
        evidence="metadata: state; broker: leader, append",
        unchecked="",
        source="KIP-101, returning leaders; Kafka Replication Design V3",
    ),
    Definition(
        kind=Kind.LED_TWICE,
        formula="leader(n, e) in two processes of n, resumed or with two log ends",
        words="One broker led one epoch in two processes, so two histories share an epoch.",
        evidence="broker: leader, started",
        unchecked="",
        source='KIP-101, "the returning leader"; Kafka Replication Design V3, E.3.2',
    ),
)


def leaders(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find epochs that two brokers led, and epochs that one broker led in two processes.

    The same state sent again to the same process is neither. Nor is a return with the same log end that
    does not resume the epoch: nothing was written in between.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        TWO_LEADERS anomalies, then LED_TWICE anomalies, each by epoch; then TWO_LEADERS by who appends.

    Source:  KIP-101, "the returning leader"; Kafka Replication Design V3, E.3.2.
    """
    led: dict[int, list[tuple[str, Op]]] = {}
    taken_over = takeovers(ops)
    claims = [(t.epoch, t.node, t.op) for t in taken_over] + [(e.epoch, e.node, e.op) for e in elections(ops)]
    for epoch, node, op in claims:
        led.setdefault(epoch, []).append((node, op))
    two = [_two_leaders(ops, epoch, by) for epoch, by in sorted(led.items()) if len(dict(by)) > 1]
    return two + _led_twice(ops, taken_over) + appenders(ops)


def _two_leaders(ops: Sequence[Op], epoch: int, claims: Sequence[tuple[str, Op]]) -> Anomaly:
    topic, partition = key_of(ops)
    firsts: dict[str, Op] = {}
    for node, op in sorted(claims, key=lambda claim: claim[1].index):
        firsts.setdefault(node, op)
    claimants = " and ".join(f"{node} (seen at {at(op)})" for node, op in firsts.items())
    return Anomaly(
        kind=Kind.TWO_LEADERS,
        topic=topic,
        partition=partition,
        nodes=tuple(sorted(firsts)),
        epoch=epoch,
        sentence=f"Epoch {epoch} was led by {claimants}; expected one leader an epoch.",
        proof=tuple(sorted(op.index for op in firsts.values())),
    )


def _led_twice(ops: Sequence[Op], taken_over: Sequence[Takeover]) -> list[Anomaly]:
    topic, partition = key_of(ops)
    by_leader: dict[tuple[int, str], list[Takeover]] = {}
    for takeover in taken_over:
        by_leader.setdefault((takeover.epoch, takeover.node), []).append(takeover)
    found: list[Anomaly] = []
    for (epoch, node), times in sorted(by_leader.items()):
        again = [(a, b) for a, b in pairwise(times) if b.resumed or a.log_end != b.log_end]
        if again:
            ends = ", then ".join(f"at {at(t.op)} with log end {t.log_end}" for t in times)
            found.append(
                Anomaly(
                    kind=Kind.LED_TWICE,
                    topic=topic,
                    partition=partition,
                    nodes=(node,),
                    epoch=epoch,
                    sentence=f"{node} led epoch {epoch} in {len(times)} processes: {ends}; "
                    "expected a new epoch after its restart.",
                    proof=tuple(takeover.op.index for takeover in times),
                )
            )
    return found
