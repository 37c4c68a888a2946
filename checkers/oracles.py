"""What the simulator's oracles saw: a rule broken at one step of a world, even if its end shows nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.view import key_of
from harness.model import Anomaly, Kind, Op, Source


def oracles(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find the violations that oracles recorded, one anomaly each, in the order of steps.

    Source:  hachikuji/kafka-specification, StrongIsr.
    """
    topic, partition = key_of(ops)
    return [
        Anomaly(
            kind=Kind(f"oracle-{op.value['rule']}"),
            topic=topic,
            partition=partition,
            ranges=((op.value["offset"], op.value["offset"] + 1),),
            nodes=tuple(op.value["nodes"]),
            sentence=op.value["sentence"],
            proof=(op.index,),
        )
        for op in ops
        if (op.source, op.f) == (Source.SIMULATOR, "violation")
    ]
