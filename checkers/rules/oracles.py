"""Violations that the simulator's oracles saw at one step of a world; the final logs may not show them."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.view import key_of
from harness.events import OracleViolation
from harness.model import Anomaly, Kind, Op, events_of


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
    ]
