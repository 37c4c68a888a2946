"""A broker that ends itself has failed, though nobody took it down; the line that it printed says why."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.view import at, key_of
from harness.effect import DOWN, nature_of
from harness.events import Injection, Printed
from harness.model import Anomaly, Kind, Op, events_of


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
            sentence=f"{op.process} ended itself at {at(op)}: {printed.line.rstrip('.')}.",
            proof=(op.index,),
        )
        for op, printed in words
    ]


def gone(ops: Sequence[Op]) -> frozenset[str]:
    """Give the nodes that ended themselves and were not started again: what they left is no replica's word."""
    return _replayed(ops)[1]


def exits(ops: Sequence[Op]) -> list[tuple[Op, Printed]]:
    """Return every line by which a node says that it ends itself."""
    return [(op, printed) for op, printed in events_of(ops, Printed) if printed.what == "exiting"]


def _replayed(ops: Sequence[Op]) -> tuple[list[tuple[Op, Printed]], frozenset[str]]:
    """Return the first word of every process that ended itself, and the nodes where no process followed it."""
    words: list[tuple[Op, Printed]] = []
    ending: set[str] = set()
    for op in ops:
        match op.event:
            case Injection(nodes=nodes) if nature_of(op).heals & DOWN:
                ending.difference_update(nodes)
            case Printed(what="exiting") as printed if op.process not in ending:
                ending.add(op.process)
                words.append((op, printed))
    return words, frozenset(ending)
