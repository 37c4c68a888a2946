"""A broker that ends itself has failed, though nobody took it down; the line that it printed says why."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.view import at, key_of
from harness.effect import DOWN, nature_of
from harness.model import Anomaly, Kind, Op, Source


def exited(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find brokers that said that they end themselves, whether the process went or hung in its exit.

    Shapes:  ops of one partition and the global ones. Returns one anomaly for every time that a node said so, but
             for repetitions by one process.
    Source:  KAFKA-3924: a follower whose log is longer than its leader's, up to Apache Kafka 2.0.
    """
    topic, partition = key_of(ops)
    words, _ = _replayed(ops)
    return [
        Anomaly(
            kind=Kind.EXITED,
            topic=topic,
            partition=partition,
            nodes=(op.process,),
            sentence=f"{op.process} ended itself at {at(op)}: {str(op.value['line']).rstrip('.')}.",
            proof=(op.index,),
        )
        for op in words
    ]


def gone(ops: Sequence[Op]) -> frozenset[str]:
    """Give the nodes that ended themselves and were not started again: what they left is no replica's word."""
    return _replayed(ops)[1]


def _replayed(ops: Sequence[Op]) -> tuple[list[Op], frozenset[str]]:
    """Give the first word of every process that ended itself, and the nodes of those that nobody followed."""
    words: list[Op] = []
    ending: set[str] = set()
    for op in ops:
        if op.source is Source.NEMESIS and nature_of(op).heals & DOWN:
            ending -= set(op.value["nodes"])
        elif is_exit(op) and op.process not in ending:
            ending.add(op.process)
            words.append(op)
    return words, frozenset(ending)


def is_exit(op: Op) -> bool:
    """Whether a node says that it ends itself."""
    return op.f == "printed" and bool(op.value["what"] == "exiting")
